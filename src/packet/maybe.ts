/** What a test finds out: yes, no, or why it cannot know. */
export type Maybe<Unknown = undefined> = boolean | Unknown;

/** The opposite of a result, for a condition with "!". What is unknown stays unknown. */
export function negateIf<U>(negated: boolean | undefined, result: Maybe<U>): Maybe<U> {
  return typeof result === 'boolean' ? result !== (negated === true) : result;
}

/** Whether the test passes for all items; it ends at the first that fails. If none fails, the first unknown is the answer. */
export function allOf<T, U>(items: Iterable<T>, test: (item: T) => Maybe<U>): Maybe<U> {
  let result: Maybe<U> = true;
  for (const item of items) {
    const one = test(item);
    if (one === false) return false;
    if (one !== true && result === true) result = one;
  }
  return result;
}

/** Whether the test passes for an item; it ends at the first that passes. */
export function anyOf<T, U>(items: Iterable<T>, test: (item: T) => Maybe<U>): Maybe<U> {
  return negateIf(
    true,
    allOf(items, (item) => negateIf(true, test(item))),
  );
}

/** Whether all are true. */
export function all<U>(...results: readonly Maybe<U>[]): Maybe<U> {
  return allOf(results, (each) => each);
}
