import type { SysctlReason } from '../../kernel/sysctls-and-modules.ts';
import { joinHostPort } from '../../kernel/address.ts';
import { objectKinds, type KernelDelta, type ObjectKind } from '../../kernel/state.ts';
import {
  type ChangeKind,
  type KernelChange,
  changeOf,
  kindOfChange,
  ownedBy,
  subtract,
  type ChangedObject,
  type CountedChange,
  countsOf,
} from './kernel-change.ts';
import type { SideOwners, Owners } from '../../kube-proxy/owners.ts';
import { itemOf, type Pair } from '../../kernel/compare.ts';
import {
  virtualServerOf,
  type TimeoutsChange,
  virtualServerKey,
  type VirtualServerChange,
} from '../../kernel/ipvs/ipvs-delta.ts';
import { formatCreate, type SetChange } from '../../kernel/ipset/ipset.ts';
import { entryKey, formatEntry, type SetEntry } from '../../kernel/ipset/set-entry.ts';
import { formatRealServer, formatServiceOptions, type RealServer } from '../../kernel/ipvs/ipvs.ts';
import type { LinkChange } from '../../kernel/link/link.ts';
import type { ProxyPort } from '../../kernel/balancer/balancer.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { setFamily } from '../../kube-proxy/ipvs-objects.ts';
import { countChainChanges, listChainChanges } from './chain-changes.ts';
import { listNftChanges } from './nft-changes.ts';

const lists: { readonly [K in ObjectKind]: (delta: KernelDelta[K], owners: SideOwners) => readonly KernelChange[] } = {
  virtualServers: serverChanges,
  links: (changes, owners) => changes.flatMap((each) => linkChanges(each, owners)),
  sets: (changes, owners) => changes.flatMap((each) => ipSetChanges(each, owners)),
  proxyPorts: (changes) => changes.map(proxyPortChange),
  iptables: listChainChanges,
  nftables: listNftChanges,
  sysctls: (changes) => changes.map(({ name, from, to }) => sysctlChange(name, from, to)),
  ipvsTimeouts: (change) => (change ? [timeoutsChange(change)] : []),
  modules: (changes) => changes.map(({ change, name }) => moduleChange(name, change)),
};

/** Lists the objects of Services first and the objects that every node has last. */
export const readingOrder = Object.keys(lists) as readonly ObjectKind[];

export function listKernelChanges(
  delta: KernelDelta,
  owners: SideOwners,
  order: readonly ObjectKind[] = readingOrder,
): readonly KernelChange[] {
  const ofKind = <K extends ObjectKind>(kind: K): readonly KernelChange[] => lists[kind](delta[kind], owners);
  return order.flatMap((kind) => ofKind(kind));
}

export interface ChangeCount {
  readonly object: ChangedObject;
  readonly change: ChangeKind;
  readonly number: number;
}

const counters: { readonly [K in ObjectKind]?: (delta: KernelDelta) => readonly CountedChange[] } = {
  iptables: ({ iptables }) => countChainChanges(iptables),
};

const none = (): undefined => undefined;
const noOwners: Owners = {
  ofChain: none,
  ofRule: none,
  ofEntry: none,
  ofServer: none,
  ofAddress: none,
  ofNftChain: none,
  ofNftSet: none,
  ofNftElement: none,
};

/** Counts the objects that a delta changes, in the order in which a node creates objects. For each kind, additions come first. */
export function countChanges(delta: KernelDelta): readonly ChangeCount[] {
  return objectKinds.flatMap((kind) => {
    const counts =
      counters[kind]?.(delta) ?? listKernelChanges(delta, { from: noOwners, to: noOwners }, [kind]).flatMap(countsOf);
    const objects = [...new Set(counts.map(([object]) => object))];
    return objects.flatMap((object) =>
      (['added', 'changed', 'removed'] as const).flatMap((change) => {
        const same = counts.filter((each) => each[0] === object && each[1] === change);
        const number = same.reduce((sum, [, , each]) => sum + each, 0);
        return number === 0 ? [] : [{ object, change, number }];
      }),
    );
  });
}

export function sysctlChange(
  name: string,
  from: string | undefined,
  to: string | undefined,
  reason?: SysctlReason,
): KernelChange {
  return changeOf('sysctl', 'sysctl', kindOfChange(from, to), { name, from, to, reason });
}

export function moduleChange(name: string, change: ChangeKind): KernelChange {
  return changeOf('module', 'kernel module', change, { name });
}

/** Returns a change to a file that kpc-apply writes on the node. No state shows this file. '' stands for a missing file. */
export function settingChange(name: string, from: string, to: string): KernelChange {
  return changeOf('setting', 'setting', 'changed', { name, from, to });
}

/** Returns a change to one of the balancer's ports. Only compiled states have such ports, so the owner is always known. */
function proxyPortChange({ from, to }: Pair<ProxyPort>): KernelChange {
  const port = itemOf({ from, to });
  const [before, after] = [from, to].map((each) => each?.endpoints.map(formatSocketAddress) ?? []);
  const same = (text: string): string => text;
  const [added, removed] = [subtract(after ?? [], before ?? [], same), subtract(before ?? [], after ?? [], same)];
  const { protocol, address, port: number, origin } = port;
  const fields = { protocol, address: address.text, port: number, added, removed };
  return {
    ...changeOf('proxy-port', 'proxy port', kindOfChange(from, to), fields),
    ...ownedBy(origin?.servicePort, port),
  };
}

function timeoutsChange({ from, to }: TimeoutsChange): KernelChange {
  return changeOf('ipvs-timeouts', 'IPVS timeouts', 'changed', { from, to });
}

/** Returns the change of an object, and the changes of its content that Service ports own. Content without an owner is only counted. */
function withContent(content: readonly KernelChange[], whole: (free: number) => KernelChange): readonly KernelChange[] {
  const owned = content.filter(({ owner }) => owner !== undefined);
  return [whole(content.length - owned.length), ...owned];
}

function linkChanges(step: LinkChange, owners: SideOwners): readonly KernelChange[] {
  const change = step.to ? 'added' : 'removed';
  const isWhole = step.kind === 'link';
  const { name: link, addresses } = isWhole ? itemOf(step) : { name: step.link, addresses: [itemOf(step)] };
  const owner = change === 'added' ? owners.to : owners.from;
  const listed = addresses.map((each): KernelChange => {
    const bound = changeOf('address', 'address', change, { link, address: each.address.text });
    return { ...bound, ...ownedBy(owner.ofAddress(each), each) };
  });
  if (!isWhole) return listed;
  return withContent(listed, (free) => {
    const whole = changeOf('link', 'link', change, { link, addresses: free });
    return { ...whole, holds: [['address', change, free]] };
  });
}

function ipSetChanges(step: SetChange, owners: SideOwners): readonly KernelChange[] {
  const isWhole = step.kind === 'set';
  const { from, to } = isWhole ? step : { from: undefined, to: step.set };
  const set = isWhole ? itemOf(step) : step.set;
  const [before, after] = [from?.entries ?? [], to?.entries ?? []];
  const { removed, added } = isWhole
    ? { removed: subtract(before, after, entryKey), added: subtract(after, before, entryKey) }
    : step;
  const family = setFamily(set);
  const entryChange = (entry: SetEntry, change: 'added' | 'removed'): KernelChange => {
    const fields = { set: set.name, value: formatEntry(entry) };
    const owner = (change === 'added' ? owners.to : owners.from).ofEntry(set, entry);
    const listed = changeOf('set-entry', 'set entry', change, fields);
    return { ...listed, family, ...ownedBy(owner, entry) };
  };
  const entries = [
    ...removed.map((entry) => entryChange(entry, 'removed')),
    ...added.map((entry) => entryChange(entry, 'added')),
  ];
  if (!isWhole) return entries;
  return withContent(entries, (free) => {
    const change = kindOfChange(from, to);
    const lines = { ...(from && { from: formatCreate(from) }), ...(to && { to: formatCreate(to) }) };
    const whole = changeOf('set', 'set', change, { set: set.name, entries: free, ...lines });
    return { ...whole, family, ...(change === 'changed' ? {} : { holds: [['set entry', change, free]] }) };
  });
}

function serverChanges(changes: readonly VirtualServerChange[], owners: SideOwners): readonly KernelChange[] {
  const servers = new Map<string, [VirtualServerChange, ...VirtualServerChange[]]>();
  for (const change of changes) {
    const key = virtualServerKey(virtualServerOf(change));
    const known = servers.get(key);
    if (known) known.push(change);
    else servers.set(key, [change]);
  }
  return [...servers.values()].map((server) => serverChange(server, owners));
}

function serverChange(
  changes: readonly [VirtualServerChange, ...VirtualServerChange[]],
  owners: SideOwners,
): KernelChange {
  const service = virtualServerOf(changes[0]);
  const whole = changes.find((each) => each.kind === 'service');
  const change = whole ? kindOfChange(whole.from, whole.to) : 'changed';
  const { protocol, port } = service;
  const own = change === 'changed' ? [] : service.realServers.map(nameOfReal);
  const reals = changes.filter((each) => each.kind === 'real-server');
  const added = change === 'added' ? own : reals.flatMap(({ from, to }) => (from ? [] : [nameOfReal(to)]));
  const removed = change === 'removed' ? own : reals.flatMap(({ from, to }) => (to ? [] : [nameOfReal(from)]));
  const edited = reals.flatMap(({ from, to }) =>
    from && to ? [{ server: nameOfReal(to), from: optionsOf(from), to: optionsOf(to) }] : [],
  );
  const options = {
    ...(whole?.from && { optionsFrom: formatServiceOptions(whole.from).trim() }),
    ...(whole?.to && { optionsTo: formatServiceOptions(whole.to).trim() }),
  };
  const address = service.address.text;
  const fields = { protocol, address, port, ...options, added, removed, edited };
  return {
    ...changeOf('virtual-server', 'virtual server', change, fields),
    ...ownedBy((change === 'removed' ? owners.from : owners.to).ofServer(service), service),
  };
}

function nameOfReal({ address, port }: RealServer): string {
  return joinHostPort(address.text, port);
}

function optionsOf(server: RealServer): string {
  return formatRealServer(server).trim().split(' ').slice(2).join(' ');
}
