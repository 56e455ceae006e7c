import { families, familyNames, type Family } from '../kernel/family.ts';
import type { TableName } from '../kernel/iptables/iptables.ts';
import { hasRules } from '../kernel/iptables/iptables-delta.ts';
import type { ObjectKind } from '../kernel/kinds.ts';
import type { KernelState } from '../kernel/state.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { isModeOf, newestRelease } from '../kube-proxy/releases.ts';
import { programs, proxyModes } from '../kube-proxy/modes.ts';
import { unlistedWords } from '../kube-proxy/unlisted-servers.ts';
import type { StatePair } from './foreign-items.ts';
import { workingTables } from '../dumps/coverage.ts';
import type { Doubt } from '../dumps/dump.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';

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

const partNames = {
  iptables: 'rules',
  nftables: 'nftables rules',
  sets: 'sets',
  virtualServers: 'virtual servers',
  proxyPorts: 'proxy ports',
  links: 'addresses',
  sysctls: 'sysctls',
  ipvsTimeouts: 'IPVS timeouts',
  base: 'rules and sets that belong to no Service',
  rest: 'the rest',
} as const satisfies Readonly<Record<Exclude<ObjectKind, 'modules'> | 'base' | 'rest', string>>;

type GapPart = keyof typeof partNames;

/** What a side may show of one family alone. */
const familyKinds = ['nftables', 'iptables'] as const;

type FamilyKind = (typeof familyKinds)[number];

/** What a side shows or does not, in the order in which reports list it. A module is in the kernel with what needs it. */
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
  /** All of each side that is kube-proxy's, whether both show it or not. */
  readonly whole: StatePair;
  /** Whether a side has sysctls that the other does not show. */
  readonly unshownSysctls: boolean;
}

/**
 * What is not compared of two sides. What no kube-proxy of their modes programs, and neither holds, is nothing to
 * compare.
 */
export function findGaps(sides: ComparedSides): readonly Gap[] {
  const { from, to, whole } = sides;
  const isAsked = askedOf(from, to);
  const ofParts = parts.flatMap((part): readonly Gap[] => {
    const held = [whole.from, whole.to].some((state) => holds(state, part));
    if ((!held && !isAsked(part.kind)) || (part.kind === 'ipvsTimeouts' && ![from, to].some(asksForTimeouts)))
      return [];
    return unshownParts(part, sides).map((table) => ({ part: part.kind, family: part.family, table, held }));
  });
  const doubts = [...from.doubts, ...to.doubts];
  return [...ofParts, ...doubts.map((doubt): Gap => ({ part: 'rest', family: undefined, doubt, held: false }))];
}

/** The tables that one of two sides does not show; undefined for all of a part. */
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
      const isLess = part.kind === 'sysctls' && unshownSysctls;
      return !isLess && coverages.every((coverage) => coverage[part.kind]) ? [] : [undefined];
    }
  }
}

/** Whether a state holds objects of kube-proxy. Every node has sysctls and timeouts, so these do not count. */
function holds({ nftables, iptables, ...state }: KernelState, { kind, family }: Part): boolean {
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
      // That a link is there says nothing of what it is there for.
      return state.links.some(({ addresses }) => addresses.length > 0);
    case 'sysctls':
    case 'ipvsTimeouts':
      return false;
  }
}

/** A dump shows no timeouts. That is a gap only if the other side sets some. */
function asksForTimeouts({ kind, state: { ipvsTimeouts } }: Snapshot): boolean {
  return kind !== 'dump' && Object.values(ipvsTimeouts ?? {}).some((seconds) => seconds > 0);
}

/**
 * The kinds that a kube-proxy of the sides' modes programs: the others are not missed. The modes of today that write rules of
 * iptables leave what looks like one another's, and if nothing shows the modes it may be any of these; tables of
 * nftables would show it.
 */
function askedOf(from: Snapshot, to: Snapshot): (kind: ObjectKind) => boolean {
  const known = [from, to].flatMap(({ settings, state }) => settings?.mode ?? modeOfState(state) ?? []);
  const ofRules = proxyModes.filter((mode) => programs(mode, 'iptables') && isModeOf(mode, newestRelease));
  const modes = known.length === 0 || known.some((mode) => ofRules.includes(mode)) ? [...known, ...ofRules] : known;
  return (kind) => modes.some((mode) => programs(mode, kind));
}

/** How much of what is kube-proxy's was compared. */
export type Extent = 'all' | 'part' | 'nothing';

/** `compared` is what both sides show. */
export function extentOf(gaps: readonly Gap[], compared: StatePair, from: Snapshot, to: Snapshot): Extent {
  if (gaps.length === 0) return 'all';
  const isAsked = askedOf(from, to);
  const isGap = ({ kind, family }: Part): boolean =>
    gaps.some((gap) => gap.part === kind && gap.family === family && gap.table === undefined);
  // If no part is shown by both sides, holding nothing proves nothing about the nodes.
  if (parts.every((part) => !isAsked(part.kind) || part.kind === 'ipvsTimeouts' || isGap(part))) return 'nothing';
  const isUnheld = gaps.every(({ held }) => !held);
  return isUnheld || parts.some((part) => holds(compared.from, part) || holds(compared.to, part)) ? 'part' : 'nothing';
}

/** Names the parts of a kernel that were not compared, each once. */
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
    case 'unlisted':
      return `what ${doubt.file} lacks: ${unlistedWords(doubt)}`;
    case 'second-listing':
      return `${doubt.output} of another node in ${doubt.file}`;
    case 'other-table':
      return `table ${doubt.table} (nftables)`;
    case 'other-variant':
    case 'legacy-tables':
      return `${familyNames[doubt.family]} rules of the other variant of iptables`;
  }
}
