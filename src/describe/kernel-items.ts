import { readingOrder } from '../diff/changes/list-changes.ts';
import type { ServicePort } from '../cluster/model.ts';
import { joinHostPort } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import { formatRule, tableNames, type Chain, type TableName } from '../kernel/iptables/iptables.ts';
import { formatServiceOptions } from '../kernel/ipvs/ipvs.ts';
import { virtualServerKey } from '../kernel/ipvs/ipvs-delta.ts';
import type { ObjectKind } from '../kernel/kinds.ts';
import type { Location, Origin } from '../kernel/place.ts';
import { entryKey, formatEntry } from '../kernel/ipset/set-entry.ts';
import type { KernelState } from '../kernel/state.ts';
import type { View } from './described-node.ts';
import { formatElement, formatRule as formatNftRule } from '../kernel/nftables/format-expression.ts';
import { keyMeaning } from '../kernel/nftables/meaning.ts';
import { findTable, isLearned, type NftMap, type NftSet } from '../kernel/nftables/table.ts';
import { nftTableName } from '../kube-proxy/nftables.ts';

/** One thing in the kernel that is there for a Service port; `place` is the field it comes from. */
export type KernelItem =
  | {
      readonly kind: 'virtual-server';
      /** "TCP 10.96.0.1:80". */
      readonly name: string;
      /** "-s rr" and so on, as ipvsadm writes it. */
      readonly options: string;
      readonly realServers: readonly string[];
      /** The other Service port that has it, where two claim one address and port. */
      readonly takenBy?: string;
      readonly place?: Location;
    }
  | { readonly kind: 'address'; readonly link: string; readonly address: string; readonly place?: Location }
  | { readonly kind: 'set-entry'; readonly set: string; readonly value: string; readonly place?: Location }
  /** A chain of its own with all rules, or the Service port's rules in one that all share. */
  | {
      readonly kind: 'chain' | 'rules';
      readonly family: Family;
      readonly table: TableName;
      readonly chain: string;
      readonly rules: readonly string[];
      readonly place?: Location;
    }
  | NftItem;

/**
 * All that stems from some Service ports of one label. Entries and addresses that several Service ports ask for stand
 * once in a state, under the name of the first: compiling the ports alone tells that these ask for them, too.
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
  nftables: collectNftItems,
  // Of every node, whatever Services there are.
  sysctls: () => [],
  ipvsTimeouts: () => [],
  modules: () => [],
};

function virtualServerItems(label: string, alone: KernelState, { state, owners }: View): readonly KernelItem[] {
  const asked = new Map(alone.virtualServers.map((server) => [virtualServerKey(server), server]));
  return state.virtualServers.flatMap((server) => {
    const own = asked.get(virtualServerKey(server));
    if (!own) return [];
    const owner = owners.ofServer(server);
    return {
      kind: 'virtual-server' as const,
      name: `${server.protocol} ${joinHostPort(server.address.text, server.port)}`,
      options: formatServiceOptions(server).trim(),
      realServers: server.realServers.map(({ address, port }) => joinHostPort(address.text, port)),
      ...(owner === undefined || owner === label ? {} : { takenBy: owner }),
      ...placeOf(own.origin),
    };
  });
}

function addressItems(_: string, alone: KernelState, { state }: View): readonly KernelItem[] {
  const asked = new Map(
    alone.links.flatMap(({ addresses }) => addresses.map((each) => [each.address.text, each] as const)),
  );
  return state.links.flatMap((link) =>
    link.addresses.flatMap(({ address }) => {
      const own = asked.get(address.text);
      return own ? [{ kind: 'address' as const, link: link.name, address: address.text, ...placeOf(own.origin) }] : [];
    }),
  );
}

function entryItems(_: string, alone: KernelState, { state }: View): readonly KernelItem[] {
  const asked = new Map(
    alone.sets.map((set) => [set.name, new Map(set.entries.map((each) => [entryKey(each), each]))]),
  );
  return state.sets.flatMap((set) =>
    set.entries.flatMap((entry) => {
      const own = asked.get(set.name)?.get(entryKey(entry));
      if (!own) return [];
      return [{ kind: 'set-entry' as const, set: set.name, value: formatEntry(entry), ...placeOf(own.origin) }];
    }),
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
        const rules = isOwn ? chain.rules : chain.rules.filter((rule) => owners.ofRule(rule) === label);
        if (rules.length === 0) return [];
        return [
          {
            kind: isOwn ? 'chain' : 'rules',
            family,
            table,
            chain: chain.name,
            rules: rules.map((rule) => `-A ${chain.name} ${formatRule(rule)}`),
            ...placeOf(isOwn ? own.origin : firstOrigin(rules)),
          },
        ];
      });
    }),
  );
}

function firstOrigin(rules: Chain['rules']): Origin | undefined {
  return rules.find(({ origin }) => origin?.place)?.origin;
}

function placeOf(origin: Origin | undefined): { readonly place?: Location } {
  const place = origin?.place?.locate();
  return place ? { place } : {};
}

/** One thing of nftables that is there for a Service port; `place` is the field it comes from. */
type NftItem =
  | {
      readonly kind: 'nft-element';
      readonly family: Family;
      readonly set: string;
      /** As nft writes it: "10.96.0.1 . tcp . 80 : goto …". */
      readonly element: string;
      /** The other Service port that has it, where two claim one address and port. */
      readonly takenBy?: string;
      readonly place?: Location;
    }
  /** A set that rules write the Service port's clients into. */
  | { readonly kind: 'nft-set'; readonly family: Family; readonly set: string; readonly place?: Location }
  | {
      readonly kind: 'nft-chain';
      readonly family: Family;
      readonly chain: string;
      readonly rules: readonly string[];
      readonly place?: Location;
    };

/** What stems from some Service ports of one label, `alone` being what is compiled of these ports only. */
function collectNftItems(label: string, alone: KernelState, { state, owners }: View): readonly NftItem[] {
  return families.flatMap((family): readonly NftItem[] => {
    const asked = findTable(alone.nftables, family, nftTableName);
    const table = findTable(state.nftables, family, nftTableName);
    if (!asked || !table) return [];
    const sets = [...table.sets.values()];
    return [
      ...sets.flatMap((set) => elementItems(label, set, asked.sets.get(set.name), family, owners)),
      ...sets.flatMap((set) => {
        const own = asked.sets.get(set.name);
        return own?.origin ? [{ kind: 'nft-set' as const, family, set: set.name, ...placeOf(own.origin) }] : [];
      }),
      ...[...table.chains.values()].flatMap((chain) => {
        const own = asked.chains.get(chain.name);
        if (!own?.origin) return [];
        const rules = chain.rules.map(formatNftRule);
        return [{ kind: 'nft-chain' as const, family, chain: chain.name, rules, ...placeOf(own.origin) }];
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
): readonly NftItem[] {
  if (!asked || isLearned(set)) return [];
  const wanted = new Map(
    asked.elements.flatMap((each) => (each.origin ? [[keyMeaning(each.key), each] as const] : [])),
  );
  return set.elements.flatMap((element): readonly NftItem[] => {
    const own = wanted.get(keyMeaning(element.key));
    if (!own) return [];
    const owner = set.kind === 'map' ? owners.ofNftElement(family, set, element) : label;
    return [
      {
        kind: 'nft-element',
        family,
        set: set.name,
        element: formatElement(element),
        ...(owner === undefined || owner === label ? {} : { takenBy: owner }),
        ...placeOf(own.origin),
      },
    ];
  });
}
