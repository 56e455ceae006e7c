import { families, type Family } from '../../kernel/address.ts';
import type { TableName } from '../../kernel/iptables/iptables.ts';
import { hasRules } from '../../kernel/iptables/iptables-delta.ts';
import type { ObjectKind, KernelState } from '../../kernel/state.ts';
import { modeOfState } from '../../kube-proxy/evidence.ts';
import { isModeOf, newestRelease } from '../../kube-proxy/releases.ts';
import { modeFacts, programs, proxyModes, type ProxyMode } from '../../kube-proxy/modes.ts';
import { beyondKernel, otherNodes, type BeyondKernel } from './beyond-kernel.ts';
import type { StatePair } from './foreign-items.ts';
import type { ServiceChange } from './service-changes.ts';
import { workingTables } from '../../dumps/coverage.ts';
import type { Doubt } from '../../dumps/dump.ts';
import { possibleModes } from '../../snapshot/possible-modes.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';

/** A part of the kernel that was not compared because one side does not show it. It may hide a difference. */
export interface ComparisonGap {
  readonly part: GapPart;
  readonly family: Family | undefined;
  /** The table of the rules; undefined for all tables. */
  readonly table?: TableName | undefined;
  /** The sysctls that were not compared, if others were. */
  readonly sysctls?: readonly string[] | undefined;
  readonly doubt?: Doubt | undefined;
  readonly beyond?: BeyondKernel | undefined;
  /** Whether the side that shows the part has objects of kube-proxy there. */
  readonly held: boolean;
}

export type GapPart = Exclude<ObjectKind, 'modules'> | 'base' | 'nodeAddresses' | 'rest';

const familyKinds = ['nftables', 'iptables'] as const;

type FamilyKind = (typeof familyKinds)[number];

/** Parts that a side may show, in the order of reports. Leaves out modules, because the kernel loads them whenever they are needed. */
type Part =
  | { readonly kind: FamilyKind; readonly family: Family }
  | { readonly kind: Exclude<GapPart & ObjectKind, FamilyKind>; readonly family: undefined };

const parts: readonly Part[] = [
  ...familyKinds.flatMap((kind) => families.map((family) => ({ kind, family }))),
  ...(['sets', 'virtualServers', 'proxyPorts', 'links', 'sysctls', 'ipvsTimeouts'] as const).map((kind) => {
    return { kind, family: undefined };
  }),
];

interface ComparedSides {
  readonly from: Snapshot;
  readonly to: Snapshot;
  readonly whole: StatePair;
  readonly unshownSysctls: readonly string[];
  readonly changes: readonly ServiceChange[] | undefined;
}

/** Lists the parts that were not compared. Leaves out parts that neither side has and that the sides' modes do not program. */
export function findGaps(sides: ComparedSides): readonly ComparisonGap[] {
  const { from, to, whole, changes } = sides;
  const isAsked = askedOf(from, to);
  const ofParts = parts.flatMap((part): readonly ComparisonGap[] => {
    const held = [whole.from, whole.to].some((state) => holdsPart(state, part));
    if ((!held && !isAsked(part.kind)) || (part.kind === 'ipvsTimeouts' && ![from, to].some(asksForTimeouts)))
      return [];
    const sysctls = part.kind === 'sysctls' && comparesSysctls(sides) ? sides.unshownSysctls : undefined;
    return unshownParts(part, sides).map((table) => ({ part: part.kind, family: part.family, table, sysctls, held }));
  });
  const doubts = [...from.doubts, ...to.doubts];
  const ofDoubts = doubts.map((doubt): ComparisonGap => ({ part: 'rest', family: undefined, doubt, held: false }));
  const ofServices = [...otherNodes(from, to, (changes ?? []).length > 0), ...beyondKernel(from, to, changes)];
  const others = ofServices.map((beyond): ComparisonGap => ({ part: 'rest', family: undefined, beyond, held: false }));
  return [...ofParts, ...ofDoubts, ...others];
}

function unshownParts(part: Part, { from, to, unshownSysctls }: ComparedSides): readonly (TableName | undefined)[] {
  const coverages = [from.coverage, to.coverage];
  switch (part.kind) {
    case 'iptables': {
      const isShown = (table: TableName) => coverages.every(({ iptables }) => iptables[part.family].includes(table));
      const unshown = workingTables.filter((table) => !isShown(table));
      return unshown.length === workingTables.length ? [undefined] : unshown;
    }
    case 'nftables':
      return coverages.every(({ nftables }) => nftables.includes(part.family)) ? [] : [undefined];
    case 'sets':
    case 'virtualServers':
    case 'proxyPorts':
    case 'links':
    case 'sysctls':
    case 'ipvsTimeouts': {
      const isLess = part.kind === 'sysctls' && unshownSysctls.length > 0;
      return !isLess && coverages.every((coverage) => coverage[part.kind]) ? [] : [undefined];
    }
  }
}

function comparesSysctls({ from, to }: ComparedSides): boolean {
  return [from, to].every(({ coverage, state }) => coverage.sysctls && state.sysctls.size > 0);
}

/** Reports whether a state holds kube-proxy objects of a kind. Sysctls and timeouts do not count, because every node has them. */
function holdsPart({ nftables, iptables, ...state }: KernelState, { kind, family }: Part): boolean {
  switch (kind) {
    case 'nftables':
      return nftables.some((table) => table.family === family);
    case 'iptables':
      return hasRules(iptables[family] ?? {});
    case 'sets':
    case 'virtualServers':
    case 'proxyPorts':
      return state[kind].length > 0;
    case 'links':
      // A link without addresses does not show that kube-proxy uses it.
      return state.links.some(({ addresses }) => addresses.length > 0);
    case 'sysctls':
    case 'ipvsTimeouts':
      return false;
  }
}

/** Reports whether a side sets IPVS timeouts. No dump shows these timeouts, which is a gap only if the other side sets some. */
function asksForTimeouts({ kind, state: { ipvsTimeouts } }: Snapshot): boolean {
  return kind !== 'dump' && Object.values(ipvsTimeouts ?? {}).some((seconds) => seconds > 0);
}

/**
 * Decides which kinds of objects to expect: those that kube-proxy programs in the sides' modes. All current modes with iptables rules leave
 * similar objects, so if one of these modes is possible, all of them count.
 */
function askedOf(from: Snapshot, to: Snapshot): (kind: ObjectKind) => boolean {
  const known = [from, to].flatMap(possibleModes);
  const ofRules = proxyModes.filter((mode) => programs(mode, 'iptables') && isModeOf(mode, newestRelease));
  const modes = known.some((mode) => ofRules.includes(mode)) ? [...known, ...ofRules] : known;
  return (kind) => modes.some((mode) => programs(mode, kind));
}

/** `modeless`: a side does not show whether it has the other's Services, because its mode is unknown. */
export type Extent = 'all' | 'part' | 'nothing' | 'modeless';

export function extentOf(gaps: readonly ComparisonGap[], compared: StatePair, from: Snapshot, to: Snapshot): Extent {
  if (gaps.length === 0) return 'all';
  const isAsked = askedOf(from, to);
  const isGap = ({ kind, family }: Part): boolean =>
    gaps.some((gap) => gap.part === kind && gap.family === family && gap.table === undefined);
  // If no part is shown by both sides, missing objects prove nothing about the nodes.
  if (parts.every((part) => !isAsked(part.kind) || part.kind === 'ipvsTimeouts' || isGap(part))) return 'nothing';
  if (lacksServicesOf(to, from) || lacksServicesOf(from, to)) return 'modeless';
  const mains: readonly (keyof KernelState)[] = modesOfSides(from, to).map((mode) => modeFacts[mode].mainKind);
  const isMissed = gaps.some(({ held, part, table = 'nat' }) => {
    return held && table === 'nat' && mains.some((kind) => kind === part);
  });
  const isCompared = (part: Part): boolean =>
    [compared.from, compared.to].some((state) =>
      isMissed ? mains.includes(part.kind) && holdsPart(natAlone(state), part) : holdsPart(state, part),
    );
  return gaps.every(({ held }) => !held) || parts.some(isCompared) ? 'part' : 'nothing';
}

/** Reports whether a node's mode is unknown and its dump leaves out the kind of object that holds the other side's Services. */
function lacksServicesOf({ mode, ports }: Snapshot, { mode: own, coverage }: Snapshot): boolean {
  if (own || !mode) return false;
  return ports.some(({ family }) => {
    const shown: { readonly [K in ObjectKind]?: boolean } = {
      iptables: coverage.iptables[family].length > 0,
      nftables: coverage.nftables.includes(family),
      virtualServers: coverage.virtualServers,
    };
    return shown[modeFacts[mode].mainKind] === false;
  });
}

function natAlone({ iptables, ...state }: KernelState): KernelState {
  const nat = families.flatMap((family) =>
    iptables[family] ? [[family, { nat: iptables[family].nat }] as const] : [],
  );
  return { ...state, iptables: Object.fromEntries(nat) };
}

function modesOfSides(...sides: readonly Snapshot[]): readonly ProxyMode[] {
  return sides.flatMap(({ settings, state }) => settings?.mode ?? modeOfState(state) ?? []);
}
