import { kubeProxyHosts, type KubeProxyProcess, type Unseen } from '../../base/findings/apply.ts';
import { hasCode } from '../../base/system-errors.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';

export const capNetAdmin = 1n << 12n;
export const capSysModule = 1n << 16n;
const capSysPtrace = 1n << 19n;

export async function hasCapability(host: Host, capability: bigint): Promise<boolean> {
  const status = (await host.readFile('/proc/self/status')) ?? '';
  const capabilities = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0';
  return (BigInt(`0x${capabilities}`) & capability) !== 0n;
}

/** Linux's name for the initial PID namespace, which sees all processes. */
const wholeNode = 'pid:[4026531836]';
const ofAllUsers = 'user:[4026531837]';

/** Returns why some of the node's processes cannot be seen; undefined if all can. */
export async function findUnseen(host: Host): Promise<Unseen | undefined> {
  // With the node's /proc, a process in a nested namespace sees all processes too.
  const [own, first] = [await host.readLink('/proc/self/ns/pid'), await unlessForbidden(readPidNamespace(host, '1'))];
  if (own !== wholeNode && (own === undefined || first !== wholeNode)) return 'outside';
  return (await hidesProcesses(host)) ? 'forbidden' : undefined;
}

/** Reports whether /proc hides other users' processes (its option hidepid; see proc(5)). */
export async function hidesProcesses(host: Host): Promise<boolean> {
  const mounts = (await host.readFile('/proc/self/mountinfo')) ?? '';
  // The last mount hides the others.
  const options = [...mounts.matchAll(/^\d+ \d+ \S+ \S+ \/proc .* - proc \S+ (\S+)$/gm)].at(-1)?.[1] ?? '';
  const hidden = /(?:^|,)hidepid=(\w+)/.exec(options)?.[1] ?? 'off';
  return hidden !== 'off' && hidden !== '0' && !(await seesAll(host));
}

async function seesAll(host: Host): Promise<boolean> {
  return (await isOfAllUsers(host)) && hasCapability(host, capSysPtrace);
}

/** Reports whether this is the initial user namespace. In any other, a capability covers only the namespace's own processes. */
async function isOfAllUsers(host: Host): Promise<boolean> {
  return (await host.readLink('/proc/self/ns/user')) === ofAllUsers;
}

function readPidNamespace(host: Host, pid: string): Promise<string | undefined> {
  return host.readLink(`/proc/${pid}/ns/pid`);
}

/** Returns "forbidden" if the process lacks the right to look. */
export function unlessForbidden<T>(looking: Promise<T>): Promise<T | 'forbidden'> {
  return looking.catch((error: unknown) => {
    if (hasCode(error, 'EACCES') || hasCode(error, 'EPERM')) return 'forbidden';
    throw error;
  });
}

/** Returns clock ticks since boot: field 22 of /proc/PID/stat. Counts fields after the command's name, which may contain anything. */
export async function readStartTime(host: Host, pid: number): Promise<string | undefined> {
  const stat = await host.readFile(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

/** The id that Linux shows for a user with no id in this user namespace. */
const withoutNumber = '65534';

/** Reports whether root runs a live process. Checks the real and the effective user, because anyone can run a setuid program. */
export async function isRoots(host: Host, pid: string): Promise<boolean> {
  const status = (await host.readFile(`/proc/${pid}/status`)) ?? '';
  // A zombie can do nothing, unless it has other threads.
  if (/^State:\s+[ZX]/m.test(status) && !/^Threads:\s+(?!1$)/m.test(status)) return false;
  const users = /^Uid:\s+(\d+)\s+(\d+)\s/m.exec(status)?.slice(1) ?? [];
  const isOutside = users.includes(withoutNumber) && !(await isOfAllUsers(host));
  return users.length > 0 && users.every((user) => user === '0' || (isOutside && user === withoutNumber));
}

export type KubeProxySight =
  | { readonly kind: 'running'; readonly process: KubeProxyProcess }
  | { readonly kind: 'unknown'; readonly unseen: Unseen }
  | { readonly kind: 'none' };

/**
 * Looks for a kube-proxy, one process at a time to save descriptors. "none" means that every candidate was examined.
 * Test: apply/unseen.test.ts.
 */
export async function findKubeProxy(host: Host): Promise<KubeProxySight> {
  const own = await host.readLink('/proc/self/ns/net');
  let unseen = await findUnseen(host);
  for (const pid of await host.list('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const found = await unlessForbidden(examineProcess(host, pid, own));
    if (found === 'forbidden') unseen ??= 'forbidden';
    else if (found) return found;
  }
  return unseen ? { kind: 'unknown', unseen } : { kind: 'none' };
}

async function examineProcess(host: Host, pid: string, own: string | undefined): Promise<KubeProxySight | undefined> {
  const name = (await host.readFile(`/proc/${pid}/comm`))?.trim() ?? '';
  const within = kubeProxyHosts.find((each) => each === name);
  if ((name !== 'kube-proxy' && !within) || !(await isRoots(host, pid))) return undefined;
  const network = await host.readLink(`/proc/${pid}/ns/net`);
  // Skip a kube-proxy in a container's network, such as on a test cluster's node. Test: apply/embedded-kube-proxy.test.ts.
  if (network !== undefined && network !== own) return undefined;
  if (within && !(await servesServices(host, pid))) return undefined;
  return { kind: 'running', process: { pid, within } };
}

/** Reports whether a program such as k3s, which hides arguments, runs kube-proxy. Looks for health check and metrics ports. */
async function servesServices(host: Host, pid: string): Promise<boolean> {
  const args = ((await host.readFile(`/proc/${pid}/cmdline`)) ?? '').split('\0');
  if (args.some((arg) => /^--?disable-kube-proxy(=(true|t|1))?$/i.test(arg))) return false;
  const tables = await Promise.all(['tcp', 'tcp6'].map((protocol) => host.readFile(`/proc/net/${protocol}`)));
  // Line number, "ADDRESS:PORT" of both ends, and state: 0A is LISTEN. 10256 and 10249 are 2810 and 2809 in hex.
  return tables.some((table) => /^ *\d+: [\dA-F]+:(?:2810|2809) [\dA-F]+:[\dA-F]{4} 0A /m.test(table ?? ''));
}

/** Throws a Failure if a kube-proxy may be running here. `assumesAlone`: the user asserts that no kube-proxy runs unseen. */
export async function assertNoKubeProxy(host: Host, assumesAlone: boolean): Promise<void> {
  const found = await findKubeProxy(host);
  if (found.kind === 'none' || (found.kind === 'unknown' && assumesAlone)) return;
  if (found.kind === 'unknown') {
    throw new Failure('not-ready', { problem: 'unseen-kube-proxy', unseen: found.unseen });
  }
  throw new Failure('not-ready', { problem: 'kube-proxy', process: found.process });
}
