import type { Element } from '../kernel/nftables/element.ts';
import type { Expression, Field, Selector } from '../kernel/nftables/expression.ts';
import type { NftChain, NftRule, NftTable } from '../kernel/nftables/table.ts';
import { hasAddressType, hasState, isInterface, isSourcePortIn, type Flow } from './flow.ts';
import { anyOf, negateIf, type Maybe } from './maybe.ts';
import type { Action, Decision, RuleStep } from './packet.ts';
import { changeMark, meet, takes, type RuleTable } from './run-chain.ts';
import { holds, indexNftSet, type FieldValue, type NftSetLookup } from './set-lookup.ts';

/** Finds the element of a named set or map that holds a key. Undefined for a set that is not there. */
type FindSet = (name: string) => NftSetLookup | undefined;

/** Makes a table ready for packets. Sets are hashed when the first packet asks for them. */
export function prepareNftTable({ name, chains, sets }: NftTable): RuleTable {
  const lookups = new Map<string, NftSetLookup | undefined>();
  const findSet: FindSet = (set) => {
    const found = sets.get(set);
    if (!lookups.has(set)) lookups.set(set, found && indexNftSet(found));
    return lookups.get(set);
  };
  const table: RuleTable = {
    tool: 'nftables',
    name,
    chains,
    runRules: (flow, chainName) => {
      const chain = chains.get(chainName) as NftChain;
      for (const [at, rule] of chain.rules.entries()) {
        const decision = runRule(flow, table, findSet, rule, (action, element) => ({
          kind: 'rule',
          hook: flow.hook,
          tool: 'nftables',
          table: name,
          chain: chain.name,
          position: at + 1,
          rule,
          element,
          origin: element?.origin ?? rule.origin ?? chain.origin,
          action,
        }));
        if (decision) return decision;
      }
      return undefined;
    },
  };
  return table;
}

/** Undefined if the packet goes on to the next rule. */
function runRule(
  flow: Flow,
  table: RuleTable,
  findSet: FindSet,
  rule: NftRule,
  stepOf: (action: Action, element?: Element) => RuleStep,
): Decision | undefined {
  let isMatch: Maybe = true;
  let last: Action = { kind: 'continue' };
  for (const expression of rule.expressions) {
    switch (expression.kind) {
      case 'match': {
        const result = matches(flow, findSet, expression);
        if (result === false) return undefined;
        if (result === undefined) isMatch = undefined;
        break;
      }
      case 'verdict-map': {
        const key = keyOf(flow, expression.key);
        const lookup = findSet(expression.map);
        if (!lookup || key === undefined) return meet(flow, table, isMatch, stepOf(unknownMap(expression.map)));
        const element = key ? lookup(key) : undefined;
        const verdict = element?.value;
        if (!verdict || verdict.kind === 'data') return undefined;
        return meet(flow, table, isMatch, stepOf(verdict, element));
      }
      case 'set-mark':
        if (!takes(flow, isMatch, stepOf(expression))) return undefined;
        isMatch = true;
        flow.mark = changeMark(flow.mark, expression);
        last = expression;
        break;
      case 'write-set':
      case 'counter':
        break;
      case 'unknown': {
        const [, asked] = /^(icmp|icmpv6|igmp|esp|ah|comp|tcp|udp|udplite|sctp|dccp) /.exec(expression.text) ?? [];
        // Fields of another protocol are none of this packet.
        if (asked !== undefined && asked !== headerName(flow)) return undefined;
        return meet(flow, table, isMatch, stepOf(expression));
      }
      default: {
        const action = expression.kind === 'verdict' ? expression.verdict : expression;
        return meet(flow, table, isMatch, stepOf(action));
      }
    }
  }
  const step = stepOf(last);
  if (takes(flow, isMatch, step)) flow.steps.push(step);
  return undefined;
}

function unknownMap(map: string): Action {
  return { kind: 'unknown', text: `vmap @${map}` };
}

function matches(flow: Flow, findSet: FindSet, match: Expression & { readonly kind: 'match' }): Maybe {
  const { left, right, negated } = match;
  const [field] = left;
  if (!field) return undefined;
  const values = right.kind === 'set' ? [] : right.kind === 'value' ? [right.value] : right.values;
  const test = right.kind === 'set' || left.length > 1 ? undefined : testOf(flow, field);
  if (test) {
    if (field.name.endsWith(' sport') && valueOf(flow, field) === null) return false;
    const isTrue = anyOf(values, (value) =>
      value.kind === 'word' ? test(value.text) : value.kind === 'number' ? test(String(value.value)) : undefined,
    );
    return negateIf(negated, isTrue);
  }
  const key = keyOf(flow, left);
  // A rule that asks for a field that the packet does not have ends, whatever it wants of it.
  if (!key) return key === null ? false : undefined;
  if (right.kind !== 'set') return values.some((value) => holds(value, key[0])) !== (negated === true);
  const lookup = findSet(right.set);
  return lookup && negateIf(negated, lookup(key) !== undefined);
}

/** Fields that are asked whether they are something: a connection has states, an address types. */
function testOf(flow: Flow, { name, mask }: Field): ((text: string) => Maybe) | undefined {
  if (mask !== undefined) return undefined;
  if (name === 'ct state' || name === 'ct status') return (text) => hasState(flow, text);
  if (name === 'fib saddr type') return (type) => hasAddressType(flow, flow.source, type);
  if (name === 'fib daddr type') return (type) => hasAddressType(flow, flow.destination, type);
  if (interfaceFields.has(name)) {
    return (text) => isInterface(name.startsWith('i') ? flow.input : flow.output, text, '*');
  }
  return name.endsWith(' sport') ? (port) => isSourcePortIn(Number(port), Number(port)) : undefined;
}

const interfaceFields: ReadonlySet<string> = new Set(['iif', 'iifname', 'oif', 'oifname']);

/** What a packet has in a field; null if it does not have the field, undefined if kpc cannot know. */
type FieldReading = FieldValue | null | undefined;

/** The same for several fields. */
function keyOf(flow: Flow, selector: Selector): readonly FieldValue[] | null | undefined {
  const key: FieldValue[] = [];
  for (const field of selector) {
    const value = valueOf(flow, field);
    if (value === null || value === undefined) return value;
    key.push(value);
  }
  return key;
}

function valueOf(flow: Flow, { name, mask }: Field): FieldReading {
  const value = fieldReaders.get(name)?.(flow);
  if (mask === undefined || value === null) return value;
  return typeof value === 'number' ? (value & mask) >>> 0 : undefined;
}

const fieldReaders: ReadonlyMap<string, (flow: Flow) => FieldReading> = new Map<string, (flow: Flow) => FieldReading>([
  ['mark', ({ mark }) => mark],
  ['meta l4proto', protocolName],
  ['meta nfproto', ({ family }) => family],
  ['iif', ({ input }) => input],
  ['iifname', ({ input }) => input],
  ['oif', ({ output }) => output],
  ['oifname', ({ output }) => output],
  // A new connection has no mark until a rule sets one. No rule that kpc understands does.
  ['ct mark', () => 0],
  ...['ip', 'ip6', 'th', 'tcp', 'udp', 'sctp'].flatMap((protocol) =>
    ['saddr', 'daddr', 'protocol', 'nexthdr', 'sport', 'dport'].map(
      (name) => [`${protocol} ${name}`, (flow: Flow) => payloadOf(flow, protocol, name)] as const,
    ),
  ),
]);

function payloadOf(flow: Flow, protocol: string, name: string): FieldReading {
  if (protocol === 'ip' || protocol === 'ip6') {
    // Tables of the family inet see packets of both.
    if ((protocol === 'ip') !== (flow.family === 'ipv4')) return null;
    if (name === 'saddr') return flow.source;
    if (name === 'daddr') return flow.destination;
    return name === 'protocol' || name === 'nexthdr' ? protocolName(flow) : undefined;
  }
  // A ping has no ports: the bytes in their place never match a Service.
  if (protocol === 'th' ? flow.protocol === 'icmp' : flow.protocol !== protocol) return null;
  return name === 'dport' ? flow.port : undefined;
}

/** The header that follows that of IP. */
function headerName({ protocol, family }: Flow): string {
  return protocol === 'icmp' && family === 'ipv6' ? 'icmpv6' : protocol;
}

/** As nft calls it. */
function protocolName({ protocol, family }: Flow): string {
  return protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol;
}
