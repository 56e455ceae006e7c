import { objectOf, text, wholeNumber } from '../bundle/shape.ts';
import type { Host } from './host.ts';

/** One process of one boot of the kernel: process ids come again. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to its start. */
  readonly started: string;
  readonly bootId: string;
}

/** What each file says that stands for a process. */
export const processFields = { pid: wholeNumber(1), started: text, bootId: text };

export const processShape = objectOf<ProcessIdentity>(processFields);

export async function identifyOwnProcess(host: Host): Promise<ProcessIdentity> {
  const [started, bootId] = await Promise.all([readStartTime(host, host.pid), readBootId(host)]);
  return { pid: host.pid, started: started ?? '0', bootId };
}

export async function isRunning(host: Host, process: ProcessIdentity): Promise<boolean> {
  if (process.bootId !== (await readBootId(host))) return false;
  return (await readStartTime(host, process.pid)) === process.started;
}

/** The kernel's id of this boot: what was true of the kernel before it says nothing of the kernel now. */
export async function readBootId(host: Host): Promise<string> {
  return ((await host.readFile('/proc/sys/kernel/random/boot_id')) ?? '').trim();
}

/** Field 22 of /proc/PID/stat; the fields are counted after the command's name, which may hold anything. */
async function readStartTime(host: Host, pid: number): Promise<string | undefined> {
  const stat = await host.readFile(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}
