/** What a match finds out; undefined if kpc cannot know. */
export type Maybe = boolean | undefined;

/** The opposite of a result, for a condition with "!". What is unknown stays unknown. */
export function negateIf(negated: boolean | undefined, result: Maybe): Maybe {
  return negated && result !== undefined ? !result : result;
}

/** Whether the test passes for all items; it ends at the first that fails. */
export function allOf<T>(items: Iterable<T>, test: (item: T) => Maybe): Maybe {
  let result: Maybe = true;
  for (const item of items) {
    const one = test(item);
    if (one === false) return false;
    if (one === undefined) result = undefined;
  }
  return result;
}

/** Whether the test passes for an item; it ends at the first that passes. */
export function anyOf<T>(items: Iterable<T>, test: (item: T) => Maybe): Maybe {
  return negateIf(
    true,
    allOf(items, (item) => negateIf(true, test(item))),
  );
}

/** Whether all are true. */
export function all(...results: readonly Maybe[]): Maybe {
  return allOf(results, (each) => each);
}
