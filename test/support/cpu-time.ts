import { parseAllDocuments } from 'yaml';

/**
 * The seconds of CPU time that this process took for some work: on a busy machine nearly the same as on an idle one, which
 * a clock on the wall does not give.
 */
export async function cpuSeconds(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const plain =
  '---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - name: http\n    port: 80\n';
const quarter = plain.repeat((1 << 18) / plain.length);

/** The seconds of CPU time that the package `yaml` takes now, in this process, for a megabyte of ordinary manifests. */
export async function secondsOfPlainMegabyte(): Promise<number> {
  return 4 * (await cpuSeconds(() => parseAllDocuments(quarter)));
}

/**
 * What some work costs, in ordinary megabytes: its CPU time as a multiple of what one takes, measured just before it. It is
 * about the same on any machine, and work whose time grows with the square of its input costs hundreds.
 */
export async function costInMegabytes(work: () => unknown): Promise<number> {
  const unit = await secondsOfPlainMegabyte();
  return (await cpuSeconds(work)) / unit;
}
