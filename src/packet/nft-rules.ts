import type { Element, Verdict } from '../kernel/nftables/element.ts';
import type { Expression, Field, Selector } from '../kernel/nftables/expression.ts';
import type { NftChain, NftRule, NftTable } from '../kernel/nftables/table.ts';
import {
  hasAddressType,
  hasState,
  isInterface,
  isSourcePortIn,
  masquerade,
  rewriteDestination,
  type Flow,
} from './flow.ts';
import type { Decision } from './packet.ts';
import { holds, indexNftSet, type FieldValue, type NftSetLookup } from './nft-sets.ts';
import { anyOf, negateIf, type Maybe } from './maybe.ts';

/** A table of nftables, ready for packets. Sets are hashed when the first packet asks for them. */
export interface PreparedNftTable {
  readonly table: NftTable;
  readonly lookups: Map<string, NftSetLookup | undefined>;
}

/** Sends a packet through one of the chains that the kernel enters. */
export function runBaseChain(flow: Flow, table: PreparedNftTable, chain: NftChain): Decision {
  const decision = runChain(flow, table, chain);
  if (decision !== 'return') return decision;
  if (chain.base?.policy !== 'drop') return 'accept';
  flow.steps.push({ kind: 'policy', hook: flow.hook, tool: 'nftables', table: table.table.name, chain: chain.name });
  return 'dropped';
}

function runChain(flow: Flow, table: PreparedNftTable, chain: NftChain): Decision {
  return flow.choices.enter(() => {
    for (const [at, rule] of chain.rules.entries()) {
      const decision = runRule(flow, table, chain, rule, at + 1);
      if (decision) return decision;
    }
    return 'return';
  });
}

/** Undefined if the packet goes on to the next rule. */
function runRule(
  flow: Flow,
  prepared: PreparedNftTable,
  chain: NftChain,
  rule: NftRule,
  position: number,
): Decision | undefined {
  const record = (element?: Element): void => {
    flow.steps.push({
      kind: 'rule',
      hook: flow.hook,
      tool: 'nftables',
      table: prepared.table.name,
      chain: chain.name,
      position,
      rule,
      element,
      origin: element?.origin ?? rule.origin ?? chain.origin,
    });
  };
  for (const expression of rule.expressions) {
    const result = runExpression(flow, prepared, expression, record);
    if (result === 'no-match') return undefined;
    if (result === 'doubt') {
      record();
      if (!flow.choices.doubt(() => flow.steps.slice())) {
        flow.steps.pop();
        return undefined;
      }
      flow.steps.pop();
    } else if (result !== 'next') return result === 'continue' ? undefined : result;
  }
  record();
  return undefined;
}

/** What an expression does: the rule ends with a decision, or because it does not match, or goes on. */
type Outcome = Decision | 'continue' | 'no-match' | 'doubt' | 'next';

function runExpression(
  flow: Flow,
  prepared: PreparedNftTable,
  expression: Expression,
  record: (element?: Element) => void,
): Outcome {
  switch (expression.kind) {
    case 'match': {
      const result = negateMatch(flow, prepared, expression);
      return result === undefined ? 'doubt' : result ? 'next' : 'no-match';
    }
    case 'verdict':
      record();
      return follow(flow, prepared, expression.verdict);
    case 'verdict-map': {
      const lookup = lookupOf(prepared, expression.map);
      const key = keyOf(flow, expression.key);
      if (!lookup || key === 'unknown') {
        record();
        return 'unknown';
      }
      const element = key === 'absent' ? undefined : lookup(key);
      const verdict = element?.value;
      if (!verdict || verdict.kind === 'data') return 'no-match';
      record(element);
      return follow(flow, prepared, verdict);
    }
    case 'goto-random': {
      record();
      const chain = expression.chains[flow.choices.draw(evenly(expression.chains.length))] ?? '';
      return follow(flow, prepared, { kind: 'goto', chain });
    }
    case 'dnat':
      record();
      rewriteDestination(flow, expression.target.address, expression.target.port);
      return 'accept';
    case 'dnat-random': {
      record();
      const target = expression.targets[flow.choices.draw(evenly(expression.targets.length))];
      if (!target) return 'unknown';
      rewriteDestination(flow, target.address, target.port);
      return 'accept';
    }
    case 'set-mark':
      flow.mark = changeMark(flow.mark, expression.operation, expression.value);
      return 'next';
    case 'masquerade':
      record();
      masquerade(flow);
      return 'accept';
    case 'reject':
      record();
      return 'refused';
    case 'write-set':
    case 'counter':
      return 'next';
    case 'unknown': {
      const [, asked] = /^(icmp|icmpv6|igmp|esp|ah|comp|tcp|udp|udplite|sctp|dccp) /.exec(expression.text) ?? [];
      // Fields of another protocol are none of this packet.
      if (asked !== undefined && asked !== headerName(flow)) return 'no-match';
      record();
      return 'unknown';
    }
    default:
      return expression satisfies never;
  }
}

function follow(flow: Flow, prepared: PreparedNftTable, verdict: Verdict): Outcome {
  switch (verdict.kind) {
    case 'accept':
    case 'return':
    case 'continue':
      return verdict.kind;
    case 'drop':
      return 'dropped';
    case 'jump':
    case 'goto': {
      const chain = prepared.table.chains.get(verdict.chain);
      if (!chain) return 'unknown';
      const decision = runChain(flow, prepared, chain);
      return decision === 'return' && verdict.kind === 'jump' ? 'continue' : decision;
    }
    default:
      return verdict satisfies never;
  }
}

function evenly(count: number): readonly number[] {
  return Array.from({ length: count }, () => 1 / count);
}

function changeMark(mark: number, operation: 'or' | 'xor' | 'set', value: number): number {
  if (operation === 'set') return value;
  return (operation === 'or' ? mark | value : mark ^ value) >>> 0;
}

function lookupOf({ table, lookups }: PreparedNftTable, name: string): NftSetLookup | undefined {
  if (!lookups.has(name)) {
    const set = table.sets.get(name);
    lookups.set(name, set && indexNftSet(set));
  }
  return lookups.get(name);
}

function negateMatch(flow: Flow, prepared: PreparedNftTable, match: Expression & { readonly kind: 'match' }): Maybe {
  const { left, right } = match;
  const [field] = left;
  if (!field) return undefined;
  const test = right.kind === 'set' || left.length > 1 ? undefined : testOf(flow, field);
  if (test) {
    const values = right.kind === 'any-of' ? right.values : right.kind === 'value' ? [right.value] : [];
    return negateIf(
      match.negated,
      anyOf(values, (value) =>
        value.kind === 'word' ? test(value.text) : value.kind === 'number' ? test(String(value.value)) : undefined,
      ),
    );
  }
  const key = keyOf(flow, left);
  // A rule that asks for a field that the packet does not have ends, whatever it wants of it.
  if (key === 'absent') return false;
  if (key === 'unknown') return undefined;
  if (right.kind === 'set') {
    const lookup = lookupOf(prepared, right.set);
    return lookup && negateIf(match.negated, lookup(key) !== undefined);
  }
  const values = right.kind === 'value' ? [right.value] : right.values;
  return negateIf(
    match.negated,
    values.some((value) => holds(value, key[0])),
  );
}

/** Fields that are asked whether they are something: a connection has states, an address types. */
function testOf(flow: Flow, field: Field): ((text: string) => Maybe) | undefined {
  if (field.kind === 'ct' && (field.key === 'state' || field.key === 'status')) return (text) => hasState(flow, text);
  if (field.kind === 'fib' && field.result === 'type' && field.flags.length === 1) {
    const address = field.flags[0] === 'saddr' ? flow.source : flow.destination;
    return (type) => hasAddressType(flow, address, type);
  }
  if (field.kind === 'meta' && (field.key === 'iifname' || field.key === 'iif'))
    return (name) => isInterface(flow.input, name, '*');
  if (field.kind === 'meta' && (field.key === 'oifname' || field.key === 'oif'))
    return (name) => isInterface(flow.output, name, '*');
  if (field.kind === 'payload' && field.field === 'sport') return (port) => isSourcePortIn(Number(port), Number(port));
  return undefined;
}

function keyOf(flow: Flow, selector: Selector): readonly FieldValue[] | 'absent' | 'unknown' {
  const key: FieldValue[] = [];
  for (const field of selector) {
    const value = valueOf(flow, field);
    if (value === 'absent' || value === 'unknown') return value;
    key.push(value.is);
  }
  return key;
}

type FieldReading = { readonly is: FieldValue } | 'absent' | 'unknown';

function valueOf(flow: Flow, field: Field): FieldReading {
  switch (field.kind) {
    case 'payload':
      return payloadOf(flow, field.protocol, field.field);
    case 'meta':
      return metaOf(flow, field.key);
    case 'ct':
      // A new connection has no mark until a rule sets one, which none that kpc understands does.
      return field.key === 'mark' ? { is: 0 } : 'unknown';
    case 'fib':
      return 'unknown';
    case 'masked': {
      const inner = valueOf(flow, field.field);
      if (typeof inner === 'string') return inner;
      return typeof inner.is === 'number' ? { is: (inner.is & field.mask) >>> 0 } : 'unknown';
    }
    default:
      return field satisfies never;
  }
}

function payloadOf(flow: Flow, protocol: string, name: string): FieldReading {
  if (protocol === 'ip' || protocol === 'ip6') {
    // Tables of the family inet see packets of both.
    if ((protocol === 'ip') !== (flow.family === 'ipv4')) return 'absent';
    if (name === 'saddr') return { is: flow.source };
    if (name === 'daddr') return { is: flow.destination };
    return name === 'protocol' || name === 'nexthdr' ? { is: protocolName(flow) } : 'unknown';
  }
  // A ping has no ports: the bytes in their place never match a Service.
  if (protocol === 'th' ? flow.protocol === 'icmp' : flow.protocol !== protocol) return 'absent';
  return name === 'dport' ? { is: flow.port } : 'unknown';
}

function metaOf(flow: Flow, key: string): FieldReading {
  switch (key) {
    case 'mark':
      return { is: flow.mark };
    case 'l4proto':
      return { is: protocolName(flow) };
    case 'nfproto':
      return { is: flow.family };
    case 'iifname':
    case 'iif':
      return flow.input === undefined ? 'unknown' : { is: flow.input };
    case 'oifname':
    case 'oif':
      return flow.output === undefined ? 'unknown' : { is: flow.output };
    default:
      return 'unknown';
  }
}

/** The header that follows that of IP. */
function headerName({ protocol, family }: Flow): string {
  return protocol === 'icmp' && family === 'ipv6' ? 'icmpv6' : protocol;
}

/** As nft calls it. */
function protocolName({ protocol, family }: Flow): string {
  return protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol;
}
