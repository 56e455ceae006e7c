import { families, familyNames, type Family } from '../kernel/family.ts';
import type { TableName } from '../kernel/iptables/iptables.ts';
import type { ObjectKind } from '../kernel/kinds.ts';
import type { KernelState } from '../kernel/state.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { programs, proxyModes } from '../kube-proxy/modes.ts';
import type { StatePair } from './foreign-items.ts';
import { setFamily } from '../kube-proxy/ipvs-sets.ts';
import { workingTables, type Coverage } from '../dumps/coverage.ts';
import type { Doubt } from '../dumps/dump.ts';
import type { Side } from './compared-side.ts';

/** A part of the kernel that was not compared because one side does not show it. It may hide a difference. */
export interface Gap {
  readonly part: GapPart;
  /** Undefined if the side lacks it for another reason than the family. */
  readonly family: Family | undefined;
  /** For rules: the table, unless it is all of them. */
  readonly table?: TableName | undefined;
  /** The file of a dump that may have held more; undefined if it is another part. */
  readonly doubt?: Doubt | undefined;
  /** Whether the side that shows it has anything of kube-proxy's there. */
  readonly held: boolean;
}

/** The parts of a kernel, each in a few words. */
const partNames = {
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
} as const;

type GapPart = keyof typeof partNames;

/** Two sides, and what they hold. */
interface ComparedSides {
  readonly from: Side;
  readonly to: Side;
  /** All of each side that is kube-proxy's, whether both show it or not. */
  readonly whole: StatePair;
  /** Whether a side has sysctls that the other does not show. */
  readonly unshownSysctls: boolean;
}

/** What of the objects of one kind is not compared. */
interface KindGaps {
  readonly part: GapPart;
  /** Whether a side shows them family by family. */
  readonly byFamily?: true;
  /** What a side shows one by one. */
  readonly tables?: readonly TableName[];
  /** Whether a side shows them; for rules, those of a table. */
  readonly shows: (coverage: Coverage, family: Family | undefined, table: TableName | undefined) => boolean;
  /** Whether a state holds any that are kube-proxy's, for a family. Settings of a node belong to none, and any node has them. */
  readonly holds?: (state: KernelState, family: Family) => boolean;
  /** For kinds that say nothing about a node: whether a difference may hide where they are not compared. */
  readonly matters?: (sides: ComparedSides) => boolean;
}

/** In the order in which reports list them. */
const kindGaps: { readonly [K in ObjectKind]: KindGaps } = {
  nftables: {
    part: 'nftables',
    byFamily: true,
    shows: ({ nftables }, family) => nftables.some((each) => each === family),
    holds: ({ nftables }, family) => nftables.some((table) => table.family === family),
  },
  iptables: {
    part: 'rules',
    byFamily: true,
    tables: workingTables,
    shows: ({ iptables }, family, table) => !family || iptables[family].some((each) => each === table),
    holds: ({ iptables }, family) => Object.values(iptables[family] ?? {}).some((chains) => chains.size > 0),
  },
  sets: {
    part: 'sets',
    shows: ({ sets }) => sets,
    holds: ({ sets }, family) => sets.some((set) => setFamily(set) === family),
  },
  virtualServers: {
    part: 'virtualServers',
    shows: ({ virtualServers }) => virtualServers,
    holds: ({ virtualServers }, family) => virtualServers.some((server) => server.family === family),
  },
  // A link is in no family: that it is there says nothing of what it is there for.
  links: {
    part: 'links',
    shows: ({ links }) => links,
    holds: ({ links }, family) => links.some((link) => link.addresses.some((address) => address.family === family)),
  },
  sysctls: { part: 'sysctls', shows: ({ sysctls }) => sysctls },
  // A dump shows no timeouts and no modules: what needs a module is in the kernel only with it.
  ipvsTimeouts: {
    part: 'ipvsTimeouts',
    shows: ({ ipvsTimeouts }) => ipvsTimeouts,
    matters: ({ from, to }) =>
      [from, to].some(({ kind, state: { ipvsTimeouts } }) => {
        return kind !== 'dump' && Object.values(ipvsTimeouts ?? {}).some((seconds) => seconds > 0);
      }),
  },
  modules: { part: 'modules', shows: ({ modules }) => modules, matters: () => false },
};

const gapOrder = Object.keys(kindGaps) as readonly ObjectKind[];

/**
 * What is not compared of two sides. What no kube-proxy of their modes programs, and neither holds, is nothing to
 * compare.
 */
export function findGaps(sides: ComparedSides): readonly Gap[] {
  const isAsked = askedOf(sides.from, sides.to);
  const ofKinds = gapOrder.flatMap((kind) =>
    familiesOf(kind).flatMap((family): readonly Gap[] => {
      const { part, matters } = kindGaps[kind];
      const held = [sides.whole.from, sides.whole.to].some((state) => holds(state, kind, family ? [family] : families));
      if ((!held && !isAsked(kind)) || matters?.(sides) === false) return [];
      return unshownParts(kind, family, sides).map((table) => ({ part, family, table, held }));
    }),
  );
  const doubts = [...sides.from.doubts, ...sides.to.doubts];
  return [...ofKinds, ...doubts.map((doubt): Gap => ({ part: 'rest', family: undefined, doubt, held: false }))];
}

function familiesOf(kind: ObjectKind): readonly (Family | undefined)[] {
  return kindGaps[kind].byFamily ? families : [undefined];
}

/** The tables that one of two sides does not show; undefined for all of a kind. */
function unshownParts(
  kind: ObjectKind,
  family: Family | undefined,
  { from, to, unshownSysctls }: ComparedSides,
): readonly (TableName | undefined)[] {
  if (kind === 'sysctls' && unshownSysctls) return [undefined];
  const { tables = [undefined], shows } = kindGaps[kind];
  const unshown = tables.filter((table) => [from, to].some(({ coverage }) => !shows(coverage, family, table)));
  return unshown.length === tables.length ? [undefined] : unshown;
}

function holds(state: KernelState, kind: ObjectKind, ofFamilies: readonly Family[]): boolean {
  return ofFamilies.some((family) => kindGaps[kind].holds?.(state, family) === true);
}

/**
 * The kinds that a kube-proxy of the sides' modes programs: the others are not missed. The modes that write rules of
 * iptables leave what looks like one another's, and if nothing shows the modes it may be any of these; tables of
 * nftables would show it.
 */
function askedOf(from: Side, to: Side): (kind: ObjectKind) => boolean {
  const known = [from, to].flatMap(({ services, state }) => services?.settings.mode ?? modeOfState(state) ?? []);
  const ofRules = proxyModes.filter((mode) => programs(mode, 'iptables'));
  const modes = known.length === 0 || known.some((mode) => ofRules.includes(mode)) ? [...known, ...ofRules] : known;
  return (kind) => modes.some((mode) => programs(mode, kind));
}

/** How much of what is kube-proxy's was compared. */
export type Extent = 'all' | 'part' | 'nothing';

/** `compared` is what both sides show. */
export function extentOf(gaps: readonly Gap[], compared: StatePair, from: Side, to: Side): Extent {
  if (gaps.length === 0) return 'all';
  const isAsked = askedOf(from, to);
  const isGap = (part: GapPart, family: Family | undefined): boolean =>
    gaps.some((gap) => gap.part === part && gap.family === family && gap.table === undefined);
  // If no part is shown by both sides, holding nothing proves nothing about the nodes.
  const isEverything = gapOrder.every((kind) => {
    const { part, matters } = kindGaps[kind];
    return !isAsked(kind) || matters !== undefined || familiesOf(kind).every((family) => isGap(part, family));
  });
  if (isEverything) return 'nothing';
  const holdsAny = (state: KernelState): boolean => gapOrder.some((kind) => holds(state, kind, families));
  const isUnheld = gaps.every(({ held }) => !held);
  return isUnheld || holdsAny(compared.from) || holdsAny(compared.to) ? 'part' : 'nothing';
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
    case 'other-table':
      return `table ${doubt.table} (nftables)`;
  }
}
