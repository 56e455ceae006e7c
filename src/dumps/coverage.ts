import { families, type Family } from '../kernel/address.ts';
import { tableNames, type TableName } from '../kernel/iptables/iptables.ts';
import { objectKinds, type ObjectKind, type KernelState } from '../kernel/state.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import { findNodePortListeners, type FindListeners } from '../kube-proxy/node-port-listeners.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import { setFamily } from '../kube-proxy/ipvs-objects.ts';

const kindsInParts = { iptables: true, nftables: true } satisfies { readonly [K in ObjectKind]?: true };

type WholeKind = Exclude<ObjectKind, keyof typeof kindsInParts>;

export interface Shown extends Readonly<Record<WholeKind, boolean>> {
  readonly iptables: Readonly<Record<Family, readonly TableName[]>>;
  readonly nftables: readonly Family[];
}

/** The position of a table in an nftables listing. Tables are listed in the order in which they were created. */
export interface TableListing {
  readonly listing: string;
  readonly place: number;
}

/** How much of a kernel a side shows. If only one side shows a kind of object, objects of that kind are not reported as differences. */
export interface Coverage extends Shown {
  /** The families for which sets, virtual servers and addresses were compiled or dumped. */
  readonly families: readonly Family[];
  /** The families of whose rules someone deliberately printed only a part, for example with grep. kpc still examines this part. */
  readonly excerpts?: readonly Family[] | undefined;
  readonly listed?: ReadonlyMap<string, TableListing> | undefined;
  /** The families whose addresses `ip addr` printed in full. Undefined if the dump does not show the command. */
  readonly allAddresses?: readonly Family[] | undefined;
  /** The empty files, keyed by the output that their names suggest. */
  readonly empty?: ReadonlyMap<string, string> | undefined;
  /** Whether nft listed only some tables, or whether its listing is cut off at either end. */
  readonly lacksTables?: boolean | undefined;
}

/** Returns the coverage of a compiled state, which shows everything. kube-proxy programs nothing in a family that is not compiled. */
export function coverAll(): Coverage {
  return {
    iptables: { ipv4: tableNames, ipv6: tableNames },
    nftables: families,
    ...wholeKinds(() => true),
    families,
  };
}

export function intersectCoverage(a: Coverage, b: Coverage): Coverage {
  return {
    iptables: { ipv4: common(a.iptables.ipv4, b.iptables.ipv4), ipv6: common(a.iptables.ipv6, b.iptables.ipv6) },
    nftables: common(a.nftables, b.nftables),
    ...wholeKinds((kind) => a[kind] && b[kind]),
    families: common(a.families, b.families),
  };
}

function wholeKinds(isShown: (kind: WholeKind) => boolean): Readonly<Record<WholeKind, boolean>> {
  const kinds = objectKinds.filter((kind): kind is WholeKind => !(kind in kindsInParts));
  return Object.fromEntries(kinds.map((kind) => [kind, isShown(kind)])) as Record<WholeKind, boolean>;
}

function common<T>(a: readonly T[], b: readonly T[]): readonly T[] {
  return a.filter((each) => b.includes(each));
}

export function coverState(state: KernelState, coverage: Coverage): KernelState {
  const isCovered = ({ family }: { readonly family: Family }): boolean => coverage.families.includes(family);
  return {
    iptables: cutRules(state.iptables, coverage.iptables),
    nftables: state.nftables.filter(({ family }) => coverage.nftables.includes(family)),
    sets: coverage.sets ? state.sets.filter((set) => isCovered({ family: setFamily(set) })) : [],
    virtualServers: coverage.virtualServers ? state.virtualServers.filter(isCovered) : [],
    proxyPorts: coverage.proxyPorts ? state.proxyPorts : [],
    links: coverage.links ? state.links.map((link) => ({ ...link, addresses: link.addresses.filter(isCovered) })) : [],
    sysctls: coverage.sysctls ? state.sysctls : new Map(),
    ipvsTimeouts: coverage.ipvsTimeouts ? state.ipvsTimeouts : undefined,
    modules: coverage.modules ? state.modules : [],
  };
}

/** Returns the rules to read Services from: complete tables and, in families of which only an excerpt was printed, all tables. */
export function coverRulesToRead(iptables: FamilyTables, { iptables: shown, excerpts = [] }: Coverage): FamilyTables {
  const readable = (family: Family) => (excerpts.includes(family) ? tableNames : shown[family]);
  return cutRules(iptables, { ipv4: readable('ipv4'), ipv6: readable('ipv6') });
}

function cutRules(iptables: FamilyTables, shown: Shown['iptables']): FamilyTables {
  const cut = families.flatMap((family) => {
    const tables = Object.entries(iptables[family] ?? {}).filter(([name]) => shown[family].includes(name as TableName));
    return iptables[family] ? [[family, Object.fromEntries(tables)] as const] : [];
  });
  return Object.fromEntries(cut);
}

export const workingTables: readonly TableName[] = ['nat', 'filter'];

/** Reports whether a dump shows any kernel object other than tracked flows. */
export function showsAnything(coverage: Coverage): boolean {
  const { iptables, nftables, excerpts = [] } = coverage;
  const parts = [...Object.values(iptables), nftables, excerpts];
  return parts.some(({ length }) => length > 0) || Object.values(wholeKinds((kind) => coverage[kind])).includes(true);
}

export function showsRules({ iptables }: Coverage, family: Family): boolean {
  return workingTables.every((table) => iptables[family].includes(table));
}

/** Reports whether all Services of a mode in a family are known. If so, any other object there belongs to no Service. */
export function showsServices(coverage: Coverage, mode: ProxyMode, family: Family): boolean {
  const shown = {
    ...coverage,
    iptables: showsRules(coverage, family),
    nftables: coverage.nftables.includes(family),
  };
  return modeFacts[mode].serviceKinds.every((kind) => shown[kind]);
}

/** Finds a dump's listeners on node ports. Returns "unknown" rather than an empty list, because the dump may show only some listeners. */
export function findDumpListeners(
  state: KernelState,
  { virtualServers }: Pick<Coverage, 'virtualServers'>,
): FindListeners {
  const find = findNodePortListeners(virtualServers ? state : { ...state, virtualServers: [] });
  return (nodePort) => {
    const listeners = find(nodePort);
    return listeners.kind === 'listed' && listeners.addresses.length === 0 ? { kind: 'unknown' } : listeners;
  };
}
