/** The result of a test: yes, no, or why it is unknown. */
export type Maybe<Unknown = undefined> = boolean | Unknown;

/** Negates a result for a condition with "!". Unknown stays unknown. */
export function negateIf<U>(negated: boolean | undefined, result: Maybe<U>): Maybe<U> {
  return typeof result === 'boolean' ? result !== (negated === true) : result;
}

/** Whether the test passes for all items; stops at the first that fails. If none fails, returns the first unknown. */
export function allOf<T, U>(items: Iterable<T>, test: (item: T) => Maybe<U>): Maybe<U> {
  let result: Maybe<U> = true;
  for (const item of items) {
    const one = test(item);
    if (one === false) return false;
    if (one !== true && result === true) result = one;
  }
  return result;
}

/** Whether the test passes for any item; stops at the first that does. */
export function anyOf<T, U>(items: Iterable<T>, test: (item: T) => Maybe<U>): Maybe<U> {
  return negateIf(
    true,
    allOf(items, (item) => negateIf(true, test(item))),
  );
}

export function all<U>(...results: readonly Maybe<U>[]): Maybe<U> {
  return allOf(results, (each) => each);
}
