import { objectOf, optional, text, wholeNumber, type Shaped } from '../../base/json-shape.ts';
import type { Host } from '../node/host.ts';

/** The content of each file that represents a process. */
export const processFields = {
  pid: wholeNumber(1),
  /** Clock ticks from boot to its start. */
  started: text,
  bootId: text,
  /** Its PID namespace ("pid:[4026531836]"): the same id is of another process in another. Undefined where unknown. */
  namespace: optional(text),
};

const processShape = objectOf(processFields);

/** One process of one boot of the kernel: process ids come again. */
export type ProcessIdentity = Shaped<typeof processShape>;

/** "out of sight": in another PID namespace, as a container's processes are, or the node's to a container. */
type Whereabouts = 'running' | 'gone' | 'out of sight';

/** The identity of this process, for findProcess of a later one. */
export async function identifyOwnProcess(host: Host): Promise<ProcessIdentity> {
  const [started, bootId, namespace] = await Promise.all([
    readStartTime(host, host.pid),
    readBootId(host),
    readNamespace(host),
  ]);
  return { pid: host.pid, started: started ?? '0', bootId, namespace };
}

/** Whether a process still runs, here or out of sight. */
export async function findProcess(host: Host, process: ProcessIdentity): Promise<Whereabouts> {
  if (process.bootId !== (await readBootId(host))) return 'gone';
  if (process.namespace !== undefined && process.namespace !== (await readNamespace(host))) return 'out of sight';
  return (await readStartTime(host, process.pid)) === process.started ? 'running' : 'gone';
}

function readNamespace(host: Host): Promise<string | undefined> {
  return host.readLink('/proc/self/ns/pid');
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
