/**
 * Does work that the first SIGINT or SIGTERM aborts, so that what has begun can be put back. SIGHUP does nothing: a
 * change that cuts off the operator's own connection must live to undo itself. Neither does Ctrl-Z, which would leave a
 * change half done with the lock held.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const ignore = () => undefined;
  process.on('SIGINT', abort).on('SIGTERM', abort).on('SIGHUP', ignore).on('SIGTSTP', ignore);
  try {
    return await work(controller.signal);
  } finally {
    process.off('SIGINT', abort).off('SIGTERM', abort).off('SIGHUP', ignore).off('SIGTSTP', ignore);
  }
}
