import { singleAddress } from '../kernel/address-range.ts';
import { compareAddresses, contains, type Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import { keyMeaning } from '../kernel/nftables/nft-meaning.ts';
import type { Element, Value } from '../kernel/nftables/element.ts';
import type { Expression, Field, Selector } from '../kernel/nftables/expression.ts';
import type { NftChain, NftMap, NftRule, NftSet, NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import { hasAddressType, hasState, isInterface, isSourcePortIn, type Flow } from './flow.ts';
import { anyOf, negateIf, type Maybe } from './maybe.ts';
import { hooks, type Action, type Decision, type RuleStep } from './packet.ts';
import { changeMark, meet, takes, type BaseChain, type RuleTable } from './run-chain.ts';

/** Finds the element of a named set or map that holds a key. Undefined for a set that is not there. */
type FindSet = (name: string, asked: Selector) => NftSetLookup | undefined;

/** The tables of a family, ready for packets. Sets are hashed when the first packet asks for them. */
export function nftTablesOf(state: KernelState, family: Family): readonly RuleTable[] {
  return state.nftables.filter((table) => table.family === family).map(prepareTable);
}

function prepareTable({ name, chains, sets }: NftTable): RuleTable {
  const lookups = new Map<string, NftSetLookup | undefined>();
  const findSet: FindSet = (set, asked) => {
    const sourceAt = asked.findIndex(isSource);
    const key = `${sourceAt} ${set}`;
    const found = sets.get(set);
    if (!lookups.has(key)) lookups.set(key, found && indexNftSet(found, sourceAt));
    return lookups.get(key);
  };
  const bases = [...chains.values()].flatMap(({ name: chain, base }): readonly BaseChain[] => {
    const hook = hooks.find((each) => each === base?.hook);
    if (!base || !hook) return [];
    return [{ chain, hook, priority: base.priority, isNat: base.type === 'nat', drops: base.policy === 'drop' }];
  });
  const table: RuleTable = {
    tool: 'nftables',
    name,
    chains,
    bases,
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
        const lookup = findSet(expression.map, expression.key);
        if (!lookup || key === undefined) return meet(flow, table, isMatch, stepOf(unknownMap(expression.map)));
        const element = key ? lookup(flow, key) : undefined;
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
  if (right.kind === 'set') {
    const key = keyOf(flow, left);
    // A rule that asks for a field that the packet does not have ends, whatever it wants of it.
    if (!key) return key === null ? false : undefined;
    const lookup = findSet(right.set, left);
    return lookup && negateIf(negated, lookup(flow, key) !== undefined);
  }
  const [field, other] = left;
  if (!field || other) return undefined;
  const found = readField(flow, field);
  if (found === null || found === undefined) return found === null ? false : undefined;
  const values = right.kind === 'value' ? [right.value] : right.values;
  if (isSource(field)) for (const value of values) flow.choices.sources.add(value);
  return negateIf(
    negated,
    anyOf(values, (value) => (typeof found === 'function' ? found(value) : holds(value, found))),
  );
}

function isSource(field: Field): boolean {
  return field.name.endsWith(' saddr') && field.mask === undefined;
}

/** What a packet has in some fields; null if it does not have one of them, undefined if kpc cannot know. */
function keyOf(flow: Flow, selector: Selector): readonly FieldValue[] | null | undefined {
  const key: FieldValue[] = [];
  for (const field of selector) {
    const value = readField(flow, field);
    if (value === null || value === undefined) return value;
    if (typeof value === 'function') return undefined;
    key.push(value);
  }
  return key;
}

/** The same of one field; or whether it is something, for those that are several: a connection has states, an address types. */
type FieldReading = FieldValue | ((value: Value) => Maybe) | null | undefined;

function readField(flow: Flow, { name, mask }: Field): FieldReading {
  const found = fieldReaders.get(name)?.(flow);
  if (mask === undefined || found === null) return found;
  return typeof found === 'number' ? (found & mask) >>> 0 : undefined;
}

function textOf(value: Value): string {
  return value.kind === 'word' ? value.text : '';
}

function stateOf(flow: Flow): FieldReading {
  return (value) => hasState(flow, textOf(value));
}

function typeOf(flow: Flow, address: Flow['source']): FieldReading {
  return (value) => hasAddressType(flow, address, textOf(value));
}

/** Of an interface that is not known, kpc knows which it cannot be. */
function nameOrTest(name: string | undefined): FieldReading {
  return name ?? ((value) => isInterface(name, textOf(value), '*'));
}

const fieldReaders: ReadonlyMap<string, (flow: Flow) => FieldReading> = new Map<string, (flow: Flow) => FieldReading>([
  ['mark', ({ mark }) => mark],
  ['meta l4proto', protocolName],
  ['meta nfproto', ({ family }) => family],
  ['iif', ({ input }) => nameOrTest(input)],
  ['iifname', ({ input }) => nameOrTest(input)],
  ['oif', ({ output }) => nameOrTest(output)],
  ['oifname', ({ output }) => nameOrTest(output)],
  ['ct state', stateOf],
  ['ct status', stateOf],
  // A new connection has no mark until a rule sets one. No rule that kpc understands does.
  ['ct mark', () => 0],
  ['fib saddr type', (flow) => typeOf(flow, flow.source)],
  ['fib daddr type', (flow) => typeOf(flow, flow.destination)],
  ...['ip', 'ip6', 'th', 'tcp', 'udp', 'sctp'].flatMap((protocol) =>
    ['saddr', 'daddr', 'protocol', 'nexthdr', 'sport', 'dport'].map(
      (name) => [`${protocol} ${name}`, (flow: Flow) => readPayload(flow, protocol, name)] as const,
    ),
  ),
]);

function readPayload(flow: Flow, protocol: string, name: string): FieldReading {
  if (protocol === 'ip' || protocol === 'ip6') {
    // Tables of the family inet see packets of both.
    if ((protocol === 'ip') !== (flow.family === 'ipv4')) return null;
    if (name === 'saddr') return flow.source;
    if (name === 'daddr') return flow.destination;
    return name === 'protocol' || name === 'nexthdr' ? protocolName(flow) : undefined;
  }
  // A ping has no ports: the bytes in their place never match a Service.
  if (protocol === 'th' ? flow.protocol === 'icmp' : flow.protocol !== protocol) return null;
  if (name === 'sport')
    return (value) => (value.kind === 'number' ? isSourcePortIn(value.value, value.value) : undefined);
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

/** What a packet has in a field: an address, a port or mark, or a word of nft's. */
type FieldValue = Address | number | string;

/** The element that holds a key; undefined for none. */
type NftSetLookup = (flow: Flow, key: readonly FieldValue[]) => Element | undefined;

/**
 * Hashes a set's or map's elements; networks and ranges are tried one by one. The part of keys that is the packet's source,
 * if there is one, is not hashed: which sources a set has for a packet tells clients apart.
 */
function indexNftSet({ elements }: NftSet | NftMap, sourceAt: number): NftSetLookup {
  const exact = new Map<string, Element[]>();
  const ranges: Element[] = [];
  const hashed = <T>(key: readonly T[]): readonly T[] => key.filter((_, i) => i !== sourceAt);
  for (const element of elements) {
    const key = hashed(element.key);
    const text = keyMeaning(key);
    const same = exact.get(text);
    if (!key.every(isSingle)) ranges.push(element);
    else if (same) same.push(element);
    else exact.set(text, [element]);
  }
  const partOf = (value: FieldValue): string => (typeof value === 'object' ? value.text : String(value));
  return (flow, key) => {
    const same = exact.get(hashed(key).map(partOf).join(' . ')) ?? [];
    if (sourceAt < 0 && same[0]) return same[0];
    const isHeld = (value: Value, i: number): boolean => i === sourceAt || holds(value, key[i]);
    const found = [...same, ...ranges].filter((element) => element.key.every(isHeld));
    if (sourceAt < 0) return found[0];
    for (const element of found) flow.choices.sources.add(element.key[sourceAt] as Value);
    return found.find((element) => holds(element.key[sourceAt] as Value, key[sourceAt]));
  };
}

function isSingle(value: Value): boolean {
  if (value.kind === 'network') return singleAddress(value.network) !== undefined;
  return value.kind !== 'range' && !(value.kind === 'word' && value.text.endsWith('*'));
}

/** Whether a constant matches what a packet has. */
function holds(constant: Value, value: FieldValue | undefined): boolean {
  switch (constant.kind) {
    case 'number':
      return value === constant.value;
    case 'word':
      if (constant.text.endsWith('*')) return typeof value === 'string' && value.startsWith(constant.text.slice(0, -1));
      return value === constant.text;
    case 'address':
      return typeof value === 'object' && value.text === constant.address.text;
    case 'network':
      return typeof value === 'object' && contains(constant.network, value);
    case 'range': {
      const { first, last } = constant;
      return typeof value === 'object' && compareAddresses(first, value) <= 0 && compareAddresses(value, last) <= 0;
    }
    default:
      return constant satisfies never;
  }
}
