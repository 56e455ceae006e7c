import type { Address, Family, Network } from '../kernel/address.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import { iptablesPriorities, type Chain, type Rule, type TableName } from '../kernel/iptables/iptables.ts';
import type { Link } from '../kernel/link/link.ts';
import type { Routes } from '../kernel/route/route.ts';
import type { NftChain, NftRule } from '../kernel/nftables/table.ts';
import type { Packet, Way } from './packet.ts';
import { hooks, type Hook, type ProxyListener } from './step.ts';
import type { Reason } from './reason.ts';

/** The listing of nftables tables that are created after all that is shown. */
export const laterTables = 'later';

/** What is known, and what is unknown, about a node apart from what kube-proxy programs. */
export interface Knowledge {
  readonly links: readonly Link[];
  readonly routes: { readonly [F in Family]?: Routes };
  readonly isPod: (address: Address) => boolean;
  /** True for an endpoint on another node, false for a pod on this node, undefined if unknown. */
  readonly isRemote: (address: Address) => boolean | undefined;
  readonly isEndpoint: (address: Address) => boolean;
  readonly isPodHere: (address: Address) => boolean | undefined;
  /** The Service with this address. The label names the asked port, if the Service has that port. */
  readonly serviceAt: (address: Address, protocol: string, port: number | undefined) => ServiceAt | undefined;
  /** Whether the address belongs to a Service, so that no other host has it. */
  readonly isOfService: (address: Address) => boolean;
  /** Whether the node has the address only because the mode gives a Service's address to every node. */
  readonly isOfEveryNode: (address: Address) => boolean;
  readonly hasAllAddresses: (family: Family) => boolean;
  readonly hasAllSysctls: boolean;
  readonly lacksEntries: (set: string) => boolean;
  /** Whether a policy that no listing shows is unknown; otherwise the chain accepts. */
  readonly lacksPolicies: (family: Family, table: TableName) => boolean;
  readonly lacksProxyPorts: boolean;
  readonly listeners: readonly ProxyListener[];
  readonly otherVariant: FamilyTables;
  readonly gaps: readonly Gap[];
  readonly supposed: readonly SupposedJump[];
  readonly supposedChains: readonly SupposedChain[];
  /** For each nftables table ("ipv4 kube-proxy"), the listing that shows it, and its place there, in order of creation. */
  readonly listed: ReadonlyMap<string, { readonly listing: string; readonly place: number }>;
  /** Whether all nftables tables are shown, including those of iptables-nft. */
  readonly listsRuleset: (family: Family) => boolean;
  readonly sendsFrom: { readonly [F in Family]?: Address | undefined } | undefined;
  readonly isOwn: (address: Address) => boolean;
  /** Whether an address is known to be a pod's or Service's although the node's own addresses are unknown. */
  readonly isElsewhere: (address: Address) => boolean;
  /** Guesses whether the node has the packet's destination, if nothing shows it. */
  readonly isLikelyOwn: (packet: Packet) => boolean;
  /** Returns an unknown that could still change how the packet ends. */
  readonly doubtOfEnd: (packet: Packet, end: Pick<Way, 'verdict' | 'steps'>) => Reason | undefined;
}

/** `isHeld`: the mode gives the node this address, so a program there may answer. */
interface ServiceAt {
  readonly label: string;
  readonly isClusterIP: boolean;
  readonly isHeld: boolean;
}

export interface Gap {
  readonly family: Family;
  readonly stations: readonly Station[];
  readonly reason: Reason;
  /** Limits the gap to packets on these interfaces; undefined for all interfaces. A trailing `*` matches any suffix. */
  readonly at?:
    | {
        readonly end: 'input' | 'output';
        readonly interfaces: readonly string[];
        /** Limits the gap to packets that need ARP for one of these addresses; undefined for no limit. */
        readonly addresses?: readonly Network[] | undefined;
      }
    | undefined;
  /** Whether the gap matters to packets with this destination; undefined if it matters to all packets. */
  readonly concerns?:
    ((asked: Pick<Packet, 'destination' | 'port'> & { readonly protocol: string }) => boolean) | undefined;
}

/** A jump that the kernel likely has although no listing shows it. All packets that the jump's rule matches take the jump. */
export type SupposedJump = { readonly family: Family; readonly from: string; readonly to: string } & (
  | { readonly tool: 'iptables'; readonly table: TableName; readonly rule: Rule }
  /** `chain`: the chain that holds the jump, if the state does not show that chain. */
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

export const everywhere: readonly Station[] = hooks.map((hook) => ({ hook, priority: -Infinity }));

/** Where IPVS passes packets to its virtual servers: after table filter on the way in (ip_vs_ops4 in ip_vs_core.c). */
export const ipvsStations: readonly Station[] = [
  { hook: 'input', priority: 99 },
  { hook: 'output', priority: -98 },
];

export function stationsOf(tables: readonly TableName[]): readonly Station[] {
  return tables.flatMap((table) =>
    hooks.flatMap((hook) => {
      const priority = iptablesPriorities[table][hook];
      return priority === undefined ? [] : [{ hook, priority }];
    }),
  );
}
