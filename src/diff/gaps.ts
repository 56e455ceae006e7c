import type { Family } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import type { TableName } from '../kernel/iptables.ts';
import type { KernelState } from '../kernel/state.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { programs, proxyModes } from '../kube-proxy/modes.ts';
import type { ObjectKind } from '../kube-proxy/modes.ts';
import type { StatePair } from './belonging.ts';
import { setFamily } from '../kube-proxy/sets.ts';
import type { Coverage, Doubt, Side } from './side.ts';
import { workingTables } from './side.ts';

/** A part of the kernel that was not compared, since one of two sides cannot tell it. */
export interface Gap {
  readonly part: GapPart;
  /** Undefined where it is not for the family that a side cannot tell it. */
  readonly family: Family | undefined;
  /** Of rules: the table, where it is not all of them. */
  readonly table?: TableName | undefined;
  /** The file of a dump that may have held more; undefined where it is another part. */
  readonly doubt?: Doubt | undefined;
  /** Whether a difference may hide there, so that no report may say that there is none. */
  readonly matters: boolean;
  /** Whether the side that can tell has anything of kube-proxy's there. */
  readonly held: boolean;
}

type GapPart = 'rules' | 'nftables' | FamilyPart | SettingPart | 'base' | 'rest';

/** What a state holds for each family, besides rules. */
type FamilyPart = 'sets' | 'virtualServers' | 'links';
const familyParts: readonly FamilyPart[] = ['sets', 'virtualServers', 'links'];

/** Settings of a node, which a dump need not tell. */
type SettingPart = 'sysctls' | 'ipvsTimeouts' | 'modules';
type SettingGap = Gap & { readonly part: SettingPart };

/** Two sides, and what they hold. */
interface Compared {
  readonly from: Side;
  readonly to: Side;
  /** All of each side that is kube-proxy's, whether both can tell it or not. */
  readonly whole: StatePair;
  /** Whether a side has sysctls that the other does not tell. */
  readonly untoldSysctls: boolean;
}

/**
 * What is not compared of two sides. What no kube-proxy of their modes programs, and neither holds, is nothing to
 * compare.
 */
export function findGaps({ from, to, whole, untoldSysctls }: Compared): readonly Gap[] {
  const sides = [from.coverage, to.coverage];
  const isGap = (tells: (side: Coverage) => boolean) => !sides.every(tells);
  const holds = (test: (state: KernelState) => boolean) => test(whole.from) || test(whole.to);
  const isAsked = askedOf(from, to);
  return [
    ...families
      .filter((family) => isGap((side) => side.nftables.includes(family)))
      .map((family): Gap => {
        const held = holds((state) => holdsNftables(state, family));
        return { part: 'nftables', family, matters: true, held };
      })
      .filter(({ held }) => held || isAsked('nftables')),
    ...families.flatMap((family) => {
      const untold = workingTables.filter((table) => isGap((side) => side.iptables[family].includes(table)));
      const held = holds((state) => holdsRules(state, family));
      if (!held && !isAsked('iptables')) return [];
      const gap: Gap = { part: 'rules', family, matters: true, held };
      if (untold.length === workingTables.length) return [gap];
      return untold.map((table): Gap => ({ ...gap, table }));
    }),
    ...familyParts
      .filter((part) => isGap((side) => side[part]))
      .flatMap((part): readonly Gap[] => {
        const held = holds((state) => families.some((family) => holdsPart[part](state, family)));
        return held || isAsked(part) ? [{ part, family: undefined, matters: true, held }] : [];
      }),
    ...settingGaps(from, to, untoldSysctls).filter(({ part }) => isAsked(part)),
    ...[from, to].flatMap(({ doubts }) =>
      doubts.map((doubt): Gap => ({ part: 'rest', family: undefined, doubt, matters: true, held: false })),
    ),
  ];
}

/**
 * The kinds that a kube-proxy of the sides' modes programs: the others are not missed. The modes that write rules of
 * iptables leave what looks like one another's, and where nothing tells the modes it may be any of these; tables of
 * nftables would tell.
 */
function askedOf(from: Side, to: Side): (kind: ObjectKind) => boolean {
  const known = [from, to].flatMap(({ services, state }) => services?.settings.mode ?? modeOfState(state) ?? []);
  const ofRules = proxyModes.filter((mode) => programs(mode, 'iptables'));
  const modes = known.length === 0 || known.some((mode) => ofRules.includes(mode)) ? [...known, ...ofRules] : known;
  return (kind) => modes.some((mode) => programs(mode, kind));
}

/** A dump tells no timeouts, and no modules: what needs a module is in the kernel with it only. */
function settingGaps(from: Side, to: Side, untoldSysctls: boolean): readonly SettingGap[] {
  const isTold = (part: SettingPart) => from.coverage[part] && to.coverage[part];
  const gap = (part: SettingPart, matters: boolean, told = isTold(part)): readonly SettingGap[] =>
    told ? [] : [{ part, family: undefined, matters, held: false }];
  const compiled = [from, to].filter(({ kind }) => kind !== 'dump');
  const asksTimeouts = compiled.some(({ state: { ipvsTimeouts } }) => ipvsTimeouts && sum(ipvsTimeouts) > 0);
  return [
    ...gap('sysctls', true, isTold('sysctls') && !untoldSysctls),
    ...gap('ipvsTimeouts', asksTimeouts),
    ...gap('modules', false),
  ];
}

function sum({ tcp, tcpFin, udp }: NonNullable<KernelState['ipvsTimeouts']>): number {
  return tcp + tcpFin + udp;
}

function holdsRules({ iptables }: KernelState, family: Family): boolean {
  return Object.values(iptables[family] ?? {}).some((chains) => chains.size > 0);
}

function holdsNftables({ nftables }: KernelState, family: Family): boolean {
  return nftables.some((table) => table.family === family);
}

const holdsPart: { readonly [P in FamilyPart]: (state: KernelState, family: Family) => boolean } = {
  sets: ({ sets }, family) => sets.some((set) => setFamily(set) === family),
  virtualServers: ({ virtualServers }, family) => virtualServers.some((server) => server.family === family),
  links: ({ links }, family) => links.some(({ addresses }) => addresses.some((address) => address.family === family)),
};

/** How much of what is kube-proxy's was compared. */
export type Extent = 'all' | 'part' | 'nothing';

/** `compared` is what both sides can tell. */
export function extentOf(gaps: readonly Gap[], compared: StatePair, from: Side, to: Side): Extent {
  if (!gaps.some(({ matters }) => matters)) return 'all';
  if (isEverything(gaps, askedOf(from, to))) return 'nothing';
  if (!gaps.some(({ held }) => held)) return 'part';
  return holdsAnything(compared.from) || holdsAnything(compared.to) ? 'part' : 'nothing';
}

/** Whether there is no part at all that both sides tell: then neither holding anything says nothing of the nodes. */
function isEverything(gaps: readonly Gap[], isAsked: (kind: ObjectKind) => boolean): boolean {
  const isGap = (part: GapPart, family?: Family) =>
    gaps.some((gap) => gap.part === part && gap.family === family && gap.table === undefined);
  return (
    families.every(
      (family) =>
        (isGap('rules', family) || !isAsked('iptables')) && (isGap('nftables', family) || !isAsked('nftables')),
    ) && [...familyParts, 'sysctls' as const].every((part) => isGap(part) || !isAsked(part))
  );
}

/** A link is in no family: that it is there says nothing of what it is there for. */
function holdsAnything(state: KernelState): boolean {
  return families.some(
    (family) =>
      holdsRules(state, family) ||
      holdsNftables(state, family) ||
      familyParts.some((part) => holdsPart[part](state, family)),
  );
}
