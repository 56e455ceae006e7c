import { Failure } from '../state/failure.ts';
import type { Host } from './host.ts';

/** How this process gets the rights that it lacks. */
export const rightsAdvice = 'run it as root; a container also needs the capability NET_ADMIN';

/** Bits of a process's capabilities. */
export const capNetAdmin = 1n << 12n;
export const capSysModule = 1n << 16n;

/** Whether this process has a capability, as far as /proc shows. */
export async function hasCapability(host: Host, capability: bigint): Promise<boolean> {
  const status = (await host.readFile('/proc/self/status')) ?? '';
  const capabilities = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1] ?? '0';
  return (BigInt(`0x${capabilities}`) & capability) !== 0n;
}

/**
 * Whether root runs a process. No kube-proxy can do its work for another user, but any user can call a process one, a
 * setuid program too: so the real user counts as well as the effective one.
 */
async function isRoots(host: Host, pid: string): Promise<boolean> {
  const status = (await host.readFile(`/proc/${pid}/status`)) ?? '';
  return /^Uid:\s+0\s+0\s/m.test(status);
}

const k3s = 'start k3s with --disable-kube-proxy';

/**
 * Kernel names of the k3s and MicroK8s processes that include a kube-proxy, and how to stop it. k0s and RKE2 start a
 * separate process.
 */
const programs: Readonly<Record<string, string>> = { 'k3s-server': k3s, 'k3s-agent': k3s, kubelite: 'stop MicroK8s' };

/**
 * Finds a process that does kube-proxy's work. `text`: "kube-proxy is running (process 77)", or "(in k3s-server,
 * process 77)"; `advice`: "stop it". Looks at one process at a time: there may be more than files may be open.
 */
export async function findKubeProxy(host: Host) {
  const own = await host.readLink('/proc/self/ns/net');
  for (const pid of await host.list('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const name = (await host.readFile(`/proc/${pid}/comm`))?.trim() ?? '';
    const isWithin = Object.hasOwn(programs, name);
    if ((name !== 'kube-proxy' && !isWithin) || !(await isRoots(host, pid))) continue;
    const network = await host.readLink(`/proc/${pid}/ns/net`);
    // One in the network of a container (a node of a test cluster, say) is no matter of this one.
    // Test: k3s in the network of a container stops nothing.
    if (network !== undefined && network !== own) continue;
    if (isWithin && !(await servesServices(host, pid))) continue;
    const text = `kube-proxy is running (${isWithin ? `in ${name}, ` : ''}process ${pid})`;
    return { text, advice: programs[name] ?? 'stop it' };
  }
  return undefined;
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

/** Throws a Failure if a kube-proxy runs on this node: what it made must not be taken from under it. */
export async function assertNoKubeProxy(host: Host): Promise<void> {
  const found = await findKubeProxy(host);
  if (found === undefined) return;
  throw new Failure(
    'not-ready',
    `${found.text}: its rules have the same names as kpc-apply's, so they would be removed too`,
    `${found.advice} first, or leave the node to it; --force continues anyway`,
  );
}
