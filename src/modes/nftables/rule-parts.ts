import type { LocalTraffic, MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import type { Address, Family, Protocol } from '../../kernel/address.ts';
import type { Value, Expression, Field, Match, Right, Selector, NftRule } from '../../kernel/nftables/table.ts';
import { jump, nftChains } from '../../kube-proxy/nft-table.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';

export interface FamilyFields {
  readonly source: Field;
  readonly destination: Field;
  /** `ip daddr . meta l4proto . th dport`, the key of maps with Service addresses. */
  readonly service: Selector;
}

export const l4proto: Field = { name: 'meta l4proto' };

export const destinationPort: Field = { name: 'th dport' };

export const familyFields: { readonly [F in Family]: FamilyFields } = {
  ipv4: fieldsOfProtocol('ip'),
  ipv6: fieldsOfProtocol('ip6'),
};

function fieldsOfProtocol(protocol: 'ip' | 'ip6'): FamilyFields {
  const destination: Field = { name: `${protocol} daddr` };
  return {
    source: { name: `${protocol} saddr` },
    destination,
    service: [destination, l4proto, destinationPort],
  };
}

export const nodePortKey: Selector = [l4proto, destinationPort];

export const addressTypes = { ipv4: 'ipv4_addr', ipv6: 'ipv6_addr' } as const;

export function nftRule(expressions: readonly Expression[], comment?: string): NftRule {
  return comment === undefined ? { expressions } : { expressions, comment };
}

export function goto(chain: string): Expression {
  return { kind: 'goto', chain };
}

export const drop: Expression = { kind: 'drop' };

export const returnToCaller: Expression = { kind: 'return' };

export const reject: Expression = { kind: 'reject' };

export function matchField(field: Field, right: Right): Match {
  return { kind: 'match', left: [field], right };
}

export function excludes(field: Field, right: Right): Expression {
  return { kind: 'match', left: [field], operator: '!=', right };
}

export function inSet(set: string): Right {
  return { set };
}

export function equalTo(value: Value): Right {
  return { elements: [{ key: [value] }] };
}

export function amongAll(values: readonly Value[]): Right {
  return { elements: values.map((value) => ({ key: [value] })), isBraced: true };
}

export function wordValue(text: string): Value {
  return { kind: 'word', text };
}

export function addressValue(address: Address): Value {
  return { kind: 'address', address };
}

export function portValue(port: number): Value {
  return { kind: 'number', value: port };
}

export const protocolValues: { readonly [P in Protocol]: Value } = {
  TCP: wordValue('tcp'),
  UDP: wordValue('udp'),
  SCTP: wordValue('sctp'),
};

export function setMasqueradeMark({ mark }: MasqueradePlan): Expression {
  return { kind: 'change-mark', of: 'packet', change: { stays: ~mark >>> 0, flip: mark } };
}

export function markForMasquerade(masquerade: MasqueradePlan, behaviours: Behaviours): Expression {
  return behaviours.has('inline-masquerade') ? setMasqueradeMark(masquerade) : jump(nftChains.markForMasquerade);
}

export function masqueradedClients(
  { toClusterIPs }: MasqueradePlan,
  fields: FamilyFields,
): readonly Expression[] | undefined {
  switch (toClusterIPs.kind) {
    case 'all':
      return [];
    case 'all-but-pods':
      return [{ ...fromPods(toClusterIPs.pods, fields), operator: '!=' }];
    case 'none-known':
      return undefined;
  }
}

export function fromPods(pods: LocalTraffic, { source }: FamilyFields): Match {
  switch (pods.kind) {
    case 'from-network':
      return matchField(source, equalTo({ kind: 'network', network: pods.network }));
    case 'from-interface':
      return matchField(inputInterface, equalTo(wordValue(pods.name)));
    case 'from-interfaces':
      return matchField(inputInterface, equalTo(wordValue(`${pods.prefix}*`)));
  }
}

const inputInterface: Field = { name: 'iifname' };

export const fromNode: Expression = matchField({ name: 'fib saddr type' }, equalTo(wordValue('local')));

export const toNode: Expression = matchField({ name: 'fib daddr type' }, equalTo(wordValue('local')));
