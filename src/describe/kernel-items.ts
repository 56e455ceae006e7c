import type { ServicePort } from '../cluster/model.ts';
import { readingOrder } from '../diff/changes/list-changes.ts';
import { joinHostPort } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import { entryKey, formatEntry } from '../kernel/ipset/set-entry.ts';
import { formatRule, tableNames, type TableName } from '../kernel/iptables/iptables.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import { formatServiceOptions } from '../kernel/ipvs/ipvs.ts';
import type { ObjectKind } from '../kernel/kinds.ts';
import { formatElement, formatRule as formatNftRule } from '../kernel/nftables/format-expression.ts';
import { keyMeaning } from '../kernel/nftables/nft-meaning.ts';
import { findTable, isLearned, type NftMap, type NftSet } from '../kernel/nftables/table.ts';
import type { Location, Origin } from '../kernel/place.ts';
import type { KernelState } from '../kernel/state.ts';
import { nftTableName } from '../kube-proxy/nft-names.ts';
import type { View } from './described-node.ts';

/** One thing in the kernel that is there for a Service port. */
export type KernelItem = ItemContent & {
  /** The field that it comes from. */
  readonly place?: Location | undefined;
};

type ItemContent =
  | {
      readonly kind: 'virtual-server';
      /** "TCP 10.96.0.1:80". */
      readonly name: string;
      /** "-s rr" and so on, as ipvsadm writes it. */
      readonly options: string;
      readonly realServers: readonly string[];
      /** The other Service port that has it, if two claim one address and port. */
      readonly takenBy?: string | undefined;
    }
  | { readonly kind: 'address'; readonly link: string; readonly address: string }
  | { readonly kind: 'set-entry'; readonly set: string; readonly value: string }
  /** A chain of its own with all rules, or the Service port's rules in one that all share. */
  | {
      readonly kind: 'chain' | 'rules';
      readonly family: Family;
      readonly table: TableName;
      readonly chain: string;
      readonly rules: readonly string[];
    }
  | {
      readonly kind: 'nft-element';
      readonly family: Family;
      readonly set: string;
      /** As nft writes it: "10.96.0.1 . tcp . 80 : goto …". */
      readonly element: string;
      /** As of a virtual server. */
      readonly takenBy?: string | undefined;
    }
  /** A set that rules write the Service port's clients into. */
  | { readonly kind: 'nft-set'; readonly family: Family; readonly set: string }
  | {
      readonly kind: 'nft-chain';
      readonly family: Family;
      readonly chain: string;
      readonly rules: readonly string[];
    };

/**
 * All that stems from some Service ports of one label. Entries and addresses that several Service ports ask for are in a
 * state once, under the name of the first: compiling the ports alone shows that these ask for them, too.
 */
export function collectKernelItems(label: string, ports: readonly ServicePort[], view: View): readonly KernelItem[] {
  const alone = view.compile({ services: [], servicePorts: ports, healthChecks: [], serviceCidrs: [] });
  return readingOrder.flatMap((kind) => kindItems[kind](label, alone, view));
}

/** What there is of each kind, `alone` being what is compiled of the ports only. */
const kindItems: {
  readonly [K in ObjectKind]: (label: string, alone: KernelState, view: View) => readonly KernelItem[];
} = {
  virtualServers: virtualServerItems,
  links: addressItems,
  sets: entryItems,
  iptables: chainItems,
  nftables: nftItems,
  // Of every node, whatever Services there are.
  sysctls: () => [],
  ipvsTimeouts: () => [],
  modules: () => [],
};

function placeOf(origin: Origin | undefined): Location | undefined {
  return origin?.place?.locate();
}

/** Pairs the items of a state with those of the same key that the port alone asks for. */
function pairUp<T, U extends T>(
  items: readonly T[],
  asked: readonly U[],
  keyOf: (item: T) => string,
): readonly { readonly item: T; readonly own: U }[] {
  const byKey = new Map(asked.map((each) => [keyOf(each), each]));
  return items.flatMap((item) => {
    const own = byKey.get(keyOf(item));
    return own ? [{ item, own }] : [];
  });
}

function virtualServerItems(label: string, alone: KernelState, { state, owners }: View): readonly KernelItem[] {
  return pairUp(state.virtualServers, alone.virtualServers, virtualServerKey).map(({ item, own }) => {
    const owner = owners.ofServer(item);
    return {
      kind: 'virtual-server',
      name: `${item.protocol} ${joinHostPort(item.address.text, item.port)}`,
      options: formatServiceOptions(item).trim(),
      realServers: item.realServers.map(({ address, port }) => joinHostPort(address.text, port)),
      takenBy: owner === label ? undefined : owner,
      place: placeOf(own.origin),
    };
  });
}

function addressItems(_: string, alone: KernelState, { state }: View): readonly KernelItem[] {
  const asked = alone.links.flatMap(({ addresses }) => addresses);
  return state.links.flatMap((link) =>
    pairUp(link.addresses, asked, ({ address }) => address.text).map(({ item, own }) => {
      return { kind: 'address' as const, link: link.name, address: item.address.text, place: placeOf(own.origin) };
    }),
  );
}

function entryItems(_: string, alone: KernelState, { state }: View): readonly KernelItem[] {
  return state.sets.flatMap((set) =>
    pairUp(set.entries, alone.sets.find(({ name }) => name === set.name)?.entries ?? [], entryKey).map(
      ({ item, own }) => {
        return { kind: 'set-entry' as const, set: set.name, value: formatEntry(item), place: placeOf(own.origin) };
      },
    ),
  );
}

function chainItems(label: string, alone: KernelState, { state, owners }: View): readonly KernelItem[] {
  return families.flatMap((family) =>
    tableNames.flatMap((table) => {
      const asked = alone.iptables[family]?.[table];
      const chains = [...(state.iptables[family]?.[table]?.values() ?? [])];
      return chains.flatMap((chain): readonly KernelItem[] => {
        const own = asked?.get(chain.name);
        if (!own) return [];
        const isOwn = own.origin !== undefined;
        const rules = isOwn ? chain.rules : chain.rules.filter((rule) => owners.ofRule(rule, chain.name) === label);
        if (rules.length === 0) return [];
        const texts = rules.map((rule) => `-A ${chain.name} ${formatRule(rule)}`);
        const origin = isOwn ? own.origin : rules.find((rule) => rule.origin?.place)?.origin;
        const kind = isOwn ? 'chain' : 'rules';
        return [{ kind, family, table, chain: chain.name, rules: texts, place: placeOf(origin) }];
      });
    }),
  );
}

function nftItems(label: string, alone: KernelState, { state, owners }: View): readonly KernelItem[] {
  return families.flatMap((family): readonly KernelItem[] => {
    const asked = findTable(alone.nftables, family, nftTableName);
    const table = findTable(state.nftables, family, nftTableName);
    if (!asked || !table) return [];
    const sets = [...table.sets.values()];
    return [
      ...sets.flatMap((set) => elementItems(label, set, asked.sets.get(set.name), family, owners)),
      ...sets.flatMap((set): readonly KernelItem[] => {
        const own = asked.sets.get(set.name);
        return own?.origin ? [{ kind: 'nft-set', family, set: set.name, place: placeOf(own.origin) }] : [];
      }),
      ...[...table.chains.values()].flatMap((chain): readonly KernelItem[] => {
        const own = asked.chains.get(chain.name);
        if (!own?.origin) return [];
        const rules = chain.rules.map(formatNftRule);
        return [{ kind: 'nft-chain', family, chain: chain.name, rules, place: placeOf(own.origin) }];
      }),
    ];
  });
}

/** The elements that the port alone asks for, too: several may ask for one, as the ports of a Service for its cluster IP. */
function elementItems(
  label: string,
  set: NftSet | NftMap,
  asked: NftSet | NftMap | undefined,
  family: Family,
  owners: View['owners'],
): readonly KernelItem[] {
  if (!asked || isLearned(set)) return [];
  const wanted = asked.elements.filter(({ origin }) => origin);
  return pairUp(set.elements, wanted, ({ key }) => keyMeaning(key)).map(({ item, own }) => {
    const owner = set.kind === 'map' ? owners.ofNftElement(family, set, item) : label;
    return {
      kind: 'nft-element',
      family,
      set: set.name,
      element: formatElement(item),
      takenBy: owner === label ? undefined : owner,
      place: placeOf(own.origin),
    };
  });
}
