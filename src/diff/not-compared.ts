import { families, familyNames, type Family } from '../kernel/family.ts';
import type { TableName } from '../kernel/iptables/iptables.ts';
import type { ObjectKind } from '../kernel/kinds.ts';
import type { KernelState } from '../kernel/state.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { programs, proxyModes } from '../kube-proxy/modes.ts';
import type { StatePair } from './foreign-items.ts';
import { setFamily } from '../kube-proxy/sets.ts';
import { workingTables, type Coverage } from '../dumps/coverage.ts';
import type { Doubt } from '../dumps/dump.ts';
import type { Side } from './compared-side.ts';

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

type GapPart = Exclude<ObjectKind, 'iptables'> | 'rules' | 'base' | 'rest';

/** Two sides, and what they hold. */
interface ComparedSides {
  readonly from: Side;
  readonly to: Side;
  /** All of each side that is kube-proxy's, whether both can tell it or not. */
  readonly whole: StatePair;
  /** Whether a side has sysctls that the other does not tell. */
  readonly untoldSysctls: boolean;
}

interface Compared extends ComparedSides {
  /** Whether a kube-proxy of the sides' modes programs such objects. */
  readonly isAsked: (kind: ObjectKind) => boolean;
}

/** What of the objects of one kind is not compared. */
interface KindGaps {
  /** The gaps, where there is anything to compare. */
  find(compared: Compared): readonly Gap[];
  /** Whether a state holds any that are kube-proxy's, for a family. */
  holds(state: KernelState, family: Family): boolean;
  /** Whether these gaps leave nothing of the kind; undefined where that says nothing of a node. */
  isWhole?(gaps: readonly Gap[]): boolean;
}

/** In the order in which people are to read of them. */
const kindGaps: { readonly [K in ObjectKind]: KindGaps } = {
  nftables: {
    find: (compared) =>
      families
        .filter((family) => !tell(compared, ({ nftables }) => nftables.includes(family)))
        .map((family): Gap => ({ part: 'nftables', family, matters: true, held: hold(compared, 'nftables', [family]) }))
        .filter(({ held }) => held || compared.isAsked('nftables')),
    holds: ({ nftables }, family) => nftables.some((table) => table.family === family),
    isWhole: (gaps) => families.every((family) => hasGap(gaps, 'nftables', family)),
  },
  iptables: {
    find: (compared) => families.flatMap((family) => findRuleGaps(compared, family)),
    holds: ({ iptables }, family) => Object.values(iptables[family] ?? {}).some((chains) => chains.size > 0),
    isWhole: (gaps) => families.every((family) => hasGap(gaps, 'rules', family)),
  },
  sets: gapsOfAll('sets', ({ sets }, family) => sets.some((set) => setFamily(set) === family)),
  virtualServers: gapsOfAll('virtualServers', ({ virtualServers }, family) =>
    virtualServers.some((server) => server.family === family),
  ),
  // A link is in no family: that it is there says nothing of what it is there for.
  links: gapsOfAll('links', ({ links }, family) =>
    links.some(({ addresses }) => addresses.some((address) => address.family === family)),
  ),
  sysctls: {
    ...gapsOfSettings(
      'sysctls',
      () => true,
      ({ untoldSysctls }) => !untoldSysctls,
    ),
    isWhole: (gaps) => hasGap(gaps, 'sysctls'),
  },
  // A dump tells no timeouts, and no modules: what needs a module is in the kernel with it only.
  ipvsTimeouts: gapsOfSettings('ipvsTimeouts', ({ from, to }) =>
    [from, to].some(({ kind, state: { ipvsTimeouts } }) => kind !== 'dump' && ipvsTimeouts && sum(ipvsTimeouts) > 0),
  ),
  modules: gapsOfSettings('modules', () => false),
};

const gapOrder = Object.keys(kindGaps) as readonly ObjectKind[];

/**
 * What is not compared of two sides. What no kube-proxy of their modes programs, and neither holds, is nothing to
 * compare.
 */
export function findGaps(sides: ComparedSides): readonly Gap[] {
  const { from, to } = sides;
  const compared = { ...sides, isAsked: askedOf(from, to) };
  return [
    ...gapOrder.flatMap((kind) => kindGaps[kind].find(compared)),
    ...[from, to].flatMap(({ doubts }) =>
      doubts.map((doubt): Gap => ({ part: 'rest', family: undefined, doubt, matters: true, held: false })),
    ),
  ];
}

/** Whether both sides tell something. */
function tell({ from, to }: Compared, tells: (coverage: Coverage) => boolean): boolean {
  return tells(from.coverage) && tells(to.coverage);
}

/** Whether either side holds objects of the kind, for one of the families. */
function hold({ whole }: Compared, kind: ObjectKind, ofFamilies: readonly Family[]): boolean {
  return [whole.from, whole.to].some((state) => ofFamilies.some((family) => kindGaps[kind].holds(state, family)));
}

function hasGap(gaps: readonly Gap[], part: GapPart, family?: Family): boolean {
  return gaps.some((gap) => gap.part === part && gap.family === family && gap.table === undefined);
}

function findRuleGaps(compared: Compared, family: Family): readonly Gap[] {
  const untold = workingTables.filter((table) => !tell(compared, ({ iptables }) => iptables[family].includes(table)));
  const held = hold(compared, 'iptables', [family]);
  if (!held && !compared.isAsked('iptables')) return [];
  const gap: Gap = { part: 'rules', family, matters: true, held };
  if (untold.length === workingTables.length) return [gap];
  return untold.map((table): Gap => ({ ...gap, table }));
}

/** Of a kind that a side tells of both families, or of none. */
function gapsOfAll(kind: 'sets' | 'virtualServers' | 'links', holds: KindGaps['holds']): KindGaps {
  return {
    find: (compared) => {
      if (tell(compared, (coverage) => coverage[kind])) return [];
      const held = hold(compared, kind, families);
      return held || compared.isAsked(kind) ? [{ part: kind, family: undefined, matters: true, held }] : [];
    },
    holds,
    isWhole: (gaps) => hasGap(gaps, kind),
  };
}

/** Of settings of a node, which a dump need not tell, and which any node has. */
function gapsOfSettings(
  kind: 'sysctls' | 'ipvsTimeouts' | 'modules',
  matter: (compared: Compared) => boolean,
  isWhole: (compared: Compared) => boolean = () => true,
): KindGaps {
  return {
    find: (compared) => {
      const isTold = tell(compared, (coverage) => coverage[kind]) && isWhole(compared);
      if (isTold || !compared.isAsked(kind)) return [];
      return [{ part: kind, family: undefined, matters: matter(compared), held: false }];
    },
    holds: () => false,
  };
}

function sum({ tcp, tcpFin, udp }: NonNullable<KernelState['ipvsTimeouts']>): number {
  return tcp + tcpFin + udp;
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
  return gapOrder.every((kind) => !isAsked(kind) || (kindGaps[kind].isWhole?.(gaps) ?? true));
}

function holdsAnything(state: KernelState): boolean {
  return gapOrder.some((kind) => families.some((family) => kindGaps[kind].holds(state, family)));
}

/** The parts of a kernel that are not compared, in a few words each. What both sides lack alike is said once. */
export function describeGaps(gaps: readonly Gap[]): readonly string[] {
  const words = gaps.map(({ part, family, table, doubt }) => {
    if (doubt) return describeDoubt(doubt);
    const ofTable = table === undefined ? '' : ` of table ${table}`;
    return (family === undefined ? '' : `${familyNames[family]} `) + partNames[part] + ofTable;
  });
  return [...new Set(words)];
}

function describeDoubt(doubt: Doubt): string {
  switch (doubt.kind) {
    case 'unread':
      return `what could not be read of ${doubt.file}`;
    case 'empty':
      return `what is not in ${doubt.file}, which is empty`;
    case 'cut-line':
      return `what may follow in ${doubt.file}, whose last line is cut off`;
    case 'no-forwarding':
      return `how real servers are reached, which the columns of ${doubt.file} do not show`;
    case 'other-table':
      return `table ${doubt.table} (nftables)`;
  }
}

const partNames: { readonly [P in Gap['part']]: string } = {
  rules: 'rules',
  nftables: 'nftables rules',
  sets: 'sets',
  virtualServers: 'virtual servers',
  links: 'addresses',
  sysctls: 'sysctls',
  ipvsTimeouts: 'IPVS timeouts',
  modules: 'kernel modules',
  base: 'rules and sets that belong to no Service',
  rest: 'the rest',
};
