import { targetsOf } from '../diff/changes/nft-owners.ts';
import { joinHostPort, parseAddress } from '../kernel/address.ts';
import { formatElement, formatRule } from '../kernel/nftables/format-expression.ts';
import { isLearned, type NftChain, type NftMap, type NftSet, type NftTable } from '../kernel/nftables/table.ts';
import { parseNftName } from '../kube-proxy/nftables.ts';

import type { View } from './described-node.ts';
import type { Family } from '../kernel/family.ts';
import type { TableName } from '../kernel/iptables/iptables.ts';

/** A chain, set, map or rule that Service ports share, with its lines. */
export interface SharedSubject {
  readonly kind: 'chain' | 'set' | 'map' | 'rule';
  readonly name: string;
  readonly family?: Family;
  readonly table?: TableName | 'nftables';
  readonly type?: string;
  readonly items: readonly { readonly text: string; readonly owner?: string }[];
}

/** What a name of nftables stands for. */
export type NftSubject =
  /** A Service port's own chain: `to` is the endpoint of an endpoint's chain. */
  | { readonly kind: 'own-chain'; readonly label: string; readonly to: string | undefined }
  /** The clients that session affinity remembers of an endpoint. */
  | { readonly kind: 'own-set'; readonly label: string; readonly endpoint: string | undefined }
  /** What Service ports share, or what every node has. */
  | { readonly kind: 'shared'; readonly subjects: readonly SharedSubject[] };

/** The chain, set or map of a name. */
export function findNftSubject(
  name: string,
  { state, owners }: Pick<View, 'state' | 'owners'>,
): NftSubject | undefined {
  const subjects: SharedSubject[] = [];
  for (const table of state.nftables) {
    const chain = table.chains.get(name);
    const set = table.sets.get(name);
    const ofChain = chain && owners.ofNftChain(chain);
    if (chain && ofChain !== undefined) return { kind: 'own-chain', label: ofChain, to: endpointOf(chain) };
    const ofSet = set && owners.ofNftSet(set);
    if (ofSet !== undefined) return { kind: 'own-set', label: ofSet, endpoint: parseNftName(name)?.endpoint };
    if (chain) subjects.push(describeChain(table, chain));
    if (set) subjects.push(describeSet(table, set, owners));
  }
  return subjects.length === 0 ? undefined : { kind: 'shared', subjects };
}

/** The one endpoint of an endpoint's chain; undefined for a chain that has the choice. */
function endpointOf(chain: NftChain): string | undefined {
  const isOfOne = chain.rules.some(({ expressions }) => expressions.some(({ kind }) => kind === 'dnat'));
  const [target] = isOfOne ? targetsOf(chain) : [];
  return target && joinHostPort(target.address.text, target.port);
}

function describeChain({ family }: NftTable, { name, rules }: NftChain): SharedSubject {
  return { kind: 'chain', name, family, table: 'nftables', items: rules.map((rule) => ({ text: formatRule(rule) })) };
}

function describeSet({ family }: NftTable, set: NftSet | NftMap, owners: View['owners']): SharedSubject {
  const items = (isLearned(set) ? [] : set.elements).map((element) => {
    const owner = owners.ofNftElement(family, set, element);
    return { text: formatElement(element), ...(owner === undefined ? {} : { owner }) };
  });
  const value = set.kind === 'map' ? ` : ${set.valueType.join(' . ')}` : '';
  const type = `${set.keyType.join(' . ')}${value}`;
  return { kind: set.kind, name: set.name, family, table: 'nftables', type, items };
}

/** The names of all chains, sets and maps. */
export function nftNames({ state }: View): readonly string[] {
  return [...new Set(state.nftables.flatMap(({ chains, sets }) => [...chains.keys(), ...sets.keys()]))];
}

const elementKey = /^(?:(\S+) \. )?(?:(\S+) \. )?(tcp|udp|sctp) \. (\d{1,5})$/i;

/** A rule that leads to one chain, or looks into one map. What leads to several has braces. */
const leading = /^[^{}]* (?:(?:goto|jump) |vmap @)([^\s{}]+)(?: comment "[^"]*")?$/;

/**
 * What a name, an element or a rule of nftables stands for, as it stands in a list: "chain services {", "goto service-…",
 * "10.96.0.1 . tcp . 80 : goto …", "elements = { tcp . 30080 : drop }", "ip saddr 10.0.0.0/8 goto service-…". Elements become
 * "10.96.0.1:80/tcp" and "30080/tcp", and a rule the chain or map that it leads to. Any other text is given back.
 */
export function bareNftName(what: string): string {
  const named = /^(?:(?:chain|set|map|goto|jump) |@)(\S+)(?: \{)?$/.exec(what)?.[1];
  if (named !== undefined) return named;
  const key = withoutValue(what.replace(/^elements = \{ ?/, '').replace(/(?:,| \})$/, '')).replace(
    / comment "[^"]*"$/,
    '',
  );
  const [, address, , protocol = '', port = ''] = elementKey.exec(key) ?? [];
  if (port === '') return bareAddress(key) ?? leading.exec(what)?.[1] ?? what;
  if (address === undefined) return `${port}/${protocol}`;
  return parseAddress(address) ? `${joinHostPort(address, Number(port))}/${protocol}` : what;
}

/** An element of a map without its value: "… . 80 : goto service-…" → "… . 80". */
function withoutValue(text: string): string {
  const at = text.lastIndexOf(' : ');
  return at < 0 || text.includes(',', at) ? text : text.slice(0, at);
}

/** An element that is an address and nothing else; of several in one line none is meant. */
function bareAddress(key: string): string | undefined {
  return parseAddress(key) ? key : undefined;
}
