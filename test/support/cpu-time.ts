/**
 * The seconds of CPU time that this process took for some work: on a busy machine the same as on an idle one, which a clock
 * on the wall does not give.
 */
export async function cpuSeconds(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
