import { type Address, contains, type Family, type Network } from '../address.ts';
import type { IpsecPolicy } from './ipsec.ts';
import type { PortRange } from '../ports-and-marks.ts';

/** Route types that decide about a packet. The kernel's other types affect no packet of a connection. */
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

export interface NextHop {
  readonly gateway?: Address | undefined;
  readonly link?: string | undefined;
  /** If `dead`, the kernel uses another route. If `linkdown`, it uses this one, and packets are lost. */
  readonly down?: 'dead' | 'linkdown' | undefined;
}

export interface Route {
  readonly family: Family;
  readonly table: string;
  readonly type: RouteType;
  readonly destination: Network;
  /** The sources that the route applies to. Only IPv6 has such routes. */
  readonly from?: Network | undefined;
  /** Among routes to the same network, the lowest metric wins. */
  readonly metric: number;
  /**
   * The preference that a router advertised. Among IPv6 routes of one metric, the most preferred wins (rt6_score_route), then the first.
   */
  readonly preference?: RoutePreference | undefined;
  /** The route's line, if kpc does not read some of its words, such as encap. */
  readonly unread?: string | undefined;
  readonly source?: Address | undefined;
  readonly hops: readonly NextHop[];
}

export const routePreferences = ['low', 'medium', 'high'] as const;

type RoutePreference = (typeof routePreferences)[number];

export interface RoutingRule {
  readonly family: Family;
  readonly priority: number;
  readonly negated: boolean;
  readonly from?: Network | undefined;
  readonly to?: Network | undefined;
  readonly mark?: { readonly value: number; readonly mask: number } | undefined;
  readonly input?: string | undefined;
  readonly output?: string | undefined;
  readonly protocol?: string | undefined;
  readonly port?: PortRange | undefined;
  readonly sourcePort?: PortRange | undefined;
  /** The uids that the rule applies to, in ip's words. */
  readonly users?: string | undefined;
  /** Further conditions, in ip's words. */
  readonly other?: string | undefined;
  readonly action: RoutingAction;
  /** The rule ignores routes with a prefix of this length or shorter. */
  readonly suppressed?: number | undefined;
}

export type RoutingAction =
  | { readonly kind: 'lookup'; readonly table: string }
  | { readonly kind: 'goto'; readonly priority: number }
  | { readonly kind: 'nop' | 'blackhole' | 'unreachable' | 'prohibit' };

export interface RouteAnswer {
  readonly family: Family;
  readonly to: Address;
  readonly from?: Address | undefined;
  readonly mark?: number | undefined;
  readonly input?: string | undefined;
  readonly type: RouteType;
  readonly source?: Address | undefined;
  readonly hop: NextHop;
}

export interface Routes {
  readonly routes: readonly Route[];
  /** The tables that are fully known; undefined if all are. */
  readonly tables: ReadonlySet<string> | undefined;
  readonly rules: readonly RoutingRule[] | undefined;
  readonly answers: readonly RouteAnswer[];
  /** Addresses of other hosts for which the node answers on a link (proxy ARP or NDP). */
  readonly proxied: readonly ProxiedAddress[];
  readonly policies: readonly IpsecPolicy[];
}

export interface ProxiedAddress {
  readonly address: Address;
  readonly link: string;
}

const tableNames: ReadonlyMap<string, string> = new Map([
  ['255', 'local'],
  ['254', 'main'],
  ['253', 'default'],
]);

export function nameRoutingTable(text: string): string {
  return tableNames.get(text) ?? text;
}

/** Returns the rules that a kernel starts with. IPv6 has no table `default`. */
function usualRules(family: Family): readonly RoutingRule[] {
  const rule = (priority: number, table: string): RoutingRule => {
    return { family, priority, negated: false, action: { kind: 'lookup', table } };
  };
  const first = [rule(0, 'local'), rule(32766, 'main')];
  return family === 'ipv4' ? [...first, rule(32767, 'default')] : first;
}

/** Returns the same text for all printed forms of a route. */
export function routeKey({ family, table, type, destination, from, metric, hops, source }: Route): string {
  const ways = hops.map(({ gateway, link }) => `${gateway?.text ?? ''}%${link ?? ''}`);
  return [family, table, type, destination.text, from?.text ?? '', metric, source?.text ?? '', ...ways].join(' ');
}

/**
 * Returns equal texts for routes that replace each other in a table, or join as next hops of one route. Each link has its own routes to its
 * networks.
 */
export function routePlace({ family, table, type, destination, from, metric, hops }: Route): string {
  const links = hops.flatMap(({ gateway, link }) => (gateway ? [] : (link ?? [])));
  return [family, table, type, destination.text, from?.text ?? '', metric, ...links].join(' ');
}

export function ruleKey({ action, from, to, ...rule }: RoutingRule): string {
  const others = Object.entries(rule).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([from?.text, to?.text, others, action]);
}

export interface RouteQuestion {
  readonly to: Address;
  /** Undefined if the node itself sends the packet and has not chosen a source. */
  readonly from: Address | undefined;
  readonly mark: number;
  /** "lo" for a packet that the node sends; undefined if unknown. */
  readonly input: string | undefined;
  /** The link to which the program is bound, or which the kernel's check names. */
  readonly output?: string | undefined;
  /** Absent in the kernel's own lookups, which never match a rule on ports. */
  readonly transport?: Transport | undefined;
}

/** A packet's ports; absent if it has none. A port that the client's kernel chose is a range. */
export interface Transport {
  readonly protocol: string;
  readonly port: PortRange | undefined;
  readonly sourcePort: PortRange | undefined;
}

export type RouteResult =
  | { readonly kind: 'route'; readonly route: Pick<Route, 'type' | 'source' | 'hops'> }
  | { readonly kind: 'none'; readonly why: 'no-route' | 'blackhole' | 'unreachable' | 'prohibit' }
  | { readonly kind: 'open'; readonly lacks: 'rules' | 'table'; readonly table?: string }
  | { readonly kind: 'unread'; readonly text: string }
  /** Both possible results, if the question does not decide whether a rule applies. */
  | { readonly kind: 'either'; readonly rule: RoutingRule; readonly taken: RouteResult; readonly passed: RouteResult };

/**
 * Looks up a route like the kernel (fib_rules_lookup, fib_table_lookup; fib6_rule_lookup): rule by rule, in each table the longest prefix,
 * then the lowest metric. Goes on with the next rule if the route is of type throw, or if its prefix is too short for the rule.
 */
export function lookupRoute(family: Family, known: Routes, question: RouteQuestion): RouteResult {
  const found = followRules(family, known, question);
  if (found.kind === 'route' || found.kind === 'none') return found;
  const answer = known.answers.find((each) => isAnswerTo(each, question));
  return answer ? { kind: 'route', route: { ...answer, hops: [answer.hop] } } : found;
}

function isAnswerTo(answer: RouteAnswer, { to, from, mark, input }: RouteQuestion): boolean {
  const isFrom = answer.from === undefined || answer.from.text === from?.text;
  return answer.to.text === to.text && isFrom && (answer.mark ?? 0) === mark && (answer.input ?? input) === input;
}

function followRules(family: Family, known: Routes, question: RouteQuestion): RouteResult {
  const { routes, tables, rules: given } = known;
  // The default rules lead only to these tables, so a route in any other table proves that there are more rules.
  const isUsual = !given && tables === undefined && routes.every(({ table }) => usualTables.has(table));
  if (!given && tables === undefined && !isUsual) return { kind: 'open', lacks: 'rules' };
  const rules = (given ?? usualRules(family)).toSorted((a, b) => a.priority - b.priority);
  const follow = (start: number, forks: number): RouteResult => {
    if (forks > mostForks) return { kind: 'open', lacks: 'rules' };
    for (let at = start; at < rules.length; at++) {
      const rule = rules[at];
      const isMatch = rule?.action.kind !== 'nop' && rule && matchesRule(rule, question);
      if (!rule || isMatch === false) continue;
      const { action } = rule;
      const next = action.kind === 'goto' ? rules.findIndex(({ priority }) => priority === action.priority) : at + 1;
      // The kernel skips a goto rule whose target is missing.
      const after = next > at ? next : at + 1;
      const taken = action.kind === 'goto' ? undefined : applyRoutingRule(rule, known, question);
      if (isMatch === undefined) {
        const passed = follow(at + 1, forks + 1);
        const either = taken ?? (after === at + 1 ? passed : follow(after, forks + 1));
        return isSameRoute(either, passed) ? passed : { kind: 'either', rule, taken: either, passed };
      }
      if (taken) return taken;
      at = after - 1;
    }
    return { kind: 'none', why: 'no-route' };
  };
  return follow(0, 0);
}

/** The number of undecided rules after which kpc gives up. */
const mostForks = 8;

function isSameRoute(a: RouteResult, b: RouteResult): boolean {
  if (a.kind === 'route') return b.kind === 'route' && a.route === b.route;
  if (a.kind === 'none') return b.kind === 'none' && a.why === b.why;
  return a === b;
}

function applyRoutingRule({ action, suppressed }: RoutingRule, { routes, tables }: Routes, question: RouteQuestion) {
  if (action.kind === 'nop' || action.kind === 'goto') return undefined;
  if (action.kind !== 'lookup') return { kind: 'none', why: action.kind } as const;
  const route = findRoute(routes, action.table, question);
  const isTooShort = route !== undefined && route.destination.prefixLength <= (suppressed ?? -1);
  if (!route && tables && !tables.has(action.table)) {
    // The table `default` is empty in practice. `local` only lists the node's own addresses, which were looked up before.
    if (action.table === 'default' || action.table === 'local') return undefined;
    return { kind: 'open', lacks: 'table', table: action.table } as const;
  }
  if (!route || isTooShort || route.type === 'throw') return undefined;
  if (route.unread !== undefined) return { kind: 'unread', text: route.unread } as const;
  if (route.type === 'blackhole' || route.type === 'unreachable' || route.type === 'prohibit')
    return { kind: 'none', why: route.type } as const;
  return { kind: 'route', route } as const;
}

const usualTables: ReadonlySet<string> = new Set(['local', 'main', 'default']);

function matchesRule(rule: RoutingRule, question: RouteQuestion): boolean | undefined {
  const { to, from, mark, input, output, transport } = question;
  const { mark: asked } = rule;
  const parts = new Set([
    !rule.from || (from ? contains(rule.from, from) : rule.from.prefixLength === 0),
    !rule.to || contains(rule.to, to),
    !asked || ((mark ^ asked.value) & asked.mask) === 0,
    rule.output === undefined || rule.output === output,
    rule.input === undefined || (input === undefined ? undefined : rule.input === input),
    rule.protocol === undefined || rule.protocol === transport?.protocol,
    coversPorts(rule.port, transport?.port),
    coversPorts(rule.sourcePort, transport?.sourcePort),
    rule.users === undefined || isOfUsers(rule.users, input),
    rule.other === undefined ? true : undefined,
  ]);
  if (parts.has(false)) return rule.negated;
  return parts.has(undefined) ? undefined : !rule.negated;
}

function coversPorts(asked: PortRange | undefined, port: PortRange | undefined): boolean | undefined {
  if (!asked) return true;
  if (!port || port.last < asked.first || port.first > asked.last) return false;
  return asked.first <= port.first && port.last <= asked.last ? true : undefined;
}

/**
 * Reports whether one of `users` sends the packet; undefined for the node's own packets, whose user is unknown. Forwarded packets count as
 * root's.
 */
function isOfUsers(users: string, input: string | undefined): boolean | undefined {
  return input === undefined || input === 'lo' ? undefined : /^0+(?:-|$)/.test(users);
}

function findRoute(routes: readonly Route[], table: string, { to, from, output }: RouteQuestion): Route | undefined {
  let best: Route | undefined;
  for (const route of routes) {
    if (route.table !== table || route.destination.family !== to.family || !contains(route.destination, to)) continue;
    if (route.from && !(from && contains(route.from, from))) continue;
    if (route.hops.length > 0 && route.hops.every(({ down }) => down === 'dead')) continue;
    if (output !== undefined && !route.hops.some(({ link }) => link === output)) continue;
    if (!best || isBetter(route, best)) best = route;
  }
  return best;
}

function isBetter(a: Route, b: Route): boolean {
  const more =
    a.destination.prefixLength - b.destination.prefixLength ||
    b.metric - a.metric ||
    routePreferences.indexOf(a.preference ?? 'medium') - routePreferences.indexOf(b.preference ?? 'medium');
  return more > 0;
}
