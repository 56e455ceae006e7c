import type { LocalTraffic } from '../cluster/local-traffic.ts';
import type { Address } from '../kernel/address.ts';
import type { Family, Protocol } from '../kernel/family.ts';
import type { Value } from '../kernel/nftables/element.ts';
import type { Expression, Field, Right, Selector } from '../kernel/nftables/expression.ts';
import type { NftRule } from '../kernel/nftables/table.ts';

/** How rules of one family name what they look at. */
export interface FamilyFields {
  readonly source: Field;
  readonly destination: Field;
  /** `ip daddr . meta l4proto . th dport`: the key of maps from a Service's addresses. */
  readonly service: Selector;
}

export const l4proto: Field = { kind: 'meta', key: 'l4proto' };
export const destinationPort: Field = { kind: 'payload', protocol: 'th', field: 'dport' };

export const familyFields: { readonly [F in Family]: FamilyFields } = { ipv4: fieldsOf('ip'), ipv6: fieldsOf('ip6') };

function fieldsOf(protocol: 'ip' | 'ip6'): FamilyFields {
  const destination: Field = { kind: 'payload', protocol, field: 'daddr' };
  return {
    source: { kind: 'payload', protocol, field: 'saddr' },
    destination,
    service: [destination, l4proto, destinationPort],
  };
}

/** `meta l4proto . th dport`: the key of maps from node ports. */
export const nodePortKey: Selector = [l4proto, destinationPort];

/** A rule of these expressions, and perhaps a comment. */
export function rule(expressions: readonly Expression[], comment?: string): NftRule {
  return comment === undefined ? { expressions } : { expressions, comment };
}

export function jump(chain: string): Expression {
  return { kind: 'verdict', verdict: { kind: 'jump', chain } };
}

export function goto(chain: string): Expression {
  return { kind: 'verdict', verdict: { kind: 'goto', chain } };
}

export const drop: Expression = { kind: 'verdict', verdict: { kind: 'drop' } };

export const reject: Expression = { kind: 'reject' };

/** A match of one field. */
export function matches(field: Field, right: Right): Expression {
  return { kind: 'match', left: [field], right };
}

/** The same, for all that is something else. */
export function differs(field: Field, right: Right): Expression {
  return { kind: 'match', left: [field], negated: true, right };
}

export function inSet(set: string): Right {
  return { kind: 'set', set };
}

export function equalTo(value: Value): Right {
  return { kind: 'value', value };
}

export function word(text: string): Value {
  return { kind: 'word', text };
}

export function addressValue(address: Address): Value {
  return { kind: 'address', address };
}

export function portValue(port: number): Value {
  return { kind: 'number', value: port };
}

/** One value for all keys and rules. */
export const protocolValues: { readonly [P in Protocol]: Value } = {
  TCP: word('tcp'),
  UDP: word('udp'),
  SCTP: word('sctp'),
};

/** Sets the mark that says to masquerade, and leaves the other bits. */
export function markForMasquerade(mark: number): Expression {
  return { kind: 'set-mark', operation: 'or', value: mark };
}

/** Packets of pods: where they come from, or by which interface. */
export function fromPods(pods: LocalTraffic, fields: FamilyFields): Expression {
  return matches(...tellPods(pods, fields));
}

/** All other packets. */
export function notFromPods(pods: LocalTraffic, fields: FamilyFields): Expression {
  return differs(...tellPods(pods, fields));
}

function tellPods(pods: LocalTraffic, { source }: FamilyFields): [Field, Right] {
  switch (pods.kind) {
    case 'from-network':
      return [source, equalTo({ kind: 'network', network: pods.network })];
    case 'from-interface':
      return [inputInterface, equalTo(word(pods.name))];
    case 'from-interfaces':
      return [inputInterface, equalTo(word(`${pods.prefix}*`))];
  }
}

const inputInterface: Field = { kind: 'meta', key: 'iifname' };

/** Packets from the node itself. */
export const fromNode: Expression = matches({ kind: 'fib', flags: ['saddr'], result: 'type' }, equalTo(word('local')));

/** Packets to any address of the node. */
export const toNode: Expression = matches({ kind: 'fib', flags: ['daddr'], result: 'type' }, equalTo(word('local')));
