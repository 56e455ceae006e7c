import type { Family } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import type { KernelState } from '../kernel/state.ts';
import { setFamily, type StatePair } from './belonging.ts';
import type { Coverage, Side } from './side.ts';

/** A part of the kernel that one of two sides can tell and the other cannot: it is not compared. */
export interface Gap {
  readonly part: GapPart;
  /** Undefined where it is not for the family that a side cannot tell it. */
  readonly family: Family | undefined;
  /** Whether the side that can tell has anything of kube-proxy's there, so that its absence from a report may mislead. */
  readonly matters: boolean;
}

type GapPart = 'rules' | FamilyPart | SettingPart;

/** What a state holds for each family, besides rules. */
type FamilyPart = 'sets' | 'virtualServers' | 'links';
const familyParts: readonly FamilyPart[] = ['sets', 'virtualServers', 'links'];

/** Settings of a node, which a dump need not tell. */
type SettingPart = 'sysctls' | 'ipvsTimeouts' | 'modules';
const settingParts: readonly SettingPart[] = ['sysctls', 'ipvsTimeouts', 'modules'];

/** What is not compared of two sides. `whole` is all of each side that is kube-proxy's, whether both can tell it or not. */
export function findGaps(from: Side, to: Side, whole: StatePair): readonly Gap[] {
  const sides = { from: from.coverage, to: to.coverage };
  const gap = (part: GapPart, family: Family | undefined, holds: (state: KernelState) => boolean): Gap => {
    return { part, family, matters: holds(whole.from) || holds(whole.to) };
  };
  const oneFamily = families.filter((family) => isGap(sides, (side) => side.families.includes(family)));
  return [
    ...families
      .filter((family) => isGap(sides, (side) => side.iptables.includes(family)))
      .map((family) => gap('rules', family, (state) => holdsRules(state, family))),
    ...familyParts.flatMap((part) => {
      if (isGap(sides, (side) => side[part])) return [gap(part, undefined, (state) => state[part].length > 0)];
      if (!from.coverage[part]) return [];
      return oneFamily.map((family) => gap(part, family, (state) => holdsPart[part](state, family)));
    }),
    ...settingParts
      .filter((part) => isGap(sides, (side) => side[part]))
      .map((part) => gap(part, undefined, () => false)),
    // A family that neither side has anything of is not missed.
  ].filter(({ family, matters }) => matters || family === undefined || !oneFamily.includes(family));
}

function isGap({ from, to }: { readonly from: Coverage; readonly to: Coverage }, tells: (side: Coverage) => boolean) {
  return tells(from) !== tells(to);
}

function holdsRules({ iptables }: KernelState, family: Family): boolean {
  return Object.values(iptables[family] ?? {}).some((chains) => chains.size > 0);
}

const holdsPart: { readonly [P in FamilyPart]: (state: KernelState, family: Family) => boolean } = {
  sets: ({ sets }, family) => sets.some((set) => setFamily(set) === family),
  virtualServers: ({ virtualServers }, family) => virtualServers.some((server) => server.family === family),
  links: ({ links }, family) => links.some(({ addresses }) => addresses.some((address) => address.family === family)),
};

/** How much of what is kube-proxy's was compared. */
export type Extent = 'all' | 'part' | 'nothing';

/** `compared` is what both sides can tell. */
export function extentOf(gaps: readonly Gap[], compared: StatePair): Extent {
  if (!gaps.some(({ matters }) => matters)) return 'all';
  return holdsAnything(compared.from) || holdsAnything(compared.to) ? 'part' : 'nothing';
}

/** A link is in no family: that it is there says nothing of what it is there for. */
function holdsAnything(state: KernelState): boolean {
  return families.some(
    (family) => holdsRules(state, family) || familyParts.some((part) => holdsPart[part](state, family)),
  );
}
