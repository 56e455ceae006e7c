import { isServiceChain, dnatTargets } from '../../kube-proxy/owners.ts';
import { formatSocketAddress } from '../../kernel/ports-and-marks.ts';
import { families, type Family } from '../../kernel/address.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import { formatEntry } from '../../kernel/ipset/set-entry.ts';
import { ruleMeaning } from '../../kernel/iptables/iptables-meaning.ts';
import { formatRule, tableNames, type TableName } from '../../kernel/iptables/iptables.ts';
import { parseIptablesSave } from '../../kernel/iptables/parse-save.ts';
import { formatElement, formatNftRule } from '../../kernel/nftables/format.ts';
import { isLearned, type NftChain } from '../../kernel/nftables/table.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import { isNftServiceName, parseNftName } from '../../kube-proxy/nft-table.ts';
import { dnatEndpoint } from '../../snapshot/decompile-iptables.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';

export interface SharedSubject {
  readonly kind: 'chain' | 'set' | 'map' | 'rule';
  readonly name: string;
  readonly family?: Family;
  readonly table?: TableName | 'nftables';
  readonly type?: string;
  readonly items: readonly { readonly text: string; readonly owner?: string | undefined }[];
}

export type ItemRole =
  | { readonly kind: 'chain'; readonly chain: string; readonly to?: string | undefined }
  | { readonly kind: 'affinity-set'; readonly set: string; readonly endpoint?: string | undefined }
  | {
      readonly kind: 'rule';
      readonly family: Family;
      readonly table: TableName;
      readonly chain: string;
      readonly number: number;
    }
  | { readonly kind: 'rule-elsewhere'; readonly chain: string };

interface FoundItems {
  readonly owner?: { readonly label: string; readonly role: ItemRole } | undefined;
  readonly subjects: readonly SharedSubject[];
}

export type HeldState = Pick<Snapshot, 'state' | 'owners'>;

/** Finds objects in a state by the name of a chain, set or map, or by a line of iptables-save. */
export function findItems(what: string, held: HeldState): FoundItems | undefined {
  return findRule(what, held) ?? findChainItems(what, held) ?? findSet(what, held) ?? findNftItem(what, held);
}

function findRule(what: string, held: HeldState): FoundItems | undefined {
  if (!/^(\[\d+:\d+\] )?-[AI] /.test(what)) return undefined;
  const [parsed] = parseIptablesSave(`*nat\n${what}\nCOMMIT\n`).tables.nat?.values() ?? [];
  const [asked] = parsed?.rules ?? [];
  if (!parsed || !asked) return undefined;
  const { name } = parsed;
  const meaning = ruleMeaning(asked);
  const found = chainsNamed(held, name).flatMap(({ family, table, chain }) => {
    const at = chain.rules.findIndex((rule) => ruleMeaning(rule) === meaning);
    const rule = chain.rules[at];
    return rule ? [{ family, table, chain, rule, number: at + 1 }] : [];
  });
  const [first] = found;
  const label = held.owners.ofRule(first?.rule ?? asked, name) ?? held.owners.ofChain(first?.chain ?? parsed);
  if (!first && label === undefined) return undefined;
  const role: ItemRole = first
    ? { kind: 'rule', family: first.family, table: first.table, chain: name, number: first.number }
    : { kind: 'rule-elsewhere', chain: name };
  return {
    owner: label === undefined ? undefined : { label, role },
    subjects: found.map(({ family, table, rule }) => {
      return { kind: 'rule', name, family, table, items: [{ text: `-A ${name} ${formatRule(rule)}` }] };
    }),
  };
}

function chainsNamed({ state }: HeldState, name: string) {
  return families.flatMap((family) =>
    tableNames.flatMap((table) => {
      const chain = state.iptables[family]?.[table]?.get(name);
      return chain ? [{ family, table, chain }] : [];
    }),
  );
}

function findChainItems(name: string, held: HeldState): FoundItems | undefined {
  const places = chainsNamed(held, name);
  const [first] = places;
  if (!first) return undefined;
  const label = held.owners.ofChain(first.chain);
  return {
    owner:
      label === undefined
        ? undefined
        : { label, role: { kind: 'chain', chain: name, to: dnatEndpoint(first.chain.rules)?.label } },
    subjects: places.map(({ family, table, chain }) => {
      const items = chain.rules.map((rule) => ({ text: formatRule(rule), owner: held.owners.ofRule(rule, name) }));
      return { kind: 'chain', name, family, table, items };
    }),
  };
}

function findSet(what: string, held: HeldState): FoundItems | undefined {
  const set = held.state.sets.find(({ name }) => name === what);
  return set && { subjects: [describeSet(set, held)] };
}

export function describeSet(set: IpSet, { owners }: HeldState): SharedSubject {
  const items = set.entries.map((entry) => ({ text: formatEntry(entry), owner: owners.ofEntry(set, entry) }));
  return { kind: 'set', name: set.name, type: set.type, items };
}

function findNftItem(name: string, { state, owners }: HeldState): FoundItems | undefined {
  const subjects: SharedSubject[] = [];
  for (const { family, chains, sets } of state.nftables) {
    const [chain, set] = [chains.get(name), sets.get(name)];
    const ofChain = chain && owners.ofNftChain(chain);
    if (ofChain !== undefined) {
      return { owner: { label: ofChain, role: { kind: 'chain', chain: name, to: endpointOf(chain) } }, subjects };
    }
    const ofSet = set && owners.ofNftSet(set);
    if (ofSet !== undefined) {
      const role = { kind: 'affinity-set', set: name, endpoint: parseNftName(name)?.endpoint } as const;
      return { owner: { label: ofSet, role }, subjects };
    }
    if (chain) {
      const items = chain.rules.map((rule) => ({ text: formatNftRule(rule) }));
      subjects.push({ kind: 'chain', name, family, table: 'nftables', items });
    }
    if (set) {
      const items = (isLearned(set) ? [] : set.elements).map((element) => {
        return { text: formatElement(element), owner: owners.ofNftElement(family, set, element) };
      });
      const value = set.kind === 'map' ? ` : ${set.valueType.join(' . ')}` : '';
      const type = `${set.keyType.join(' . ')}${value}`;
      subjects.push({ kind: set.kind, name, family, table: 'nftables', type, items });
    }
  }
  return subjects.length === 0 ? undefined : { subjects };
}

function endpointOf(chain: NftChain | undefined): string | undefined {
  const isOfOne = chain?.rules.some(({ expressions }) => expressions.some(({ kind }) => kind === 'dnat'));
  const [target] = chain && isOfOne ? dnatTargets(chain) : [];
  return target && formatSocketAddress(target);
}

export function modeOfName(what: string): ProxyMode | undefined {
  return isServiceChain(what) ? 'iptables' : isNftServiceName(what) ? 'nftables' : undefined;
}
