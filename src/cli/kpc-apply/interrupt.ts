/**
 * Turns the first SIGINT or SIGTERM into an abort, so that what has been begun can be put back. SIGHUP does nothing: a
 * change that cuts off the operator's own connection must live to undo itself. Neither does Ctrl-Z: a change is not to be
 * left half done with the lock held.
 */
export function onInterrupt(): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const ignore = () => undefined;
  process.on('SIGINT', abort).on('SIGTERM', abort).on('SIGHUP', ignore).on('SIGTSTP', ignore);
  return {
    signal: controller.signal,
    release: () => {
      process.off('SIGINT', abort).off('SIGTERM', abort).off('SIGHUP', ignore).off('SIGTSTP', ignore);
    },
  };
}
