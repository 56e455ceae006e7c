import type { Address, Network } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import type { Chain, Rule, TableName } from '../kernel/iptables/iptables.ts';
import type { Link } from '../kernel/link/link.ts';
import type { Routes } from '../kernel/route/route.ts';
import type { NftChain, NftRule } from '../kernel/nftables/table.ts';
import type { Packet, Way } from './packet.ts';
import { hooks, type Hook, type ProxyListener } from './step.ts';
import type { Reason } from './reason.ts';

/** What is known and unknown of a node besides what kube-proxy programs. */
export interface Knowledge {
  /** Without links that kube-proxy makes. */
  readonly links: readonly Link[];
  readonly routes: { readonly [F in Family]?: Routes };
  readonly isPod: (address: Address) => boolean;
  /** Whether an address is an endpoint on another node (true) or a pod on this node (false). Undefined if unknown. */
  readonly isRemote: (address: Address) => boolean | undefined;
  readonly isPodHere: (address: Address) => boolean | undefined;
  /** The Service with this address. Its port, if it has the asked one. */
  readonly serviceAt: (address: Address, protocol: string, port: number | undefined) => ServiceAt | undefined;
  /** Whether it is an address of a Service: no host beside the node has it. */
  readonly isOfService: (address: Address) => boolean;
  /** Whether the node has the address only because the mode gives every node of the cluster that of a Service. */
  readonly isOfEveryNode: (address: Address) => boolean;
  /** Whether the links and the state show all of the node's addresses of a family. */
  readonly hasAllAddresses: (family: Family) => boolean;
  /** Whether a sysctl that is not in the state has the kernel's default. */
  readonly hasAllSysctls: boolean;
  /** Whether sets may have entries that the state does not show. */
  readonly lacksEntries: boolean;
  /** Whether a policy that an iptables table does not show is unknown. If not, the chain accepts. */
  readonly lacksPolicies: (family: Family, table: TableName) => boolean;
  /** Whether kube-proxy itself or a balancer may listen at ports that the state does not show. */
  readonly lacksProxyPorts: boolean;
  /** Where kube-proxy itself listens without a trace in the state. */
  readonly listeners: readonly ProxyListener[];
  /** Rules of the other iptables variant (legacy or nft) than the state's. */
  readonly otherVariant: FamilyTables;
  /** Unknown things that may see packets. */
  readonly gaps: readonly Gap[];
  /** Jumps that the state does not show but likely has. */
  readonly supposed: readonly SupposedJump[];
  /** Iptables chains that the state lacks or shows empty, with their likely rules. */
  readonly supposedChains: readonly SupposedChain[];
  /** For each nftables table ("ipv4 kube-proxy"), its listing and place there: one listing is in order of creation. */
  readonly listed: ReadonlyMap<string, { readonly listing: string; readonly place: number }>;
  /** Whether the tables of nftables are all shown, with those of iptables-nft. */
  readonly listsRuleset: (family: Family) => boolean;
  /** Source addresses of the node's own packets; undefined if its links decide. */
  readonly sendsFrom: { readonly [F in Family]?: Address | undefined } | undefined;
  /** Whether rules show an address to be the node's, even without known links. */
  readonly isOwn: (address: Address) => boolean;
  /** Whether an address is known to be a pod's or Service's, if the node's own are unknown. */
  readonly isElsewhere: (address: Address) => boolean;
  /** Whether a packet's destination is likely the node itself, when that is unknown. */
  readonly isLikelyOwn: (packet: Packet) => boolean;
  /** An unknown that could still change how this packet ends, if any. */
  readonly doubtOfEnd: (packet: Packet, end: Pick<Way, 'verdict' | 'steps'>) => Reason | undefined;
}

/** `isHeld`: the node has this address by its mode, so a program there may answer. */
interface ServiceAt {
  readonly label: string;
  readonly isClusterIP: boolean;
  readonly isHeld: boolean;
}

/** Something that sees packets and that kpc could not read. */
export interface Gap {
  readonly family: Family;
  readonly stations: readonly Station[];
  readonly reason: Reason;
  /** The interfaces whose packets it sees, if not all; a trailing `*` matches further characters. */
  readonly at?:
    | {
        readonly end: 'input' | 'output';
        readonly interfaces: readonly string[];
        /** The addresses that a packet's neighbours need to resolve, if it is not for all. */
        readonly addresses?: readonly Network[] | undefined;
      }
    | undefined;
  /** Whether it matters to packets that were sent there; undefined if to all. */
  readonly concerns?:
    ((asked: Pick<Packet, 'destination' | 'port'> & { readonly protocol: string }) => boolean) | undefined;
}

/** A rule that sends all packets it matches on to another chain. */
export type SupposedJump = { readonly family: Family; readonly from: string; readonly to: string } & (
  | { readonly tool: 'iptables'; readonly table: TableName; readonly rule: Rule }
  /** `chain`: the jump's chain, if the state does not show it. */
  | { readonly tool: 'nftables'; readonly table: string; readonly chain: NftChain; readonly rule: NftRule }
);

interface SupposedChain {
  readonly family: Family;
  readonly table: TableName;
  readonly chain: Chain;
}

export interface Station {
  readonly hook: Hook;
  readonly priority: number;
}

/** Every place of a table that may see packets, ahead of all known tables. */
export const everywhere: readonly Station[] = hooks.map((hook) => ({ hook, priority: -Infinity }));

/** Where IPVS takes packets to its virtual servers: after filter on the way in (ip_vs_ops4 in ip_vs_core.c). */
export const ipvsStations: readonly Station[] = [
  { hook: 'input', priority: 99 },
  { hook: 'output', priority: -98 },
];

/** The priorities of iptables tables at each hook (linux/netfilter_ipv4.h). */
export const iptablesPriorities: { readonly [T in TableName]: { readonly [H in Hook]?: number } } = {
  raw: { prerouting: -300, output: -300 },
  mangle: { prerouting: -150, input: -150, forward: -150, output: -150, postrouting: -150 },
  nat: { prerouting: -100, output: -100, input: 100, postrouting: 100 },
  filter: { input: 0, forward: 0, output: 0 },
  security: { input: 50, forward: 50, output: 50 },
};

export function stationsOf(tables: readonly TableName[]): readonly Station[] {
  return tables.flatMap((table) =>
    hooks.flatMap((hook) => {
      const priority = iptablesPriorities[table][hook];
      return priority === undefined ? [] : [{ hook, priority }];
    }),
  );
}
