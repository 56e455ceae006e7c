import type { Cluster, NodeContext } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { Family } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import type { TableName } from '../kernel/iptables.ts';
import { tableNames } from '../kernel/iptables.ts';
import type { ObjectKind } from '../kernel/kinds.ts';
import type { KernelState } from '../kernel/state.ts';

/** One side of a comparison: a state, what it is known to hold, and the Services it was compiled from where known. */
export interface Side {
  readonly kind: 'manifests' | 'bundle' | 'dump';
  /** What the user called it: a path, or "-". */
  readonly name: string;
  readonly state: KernelState;
  /** A state whose items tell by their origins what the items of `state` are there for; undefined where none does. */
  readonly labels: KernelState | undefined;
  readonly coverage: Coverage;
  /** The families that it was compiled for; both for a dump. */
  readonly families: readonly Family[];
  /** Files of a dump that may have held more than was read. */
  readonly doubts: readonly Doubt[];
  /** Undefined for a dump: it does not tell which Services it came from. */
  readonly services: SideServices | undefined;
}

/** Why a file of a dump may have held more than was read of it. */
export interface Doubt {
  readonly file: string;
  /**
   * Lines that could not be read; nothing at all, as of a tool that failed; an end in the middle of a line; or columns that
   * do not show how real servers are reached.
   */
  readonly kind: 'unread' | 'empty' | 'cut-line' | 'no-forwarding';
}

export interface SideServices {
  readonly cluster: Cluster;
  readonly node: NodeContext;
  readonly settings: ProxySettings;
}

/** What a side can tell of a kernel. What one of two sides cannot tell is no difference between them. */
export interface Coverage extends Readonly<Record<ObjectKind, unknown>> {
  /** For each family the tables of iptables whose rules are known. */
  readonly iptables: Readonly<Record<Family, readonly TableName[]>>;
  /** Families of whose rules a part was printed, as it was meant: what there is of it can be looked at. */
  readonly excerpts?: readonly Family[] | undefined;
  /** Families whose tables of nftables are known. */
  readonly nftables: readonly Family[];
  /** Families that sets, virtual servers and addresses were made for. */
  readonly families: readonly Family[];
  readonly sets: boolean;
  readonly virtualServers: boolean;
  readonly links: boolean;
  readonly sysctls: boolean;
  readonly ipvsTimeouts: boolean;
  readonly modules: boolean;
}

/** What is compiled tells everything: of a family that it was not compiled for, that kube-proxy programs nothing there. */
export function coverAll(): Coverage {
  return {
    iptables: { ipv4: tableNames, ipv6: tableNames },
    nftables: families,
    families,
    sets: true,
    virtualServers: true,
    links: true,
    sysctls: true,
    ipvsTimeouts: true,
    modules: true,
  };
}

/** The tables that kube-proxy works in. */
export const workingTables: readonly TableName[] = ['nat', 'filter'];

/** Whether all of kube-proxy's rules of a family are known. */
export function tellsRules({ iptables }: Coverage, family: Family): boolean {
  return workingTables.every((table) => iptables[family].includes(table));
}

/** Whether kube-proxy's tables of nftables are known, of both families. */
export function tellsNftables({ nftables }: Coverage): boolean {
  return nftables.length === families.length;
}

/** What both can tell. */
export function intersectCoverage(a: Coverage, b: Coverage): Coverage {
  return {
    iptables: {
      ipv4: a.iptables.ipv4.filter((table) => b.iptables.ipv4.includes(table)),
      ipv6: a.iptables.ipv6.filter((table) => b.iptables.ipv6.includes(table)),
    },
    nftables: a.nftables.filter((family) => b.nftables.includes(family)),
    families: a.families.filter((family) => b.families.includes(family)),
    sets: a.sets && b.sets,
    virtualServers: a.virtualServers && b.virtualServers,
    links: a.links && b.links,
    sysctls: a.sysctls && b.sysctls,
    ipvsTimeouts: a.ipvsTimeouts && b.ipvsTimeouts,
    modules: a.modules && b.modules,
  };
}
