import type { Address, Network } from '../address.ts';
import type { Family } from '../family.ts';
import type { PortRange } from '../socket-address.ts';

/** Types of routes that decide. The kernel has more, but no packet of a connection meets those. */
export const routeTypes = [
  'unicast',
  'local',
  'broadcast',
  'anycast',
  'multicast',
  'throw',
  'unreachable',
  'prohibit',
  'blackhole',
] as const;

export type RouteType = (typeof routeTypes)[number];

/** Where a route sends packets: through a link, to a gateway or directly to the address. */
export interface NextHop {
  readonly gateway?: Address | undefined;
  readonly link?: string | undefined;
}

export interface Route {
  readonly family: Family;
  /** "local", "main", "default", or another table's name or number. */
  readonly table: string;
  readonly type: RouteType;
  readonly destination: Network;
  /** The sources it applies to; only IPv6 has such routes. */
  readonly from?: Network | undefined;
  /** Of two routes to one network, the lower metric wins. */
  readonly metric: number;
  /** The source address of the node's own packets. */
  readonly source?: Address | undefined;
  /** Several for a multipath route. */
  readonly hops: readonly NextHop[];
}

/** A line of `ip rule`: which table to look up for which packets. */
export interface RoutingRule {
  readonly family: Family;
  readonly priority: number;
  readonly negated: boolean;
  readonly from?: Network | undefined;
  readonly to?: Network | undefined;
  readonly mark?: { readonly value: number; readonly mask: number } | undefined;
  /** "lo" for packets of the node itself. */
  readonly input?: string | undefined;
  readonly output?: string | undefined;
  /** "icmp" for both families. */
  readonly protocol?: string | undefined;
  readonly port?: PortRange | undefined;
  readonly sourcePort?: PortRange | undefined;
  /** Users whose programs' packets it takes, in ip's words. */
  readonly users?: string | undefined;
  /** Its other conditions, in ip's words. */
  readonly other?: string | undefined;
  readonly action: RoutingAction;
  /** Ignores routes with a prefix of this length or shorter. */
  readonly suppressed?: number | undefined;
}

export type RoutingAction =
  | { readonly kind: 'lookup'; readonly table: string }
  | { readonly kind: 'goto'; readonly priority: number }
  | { readonly kind: 'nop' | 'blackhole' | 'unreachable' | 'prohibit' };

export interface RouteAnswer {
  readonly family: Family;
  readonly to: Address;
  /** The source given in the question. */
  readonly from?: Address | undefined;
  readonly mark?: number | undefined;
  readonly input?: string | undefined;
  readonly type: RouteType;
  readonly source?: Address | undefined;
  readonly hop: NextHop;
}

/** The routes of one family, as far as they are known. */
export interface Routes {
  readonly routes: readonly Route[];
  /** The tables that are fully known; undefined for all. */
  readonly tables: ReadonlySet<string> | undefined;
  /** Undefined if unknown. */
  readonly rules: readonly RoutingRule[] | undefined;
  readonly answers: readonly RouteAnswer[];
}

const tableNames: ReadonlyMap<string, string> = new Map([
  ['255', 'local'],
  ['254', 'main'],
  ['253', 'default'],
]);

/** The name of a routing table; ip may print its number. */
export function nameTable(text: string): string {
  return tableNames.get(text) ?? text;
}

/** The rules a kernel starts with. IPv6 has no table `default`. */
export function usualRules(family: Family): readonly RoutingRule[] {
  const rule = (priority: number, table: string): RoutingRule => {
    return { family, priority, negated: false, action: { kind: 'lookup', table } };
  };
  const first = [rule(0, 'local'), rule(32766, 'main')];
  return family === 'ipv4' ? [...first, rule(32767, 'default')] : first;
}

/** The same text for all printed forms of a route. */
export function routeKey({ family, table, type, destination, from, metric, hops, source }: Route): string {
  const ways = hops.map(({ gateway, link }) => `${gateway?.text ?? ''}%${link ?? ''}`);
  return [family, table, type, destination.text, from?.text ?? '', metric, source?.text ?? '', ...ways].join(' ');
}

export function ruleKey({ action, from, to, ...rule }: RoutingRule): string {
  const others = Object.entries(rule).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([from?.text, to?.text, others, action]);
}
