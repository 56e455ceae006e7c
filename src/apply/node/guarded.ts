/**
 * Returns a handler of events that gives what `handler` throws to `fail`. Thrown out of a handler, an error ends the process, and
 * whoever waits for the event waits for ever.
 */
export function guarded<Args extends readonly unknown[]>(
  fail: (error: unknown) => void,
  handler: (...args: Args) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      handler(...args);
    } catch (error) {
      fail(error);
    }
  };
}
