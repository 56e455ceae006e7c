import { parseIpJson } from '../../kernel/link/link.ts';
import { Failure } from '../state/failure.ts';
import { endOf, type Host } from './host.ts';
import { faultOfLinks, isRefusal, readWith } from './tools.ts';

/** The network namespace that a command works in. Records about rules are valid in one network only. */
export interface NodeNetwork {
  /** The kernel's boot id: rules do not survive a boot. */
  readonly bootId: string;
  /** "4026532281", as `lsns -t net` lists it. The kernel reuses it once the network is gone. */
  readonly inode: string;
  /** A unique name kpc-apply left in this network. Undefined for the node's first network, which always exists. */
  readonly mark?: string | undefined;
}

/**
 * If a network needs a mark and has none, `leavesMark` sets one; otherwise the result is a network without records.
 * Throws a Failure if that fails.
 */
export async function readNodeNetwork(host: Host, leavesMark: boolean): Promise<NodeNetwork> {
  const [bootId, namespace] = await Promise.all([readBootId(host), host.readLink('/proc/self/ns/net')]);
  const inode = /^net:\[(\d+)\]$/.exec(namespace ?? '')?.[1];
  if (bootId === '' || inode === undefined) {
    throw new Failure('unreadable-node', { problem: 'no-network' });
  }
  if (await isFirstNetwork(host)) return { bootId, inode };
  const mark = (await readNetworkMark(host)) ?? (leavesMark ? await leaveMark(host) : newMark());
  return { bootId, inode, mark };
}

/** The kernel's id of this boot; '' where it is unknown. */
export async function readBootId(host: Host): Promise<string> {
  return ((await host.readFile('/proc/sys/kernel/random/boot_id')) ?? '').trim();
}

/** Whether this is the network the node booted with: only it has the sysctls for all packets (sysctl_net_core.c). */
async function isFirstNetwork(host: Host): Promise<boolean> {
  return (await host.readFile('/proc/sys/net/core/netdev_max_backlog')) !== undefined;
}

function newMark(): string {
  return `kpc-${crypto.randomUUID().replaceAll('-', '').slice(0, 16)}`;
}

/** The first mark on lo, in order of creation, so that two programs that leave one at once agree. */
async function readNetworkMark(host: Host): Promise<string | undefined> {
  const links = parseIpJson(
    await readWith(host, { tool: 'ip', args: ['-j', 'link', 'show', 'dev', 'lo'] }, faultOfLinks),
  );
  for (const link of Array.isArray(links) ? (links as readonly unknown[]) : []) {
    if (typeof link !== 'object' || link === null || !('altnames' in link) || !Array.isArray(link.altnames)) continue;
    const mark = link.altnames.find((name) => typeof name === 'string' && /^kpc-[\da-f]{16}$/.test(name));
    if (mark !== undefined) return mark as string;
  }
  return undefined;
}

/**
 * Every network has lo. An altname of lo needs no module or tool, lasts as long as the network, and survives any flush; no other program
 * uses it. Test: apply/real-networks.slow.test.ts.
 */
async function leaveMark(host: Host): Promise<string> {
  const command = { tool: 'ip', args: ['link', 'property', 'add', 'dev', 'lo', 'altname', newMark()] };
  const result = await host.run(command);
  const mark = await readNetworkMark(host);
  if (mark !== undefined) return mark;
  const end = result.kind === 'missing' ? undefined : endOf(command, result);
  throw new Failure('unreadable-node', { problem: 'no-mark', tool: 'ip', end, because: whyNoMark(end?.said ?? '') });
}

/** The kernel has 64 kB for all further names of a link (rtnl_alt_ifname), and reports that since Linux 5.18. */
function whyNoMark(said: string): 'rights' | 'names' | 'age' {
  if (isRefusal(said)) return 'rights';
  return /too long/i.test(said) ? 'names' : 'age';
}
