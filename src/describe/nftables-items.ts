import { families, type Family } from '../kernel/family.ts';
import { formatElement, formatRule } from '../kernel/nftables/format-expression.ts';
import { keyMeaning } from '../kernel/nftables/meaning.ts';
import { findTable, isLearned, type NftMap, type NftSet } from '../kernel/nftables/table.ts';
import type { Location, Origin } from '../kernel/origin.ts';
import type { KernelState } from '../kernel/state.ts';
import { nftTableName } from '../kube-proxy/nftables.ts';
import type { View } from './view.ts';

/** One thing of nftables that is there for a Service port; `place` is the field it comes from. */
export type NftItem =
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
export function collectNftItems(label: string, alone: KernelState, { state, owners }: View): readonly NftItem[] {
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
        const rules = chain.rules.map(formatRule);
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

function placeOf(origin: Origin | undefined): { readonly place?: Location } {
  const place = origin?.place?.locate();
  return place ? { place } : {};
}
