import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import type { Chain, Rule, TableName } from '../kernel/iptables/iptables.ts';
import type { Link } from '../kernel/link/link.ts';
import type { Routes } from '../kernel/route/route.ts';
import type { NftChain, NftRule } from '../kernel/nftables/table.ts';
import type { Packet, Way } from './packet.ts';
import { hooks, type Hook, type Listener } from './step.ts';
import type { Reason } from './reason.ts';

/** What is known of a node besides the state that kube-proxy has a part in, and what is not known. */
export interface Knowledge {
  /** Its own links, without those that kube-proxy makes. */
  readonly links: readonly Link[];
  /** Its routes, as far as they are listed. */
  readonly routes: { readonly [F in Family]?: Routes };
  /** Whether an address is of a network that the rules take for pods. */
  readonly isPod: (address: Address) => boolean;
  /** Whether an address is an endpoint's on another node; and whether it is a pod's on this node. Undefined if it is not known. */
  readonly isRemote: (address: Address) => boolean | undefined;
  readonly isPodHere: (address: Address) => boolean | undefined;
  /** The Service whose cluster IP an address is, which no pod has: connections are translated once. */
  readonly serviceAt: (address: Address) => ServiceAt | undefined;
  /** Whether it has no other addresses of a family than those of its links and of the state. */
  readonly hasAllAddresses: (family: Family) => boolean;
  /** Whether a sysctl that the state does not have is as the kernel sets it. */
  readonly hasAllSysctls: boolean;
  /** Whether sets may have more entries than the state has. */
  readonly lacksEntries: boolean;
  /** Whether a policy that a table of iptables does not say may be any. Without it, such a chain accepts. */
  readonly lacksPolicies: (family: Family, table: TableName) => boolean;
  /** Whether kube-proxy itself, or a balancer, takes connections at ports that the state does not have. */
  readonly lacksProxyPorts: boolean;
  /** Where kube-proxy itself listens, by no rule and no part of the state. */
  readonly listeners: readonly Listener[];
  /** Rules of the variant of iptables that the state's are not of. */
  readonly otherVariant: FamilyTables;
  /** What may see packets and is not known. */
  readonly gaps: readonly Gap[];
  /** Jumps that the state does not have, and that likely are there. */
  readonly supposed: readonly SupposedJump[];
  /** Chains of iptables that the state does not have, or has without rules, and that likely are like these. */
  readonly supposedChains: readonly SupposedChain[];
  /**
   * The listing and the place in it of tables of nftables, by family and name ("ipv4 kube-proxy"). Tables are listed in the order
   * of their making. Two tables of one listing are in a known order; all others are not.
   */
  readonly listed: ReadonlyMap<string, { readonly listing: string; readonly place: number }>;
  /** The addresses that the node's own packets have for source; undefined where its links decide. */
  readonly sendsFrom: { readonly [F in Family]?: Address | undefined } | undefined;
  /** Whether rules show an address to be the node's, whatever is known of its links. */
  readonly isOwn: (address: Address) => boolean;
  /** Whether an address is a pod's or a Service's, and so none of the node's, where the node's addresses are not known. */
  readonly isElsewhere: (address: Address) => boolean;
  /** Whether the destination of a packet is likely the node's own, where that is not known. */
  readonly isLikelyOwn: (packet: Packet) => boolean;
  /** What is not known and decides whether a packet that ends so, by what is known, does; undefined if nothing does. */
  readonly doubtOfEnd: (packet: Packet, end: Pick<Way, 'verdict' | 'steps'>) => Reason | undefined;
}

/** A Service; `isHeld`: if the mode gives the node the address, so that a program of the node may answer there. */
interface ServiceAt {
  readonly label: string;
  readonly isHeld: boolean;
}

/** Something that sees packets, and that kpc has not read. */
export interface Gap {
  readonly family: Family;
  readonly stations: readonly Station[];
  readonly reason: Reason;
  /** If it sees only packets that come in or go out by these: names, with `*` at the end for all that begin so. */
  readonly at?: { readonly end: 'input' | 'output'; readonly interfaces: readonly string[] } | undefined;
}

/** A rule that goes on to another chain for all packets that it matches. */
export type SupposedJump = { readonly family: Family; readonly from: string; readonly to: string } & (
  | { readonly tool: 'iptables'; readonly table: TableName; readonly rule: Rule }
  /** `chain`: where it is, if the state does not have that, either. */
  | { readonly tool: 'nftables'; readonly table: string; readonly chain: NftChain; readonly rule: NftRule }
);

interface SupposedChain {
  readonly family: Family;
  readonly table: TableName;
  readonly chain: Chain;
}

/** Where rules see packets. */
export interface Station {
  readonly hook: Hook;
  readonly priority: number;
}

/** Every place where a table may see packets, before all that is known to be there. */
export const everywhere: readonly Station[] = hooks.map((hook) => ({ hook, priority: -Infinity }));

/** Where IPVS takes packets to its virtual servers: after filter on the way in (ip_vs_ops4 in ip_vs_core.c). */
export const ipvsStations: readonly Station[] = [
  { hook: 'input', priority: 99 },
  { hook: 'output', priority: -98 },
];

/** Where tables of iptables see packets: the priority at each hook (linux/netfilter_ipv4.h). */
export const iptablesPriorities: { readonly [T in TableName]: { readonly [H in Hook]?: number } } = {
  raw: { prerouting: -300, output: -300 },
  mangle: { prerouting: -150, input: -150, forward: -150, output: -150, postrouting: -150 },
  nat: { prerouting: -100, output: -100, input: 100, postrouting: 100 },
  filter: { input: 0, forward: 0, output: 0 },
  security: { input: 50, forward: 50, output: 50 },
};

/** Where these tables of iptables see packets. */
export function stationsOf(tables: readonly TableName[]): readonly Station[] {
  return tables.flatMap((table) =>
    hooks.flatMap((hook) => {
      const priority = iptablesPriorities[table][hook];
      return priority === undefined ? [] : [{ hook, priority }];
    }),
  );
}

/** All is known: what a compiled state needs. `links` are the node's own. */
export function knowAll(links: readonly Link[], sendsFrom?: Knowledge['sendsFrom']): Knowledge {
  return {
    links,
    routes: {},
    isPod: () => false,
    serviceAt: () => undefined,
    isRemote: () => undefined,
    isPodHere: () => undefined,
    hasAllAddresses: () => true,
    hasAllSysctls: true,
    lacksEntries: false,
    lacksPolicies: () => false,
    lacksProxyPorts: false,
    listeners: [],
    otherVariant: {},
    gaps: [],
    supposed: [],
    supposedChains: [],
    listed: new Map(),
    sendsFrom,
    isOwn: () => false,
    isElsewhere: () => false,
    isLikelyOwn: () => false,
    doubtOfEnd: () => undefined,
  };
}
