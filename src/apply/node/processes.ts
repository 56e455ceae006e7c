import { hasCode } from '../../base/system-errors.ts';
import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';

/** How this process gets the rights that it lacks. */
export const rightsAdvice = 'run it as root; a container also needs the capability NET_ADMIN';

/** Bits of a process's capabilities. */
export const capNetAdmin = 1n << 12n;
export const capSysModule = 1n << 16n;
const capSysPtrace = 1n << 19n;

/** Whether this process has a capability, as far as /proc shows. */
export async function hasCapability(host: Host, capability: bigint): Promise<boolean> {
  const status = (await host.readFile('/proc/self/status')) ?? '';
  const capabilities = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0';
  return (BigInt(`0x${capabilities}`) & capability) !== 0n;
}

/** Why some processes of this node cannot be seen from here: what is not seen may be there. */
export interface Unseen {
  /** "the processes of the node are not visible here". */
  readonly text: string;
  /** What lets kpc-apply see them. */
  readonly advice: string;
}

/** What Linux calls the namespaces that hold all others. */
const wholeNode = 'pid:[4026531836]';
const ofAllUsers = 'user:[4026531837]';

const outOfSight: Unseen = {
  text: 'the processes of the node are not visible here',
  advice: 'start the container with --pid host (in Kubernetes: hostPID: true), or run kpc-apply on the node itself',
};

/** Another process may not be looked at. */
export const forbidden: Unseen = {
  text: 'processes with more rights than kpc-apply are not visible here',
  advice: 'give it the capability SYS_PTRACE (in a systemd unit: CAP_SYS_PTRACE in CapabilityBoundingSet)',
};

/** Why /proc does not list all processes of the node; undefined if it does. */
export async function findUnseen(host: Host): Promise<Unseen | undefined> {
  // A /proc of the node also lists the processes of a namespace below it.
  const [own, first] = [await host.readLink('/proc/self/ns/pid'), await unlessForbidden(readPidNamespace(host, '1'))];
  if (own !== wholeNode && (own === undefined || first !== wholeNode)) return outOfSight;
  return (await hidesProcesses(host)) ? forbidden : undefined;
}

/** Whether /proc leaves out, or does not show, processes that this one may not look at: its option hidepid, see proc(5). */
export async function hidesProcesses(host: Host): Promise<boolean> {
  const mounts = (await host.readFile('/proc/self/mountinfo')) ?? '';
  // The last that was mounted there is the one that is seen.
  const options = [...mounts.matchAll(/^\d+ \d+ \S+ \S+ \/proc .* - proc \S+ (\S+)$/gm)].at(-1)?.[1] ?? '';
  const hidden = /(?:^|,)hidepid=(\w+)/.exec(options)?.[1] ?? 'off';
  return hidden !== 'off' && hidden !== '0' && !(await seesAll(host));
}

async function seesAll(host: Host): Promise<boolean> {
  return (await isOfAllUsers(host)) && hasCapability(host, capSysPtrace);
}

/** In a user namespace, a capability counts for the processes in it alone, and users outside have no number. */
async function isOfAllUsers(host: Host): Promise<boolean> {
  return (await host.readLink('/proc/self/ns/user')) === ofAllUsers;
}

function readPidNamespace(host: Host, pid: string): Promise<string | undefined> {
  return host.readLink(`/proc/${pid}/ns/pid`);
}

/** What looking at a process gives; "forbidden" where this process has no right to look. */
export function unlessForbidden<T>(looking: Promise<T>): Promise<T | 'forbidden'> {
  return looking.catch((error: unknown) => {
    if (hasCode(error, 'EACCES') || hasCode(error, 'EPERM')) return 'forbidden';
    throw error;
  });
}

/**
 * When a process started, in ticks since the node booted: field 22 of /proc/PID/stat, which every user may read. The fields are counted
 * after the command's name, which may hold anything. Undefined if there is no such process.
 */
export async function readStartTime(host: Host, pid: number): Promise<string | undefined> {
  const stat = await host.readFile(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

/** Linux shows this for a user that has no number in a user namespace. */
const withoutNumber = '65534';

/**
 * Whether root runs a process that has not ended. No kube-proxy can do its work for another user, but any user can call a process
 * one, a setuid program too: so the real user counts as well as the effective one.
 */
export async function isRoots(host: Host, pid: string): Promise<boolean> {
  const status = (await host.readFile(`/proc/${pid}/status`)) ?? '';
  // One that waits for its parent to hear of its end does nothing more, unless other threads of it do.
  if (/^State:\s+[ZX]/m.test(status) && !/^Threads:\s+(?!1$)/m.test(status)) return false;
  const users = /^Uid:\s+(\d+)\s+(\d+)\s/m.exec(status)?.slice(1) ?? [];
  const isOutside = users.includes(withoutNumber) && !(await isOfAllUsers(host));
  return users.length > 0 && users.every((user) => user === '0' || (isOutside && user === withoutNumber));
}

const k3s = 'start k3s with --disable-kube-proxy';

/**
 * Kernel names of the k3s and MicroK8s processes that include a kube-proxy, and how to stop it. k0s and RKE2 start a
 * separate process.
 */
const programs: Readonly<Record<string, string>> = { 'k3s-server': k3s, 'k3s-agent': k3s, kubelite: 'stop MicroK8s' };

/** What is known of a kube-proxy in this network. `text`: "kube-proxy is running (process 77)", or why that is not known. */
export type KubeProxySight =
  | { readonly kind: 'running'; readonly text: string; readonly advice: string }
  | ({ readonly kind: 'unknown' } & Unseen)
  | { readonly kind: 'none' };

/**
 * Looks for a process that does kube-proxy's work, one at a time: there may be more than files may be open. None is seen only where
 * every process that may be one can be looked at.
 * Test: is unknown, and no answer, where %s.
 */
export async function findKubeProxy(host: Host): Promise<KubeProxySight> {
  const own = await host.readLink('/proc/self/ns/net');
  let unseen = await findUnseen(host);
  for (const pid of await host.list('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const found = await unlessForbidden(examineProcess(host, pid, own));
    if (found === 'forbidden') unseen ??= forbidden;
    else if (found) return found;
  }
  return unseen ? { kind: 'unknown', ...unseen } : { kind: 'none' };
}

async function examineProcess(host: Host, pid: string, own: string | undefined): Promise<KubeProxySight | undefined> {
  const name = (await host.readFile(`/proc/${pid}/comm`))?.trim() ?? '';
  const isWithin = Object.hasOwn(programs, name);
  if ((name !== 'kube-proxy' && !isWithin) || !(await isRoots(host, pid))) return undefined;
  const network = await host.readLink(`/proc/${pid}/ns/net`);
  // One in the network of a container (a node of a test cluster, say) is no matter of this one.
  // Test: k3s in the network of a container stops nothing.
  if (network !== undefined && network !== own) return undefined;
  if (isWithin && !(await servesServices(host, pid))) return undefined;
  const text = `kube-proxy is running (${isWithin ? `in ${name}, ` : ''}process ${pid})`;
  return { kind: 'running', text, advice: programs[name] ?? 'stop it' };
}

/**
 * Whether such a program runs its kube-proxy. k3s hides its arguments once it runs (they may hold passwords) and takes
 * some from files, so they do not prove enough. But a kube-proxy that runs listens on its port for health checks or on
 * that for metrics.
 */
async function servesServices(host: Host, pid: string): Promise<boolean> {
  const args = ((await host.readFile(`/proc/${pid}/cmdline`)) ?? '').split('\0');
  if (args.some((arg) => /^--?disable-kube-proxy(=(true|t|1))?$/i.test(arg))) return false;
  const tables = await Promise.all(['tcp', 'tcp6'].map((protocol) => host.readFile(`/proc/net/${protocol}`)));
  // The number of the line, "ADDRESS:PORT" of both ends, and the state: 0A is LISTEN. 10256 and 10249 are 2810 and 2809.
  return tables.some((table) => /^ *\d+: [\dA-F]+:(?:2810|2809) [\dA-F]+:[\dA-F]{4} 0A /m.test(table ?? ''));
}

/** The flag of an operator who knows what kpc-apply cannot see. */
export const aloneFlag = '--assume-alone';

/** What to do where kpc-apply must know, and cannot see. */
export function adviseUnseen({ advice }: Unseen, what: string): string {
  return `${advice}; if you know that ${what} runs here, add ${aloneFlag}`;
}

/**
 * Throws a Failure if a kube-proxy runs on this node, or may: what it made must not be taken from under it. `assumesAlone`: the
 * operator knows that none runs where none can be seen.
 */
export async function assertNoKubeProxy(host: Host, assumesAlone: boolean): Promise<void> {
  const found = await findKubeProxy(host);
  if (found.kind === 'none' || (found.kind === 'unknown' && assumesAlone)) return;
  if (found.kind === 'unknown') {
    const text = `it is unknown whether a kube-proxy runs, which needs the rules that would be removed: ${found.text}`;
    throw new Failure('not-ready', text, adviseUnseen(found, 'no kube-proxy'));
  }
  throw new Failure(
    'not-ready',
    `${found.text}: its rules have the same names as kpc-apply's, so they would be removed too`,
    `${found.advice} first, or leave the node to it; --force continues anyway`,
  );
}
