import { parseAllDocuments } from 'yaml';

/** Returns the seconds of CPU time that this process took for some work. Unlike elapsed time, it hardly differs on a busy machine. */
export async function cpuSeconds(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const plain =
  '---\napiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - name: http\n    port: 80\n';
const quarter = plain.repeat((1 << 18) / plain.length);

/** Returns the seconds of CPU time that the package `yaml` needs here and now for a megabyte of ordinary manifests. */
export async function secondsOfPlainMegabyte(): Promise<number> {
  return 4 * (await cpuSeconds(() => parseAllDocuments(quarter)));
}

/**
 * Returns the CPU time of some work as a multiple of that for a megabyte of manifests, measured just before. It is about the same on any
 * machine. Work whose time grows with the square of its input costs hundreds.
 */
export async function costInMegabytes(work: () => unknown): Promise<number> {
  const unit = await secondsOfPlainMegabyte();
  return (await cpuSeconds(work)) / unit;
}
