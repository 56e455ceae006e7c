import { parseIpJson } from '../../kernel/link/link.ts';
import { Failure } from '../state/failure.ts';
import { endOf, type Host } from './host.ts';
import { faultOfLinks, isRefusal, readWith } from './tools.ts';

/** The network namespace that a command works in. Records about rules are valid in this network only. */
export interface NodeNetwork {
  /** The kernel's boot id. Rules do not survive a reboot. */
  readonly bootId: string;
  /** The inode that `lsns -t net` lists, such as "4026532281". The kernel may reuse the number once the network is gone. */
  readonly inode: string;
  /** A unique name that kpc-apply left in this network. Undefined for the node's first network, which always exists. */
  readonly mark?: string | undefined;
}

/**
 * Identifies the network. If the network has no mark, sets one if `leavesMark`; otherwise returns a new mark that matches no record. Throws
 * a Failure if the network cannot be identified.
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

/** Returns the kernel's boot id; "" if unknown. */
export async function readBootId(host: Host): Promise<string> {
  return ((await host.readFile('/proc/sys/kernel/random/boot_id')) ?? '').trim();
}

/** Reports whether this is the network that the node booted with. Only the first network has the global sysctls (sysctl_net_core.c). */
async function isFirstNetwork(host: Host): Promise<boolean> {
  return (await host.readFile('/proc/sys/net/core/netdev_max_backlog')) !== undefined;
}

function newMark(): string {
  return `kpc-${crypto.randomUUID().replaceAll('-', '').slice(0, 16)}`;
}

/** Returns the oldest mark on lo, so that two programs that leave marks at once agree on one. */
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
 * Marks the network with an altname on lo. Every network has lo, and an altname needs no module, survives any flush and lasts as long as
 * the network. No other program uses altnames on lo. Test: apply/real-networks.slow.test.ts.
 */
async function leaveMark(host: Host): Promise<string> {
  const command = { tool: 'ip', args: ['link', 'property', 'add', 'dev', 'lo', 'altname', newMark()] };
  const result = await host.run(command);
  const mark = await readNetworkMark(host);
  if (mark !== undefined) return mark;
  const end = result.kind === 'missing' ? undefined : endOf(command, result);
  throw new Failure('unreadable-node', { problem: 'no-mark', tool: 'ip', end, because: whyNoMark(end?.said ?? '') });
}

/** Explains why the kernel refused an altname. A link's altnames may take 64 kB (rtnl_alt_ifname); Linux reports more since 5.18. */
function whyNoMark(said: string): 'rights' | 'names' | 'age' {
  if (isRefusal(said)) return 'rights';
  return /too long/i.test(said) ? 'names' : 'age';
}
