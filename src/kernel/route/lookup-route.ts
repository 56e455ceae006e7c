import { contains, type Address } from '../address.ts';
import type { Family } from '../family.ts';
import { usualRules, type Route, type RouteAnswer, type Routes, type RoutingRule } from './route.ts';

/** A packet, as rules of routing see it. */
export interface RouteQuestion {
  readonly to: Address;
  /** Undefined for a packet of the node itself that has no source yet. */
  readonly from: Address | undefined;
  readonly mark: number;
  /** "lo" for one of the node itself; undefined if it is not known. */
  readonly input: string | undefined;
  /** The link that a program is bound to, or that a check asks for. */
  readonly output?: string | undefined;
}

/** What the routes say of a packet. */
export type Found =
  | {
      readonly kind: 'route';
      readonly route: Pick<Route, 'type' | 'source' | 'hops'> & { readonly isLinked?: boolean };
    }
  /** No route, or a rule or route that forbids it. */
  | { readonly kind: 'none'; readonly why: 'no-route' | 'blackhole' | 'unreachable' | 'prohibit' }
  /** A table that is not known, the rules, or a rule that asks what no packet here says. */
  | {
      readonly kind: 'open';
      readonly lacks: 'rules' | 'table' | 'input';
      readonly table?: string;
      readonly rule?: RoutingRule;
    };

/**
 * Looks a packet up as the kernel does (fib_rules_lookup and fib_table_lookup; fib6_rule_lookup): rule by rule, in each table the longest
 * prefix, and of one prefix the lowest metric. Routes of type throw, or too short for a rule, leave it to the next rule.
 */
export function lookupRoute(family: Family, known: Routes, question: RouteQuestion): Found {
  const found = followRules(family, known, question);
  if (found.kind !== 'open') return found;
  const answer = known.answers.find((each) => isAnswerTo(each, question));
  return answer ? { kind: 'route', route: { ...answer, hops: [answer.hop] } } : found;
}

function isAnswerTo(answer: RouteAnswer, { to, from, mark, input }: RouteQuestion): boolean {
  const isFrom = answer.from === undefined || answer.from.text === from?.text;
  return answer.to.text === to.text && isFrom && (answer.mark ?? 0) === mark && (answer.input ?? input) === input;
}

function followRules(family: Family, known: Routes, question: RouteQuestion): Found {
  const { routes, tables, rules: given } = known;
  // A rule can lead nowhere but to a table with routes.
  const isUsual = !given && tables === undefined && routes.every(({ table }) => usualTables.has(table));
  if (!given && tables === undefined && !isUsual) return { kind: 'open', lacks: 'rules' };
  const rules = given ?? usualRules(family);
  let from = -1;
  for (const rule of rules.toSorted((a, b) => a.priority - b.priority)) {
    if (rule.priority < from) continue;
    const isMatch = matchesRule(rule, question);
    if (isMatch === false) continue;
    const { action } = rule;
    if (isMatch === undefined) {
      const lacks = rule.other === undefined ? 'input' : 'rules';
      // Where its table would say nothing else, it makes no difference.
      if (action.kind === 'nop') continue;
      return { kind: 'open', lacks, rule };
    }
    if (action.kind === 'nop') continue;
    if (action.kind === 'goto') {
      from = action.priority;
      continue;
    }
    if (action.kind !== 'lookup') return { kind: 'none', why: action.kind };
    const route = findRoute(routes, action.table, question);
    const isTooShort = route !== undefined && route.destination.prefixLength <= (rule.suppressed ?? -1);
    if (!route && tables && !tables.has(action.table)) {
      // The node's own addresses are asked for before; nobody uses the table for what the others lack.
      if (action.table === 'default' || action.table === 'local') continue;
      return { kind: 'open', lacks: 'table', table: action.table };
    }
    if (!route || isTooShort || route.type === 'throw') continue;
    if (route.type === 'blackhole' || route.type === 'unreachable' || route.type === 'prohibit')
      return { kind: 'none', why: route.type };
    return { kind: 'route', route };
  }
  return { kind: 'none', why: 'no-route' };
}

const usualTables: ReadonlySet<string> = new Set(['local', 'main', 'default']);

/** Undefined if it is not known. */
function matchesRule(rule: RoutingRule, { to, from, mark, input, output }: RouteQuestion): boolean | undefined {
  const { mark: asked } = rule;
  const isFrom = !rule.from || (from ? contains(rule.from, from) : rule.from.prefixLength === 0);
  const isTo = !rule.to || contains(rule.to, to);
  const isMarked = !asked || ((mark ^ asked.value) & asked.mask) === 0;
  const isOut = rule.output === undefined || rule.output === output;
  const isKnown = rule.input === undefined || input !== undefined;
  const isIn = rule.input === undefined || rule.input === input;
  const isSo = isFrom && isTo && isMarked && isOut && (isIn || !isKnown);
  if (isSo && (!isKnown || rule.other !== undefined)) return undefined;
  return isSo !== rule.negated;
}

function findRoute(routes: readonly Route[], table: string, { to, from, output }: RouteQuestion): Route | undefined {
  let best: Route | undefined;
  for (const route of routes) {
    if (route.table !== table || route.destination.family !== to.family || !contains(route.destination, to)) continue;
    if (route.from && !(from && contains(route.from, from))) continue;
    if (output !== undefined && !route.hops.some(({ link }) => link === output)) continue;
    if (!best || isBetter(route, best)) best = route;
  }
  return best;
}

function isBetter(a: Route, b: Route): boolean {
  const more = a.destination.prefixLength - b.destination.prefixLength;
  return more === 0 ? a.metric < b.metric : more > 0;
}
