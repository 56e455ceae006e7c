import type { Family } from '../kernel/family.ts';
import type { Element } from '../kernel/nftables/element.ts';
import type { Expression, Field, Selector } from '../kernel/nftables/expression.ts';
import type { NftChain, NftRule, NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import { hasAddressType, hasState, isInterface, isSourcePortIn, type Flow } from './flow.ts';
import { anyOf, negateIf, type Maybe } from './maybe.ts';
import { hooks, type Action, type Decision, type RuleStep } from './packet.ts';
import { changeMark, meet, takes, type BaseChain, type RuleTable } from './run-chain.ts';
import { holds, indexNftSet, type FieldValue, type NftSetLookup } from './set-lookup.ts';

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
  const [field] = left;
  if (!field) return undefined;
  const values = right.kind === 'set' ? [] : right.kind === 'value' ? [right.value] : right.values;
  const test = right.kind === 'set' || left.length > 1 ? undefined : testOf(flow, field);
  if (test) {
    if (field.kind === 'payload' && payloadOf(flow, field.protocol, field.field) === null) return false;
    const isTrue = anyOf(values, (value) =>
      value.kind === 'word' ? test(value.text) : value.kind === 'number' ? test(String(value.value)) : undefined,
    );
    return negateIf(negated, isTrue);
  }
  const key = keyOf(flow, left);
  // A rule that asks for a field that the packet does not have ends, whatever it wants of it.
  if (!key) return key === null ? false : undefined;
  if (right.kind !== 'set') {
    if (isSource(field)) for (const value of values) flow.choices.sources.add(value);
    return values.some((value) => holds(value, key[0])) !== (negated === true);
  }
  const lookup = findSet(right.set, left);
  return lookup && negateIf(negated, lookup(flow, key) !== undefined);
}

function isSource(field: Field): boolean {
  return field.kind === 'payload' && field.field === 'saddr';
}

/** Fields that are asked whether they are something: a connection has states, an address types. */
function testOf(flow: Flow, field: Field): ((text: string) => Maybe) | undefined {
  switch (field.kind) {
    case 'ct':
      return field.key === 'state' || field.key === 'status' ? (text) => hasState(flow, text) : undefined;
    case 'fib': {
      if (field.result !== 'type' || field.flags.length !== 1) return undefined;
      const address = field.flags[0] === 'saddr' ? flow.source : flow.destination;
      return (type) => hasAddressType(flow, address, type);
    }
    case 'meta': {
      if (!/^[io]if(?:name)?$/.test(field.key)) return undefined;
      return (name) => isInterface(field.key.startsWith('i') ? flow.input : flow.output, name, '*');
    }
    case 'payload':
      return field.field === 'sport' ? (port) => isSourcePortIn(Number(port), Number(port)) : undefined;
    case 'masked':
      return undefined;
    default:
      return field satisfies never;
  }
}

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

function valueOf(flow: Flow, field: Field): FieldReading {
  switch (field.kind) {
    case 'payload':
      return payloadOf(flow, field.protocol, field.field);
    case 'meta':
      return Object.hasOwn(metaFields, field.key) ? metaFields[field.key]?.(flow) : undefined;
    case 'ct':
      // A new connection has no mark until a rule sets one. No rule that kpc understands does.
      return field.key === 'mark' ? 0 : undefined;
    case 'fib':
      return undefined;
    case 'masked': {
      const inner = valueOf(flow, field.field);
      if (inner === null) return null;
      return typeof inner === 'number' ? (inner & field.mask) >>> 0 : undefined;
    }
    default:
      return field satisfies never;
  }
}

const metaFields: Readonly<Record<string, (flow: Flow) => FieldReading>> = {
  mark: ({ mark }) => mark,
  l4proto: protocolName,
  nfproto: ({ family }) => family,
  iif: ({ input }) => input,
  iifname: ({ input }) => input,
  oif: ({ output }) => output,
  oifname: ({ output }) => output,
};

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
