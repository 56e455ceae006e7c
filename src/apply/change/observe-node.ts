import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { readListedManifest } from '../../bundle/read-bundle.ts';
import { families, type Family } from '../../kernel/family.ts';
import { applyTablesDelta } from '../../kernel/iptables/iptables-delta.ts';
import type { Tables } from '../../kernel/iptables/iptables.ts';
import { createRuleLines, type RuleLinesByFamily } from '../../kernel/iptables/rule-lines.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isEmptyBelongings, type Belongings } from '../state/belongings.ts';
import { focusOn, type Focus } from '../quick/changed-parts.ts';
import { splitTables, type NftTexts } from '../quick/changed-nftables.ts';
import type { Host } from '../node/host.ts';
import { readModuleIndex } from '../node/kernel-modules.ts';
import { isSameMoment, readNftStamp, type NftStamp } from '../quick/nft-generation.ts';
import {
  mayHaveNftables,
  neededParts,
  neededTables,
  parseReading,
  readNode,
  type EarlierReading,
  type NodeReading,
  type ReadingPart,
  type ReadingScope,
} from '../node/node-reading.ts';
import { listTraffic, trafficIn, type OpenTraffic } from '../node/open-traffic.ts';
import type { Claims, Conflict } from '../plan/claims.ts';
import { makePlan, servesByRulesAlone, type DrainTerms, type NodeState, type Plan, type Target } from '../plan/plan.ts';
import type { BundleMark, StateMark } from '../state/record.ts';
import type { FitTools, Settled } from '../quick/settled-bundle.ts';

/** What asks for a change, which tells what state the node is in after it. */
export type ChangeOrigin =
  | { readonly kind: 'apply' | 'watch'; readonly bundle: BundleMark }
  | { readonly kind: 'cleanup' }
  | { readonly kind: 'rollback'; readonly to: StateMark };

/** What is wanted of the node. */
export interface ChangeRequest {
  readonly origin: ChangeOrigin;
  /**
   * Made anew for each look at the node, since some of it depends on what the node is like. `files` are those of the
   * bundle as far as it is in sight, where not all of it is.
   */
  readonly target: (files?: BundleFiles) => Promise<Target>;
  /** The bundle that the target is, and what is known of the one before it, where that is the target. */
  readonly settling?: Settling | undefined;
  /** Families that the node must have. */
  readonly families: readonly Family[];
  readonly adopt: boolean;
  readonly excluded: Claims['excluded'];
  readonly clusterIPs?: Claims['clusterIPs'];
  /** Milliseconds until a real server goes even with connections; undefined waits for their end. */
  readonly drainTimeout: number | undefined;
  /** Milliseconds to wait for a confirmation, before everything is put back; undefined does not ask. */
  readonly confirmTimeout?: number | undefined;
  /**
   * Throws a Failure where the node is not fit to be changed. `isIdle`: nothing is to be changed, and nothing is in the
   * way. `node` is what the plan was made upon.
   */
  readonly prepare?: ((plan: Plan, isIdle: boolean, node: NodeState) => Promise<void>) | undefined;
  /** Whether rules that a kube-proxy left, and that would serve besides, are in the way of the first apply. */
  readonly refusesLeftovers?: boolean | undefined;
  /** What will be ours, where that is not simply what the target has. */
  readonly belongings?: Belongings | undefined;
}

/** A bundle, which is settled once the node is as it says. */
export interface Settling {
  readonly files: BundleFiles;
  /** Of this program. */
  readonly version: string;
  /** What was settled last, as it was before another process had the lock. */
  readonly known: Settled | undefined;
  /** The tools that were found fit, then or since. */
  readonly fitTools: () => FitTools;
}

/** A look at a node, and what would have to change. */
export interface Observation {
  readonly reading: NodeReading;
  readonly plan: Plan;
  readonly node: NodeState;
  readonly rules: RuleLinesByFamily;
  /** Where not all of the node and the bundle was looked at, what was. The plan is of that alone. */
  readonly focus: Focus | undefined;
  /** The moment for which the tables of nftables were read; undefined where that is unknown. */
  readonly nftStamp: NftStamp | undefined;
  /** By which connections and clock the plan was made. */
  readonly traffic: OpenTraffic;
  readonly terms: DrainTerms;
  /** Whether nftables, and with it perhaps the rules of iptables, was known without a list. */
  readonly isKnown: boolean;
}

/** How much has to be looked at: all, or what may differ from something that is known. */
export type LookBack =
  /** What was settled last, but for virtual servers that had more than the bundle says: those that drained. */
  | { readonly kind: 'settled'; readonly settled: Settled; readonly unlike: readonly string[] }
  /** An earlier look, for all but the parts that have been changed since. */
  | {
      readonly kind: 'earlier';
      readonly earlier: Observation;
      readonly changed: ReadonlySet<ReadingPart>;
      /** How many transactions of our own have changed nftables since, with those for the rules of iptables or without. */
      readonly nftTransactions: (hasRules: boolean) => number;
      /** When the tables of nftables were found to be as the bundle says, after all of these. */
      readonly nftProven: NftStamp | undefined;
      readonly traffic: OpenTraffic;
    };

/** Looks at the node, and says what would have to change. */
export async function look(
  host: Host,
  request: ChangeRequest,
  owned: Belongings,
  terms: DrainTerms,
  back?: LookBack,
): Promise<Observation> {
  const second = back?.kind === 'earlier' ? back : undefined;
  const before = second?.earlier;
  const settled = back?.kind === 'settled' ? back.settled : undefined;
  const present = settled?.nftables && (await readNftStamp(host));
  const known = findUnchanged(request, back, present);
  const expected =
    back?.kind === 'settled' && request.settling
      ? focusOn(back.settled, request.settling.files, back.unlike, known !== undefined)
      : before?.focus;
  const target = await request.target(expected?.bundle());
  const listing = second ? undefined : await listTraffic(host, servesByRulesAlone(target.state));
  const scope = {
    ipvs: listing && (listing.ipvs ?? null),
    needed: neededParts(target.state, owned),
    tables: neededTables(target.state, owned),
    families: request.families,
    timeouts: target.state.ipvsTimeouts !== undefined,
    nftables: target.state.nftables.length > 0 || owned.nftTables.length > 0,
    nftTables: known?.tables,
    rules: known?.rules,
    settings: target.settings.map((setting) => setting.path),
  };
  const traffic = second?.traffic ?? trafficIn(listing ?? { ipvs: undefined, sockets: [] });
  const earlierReading = second
    ? { reading: second.earlier.reading, changed: second.changed }
    : settled && readSince(settled, scope, owned);
  const [{ reading, nftStamp }, modules] = await Promise.all([
    known
      ? readNode(host, scope, earlierReading).then((read) => ({ reading: read, nftStamp: known.stamp }))
      : readAtMoment(host, { ...scope, isSettling: request.settling !== undefined, present }, back, () =>
          readNode(host, scope, earlierReading),
        ),
    before?.plan.modules.length === 0 ? before.node.modules : readModuleIndex(host, target.modules),
  ]);
  const focus = expected?.widen((before ?? settled)?.reading ?? reading, reading);
  const rules = before?.rules ?? { ipv4: createRuleLines(), ipv6: createRuleLines() };
  const earlier = before && !before.focus ? { reading: before.reading, state: before.node.state } : undefined;
  const state = focus ? parseReading(focus.node(reading)) : parseReading(reading, { rules, earlier });
  const node: NodeState = { state, settings: reading.settings, modules, traffic };
  const { adopt, excluded, clusterIPs } = request;
  const claims: Claims = { owned, adopt, excluded, clusterIPs };
  const asked = focus === expected ? target : await request.target(focus?.bundle());
  // What rules guarded for a while is no part of what is wanted.
  const wanted =
    earlier && before && !before.plan.takeover
      ? { ...asked, state: { ...asked.state, iptables: afterwards(before.plan, asked.state) } }
      : asked;
  const plan = makePlan(node, wanted, claims, terms);
  // Once there is a record, what a kube-proxy wrote since must not keep a watch from its repairs.
  const mustRefuse = request.refusesLeftovers === true && isEmptyBelongings(owned);
  const shown = mustRefuse ? refuseLeftovers(plan) : plan;
  return { reading, plan: shown, node, rules, focus, nftStamp, traffic, terms, isKnown: known !== undefined };
}

/**
 * What to read of a settled node: the parts in which something is wanted or ours. In all others nothing was ours, whatever
 * another program has made of them since. The rules of iptables are read as a whole where nftables keeps them: a stamp
 * vouches for those of both families, and for there being no table of kube-proxy's.
 */
function readSince(
  settled: Settled,
  { needed, nftables }: Pick<ReadingScope, 'needed' | 'nftables'>,
  owned: Belongings,
): EarlierReading | undefined {
  // Without a record, what is there may be what a kube-proxy left.
  if (isEmptyBelongings(owned)) return undefined;
  const nothing = { nftables: { ipv4: '', ipv6: '' }, ipvsTimeouts: '', addresses: '', settings: {} };
  const areStamped = mayHaveStamp(settled);
  const tables = areStamped || nftables ? (['nft ipv4', 'nft ipv6'] as const) : [];
  const changed = new Set<ReadingPart>([...needed, ...(areStamped ? families : []), ...tables, 'ipvs timeouts']);
  return { reading: { ...nothing, ...settled.reading }, changed };
}

/** What of nftables need not be read: it has not changed, or just as it was to. */
interface UnchangedTables {
  /** kube-proxy's. */
  readonly tables: NftTexts;
  /** Those of iptables, where it keeps them in nftables. */
  readonly rules?: NodeReading['iptables'] | undefined;
  readonly stamp: NftStamp;
}

/** `present`: the moment of this look, where something was settled at an earlier one. */
function findUnchanged(
  { settling }: ChangeRequest,
  back: LookBack | undefined,
  present: NftStamp | undefined,
): UnchangedTables | undefined {
  const tablesOf = (files: BundleFiles) => splitTables(files.get('nftables.nft') ?? '');
  switch (back?.kind) {
    case 'settled': {
      const { nftables: stamp, bundle, reading } = back.settled;
      // The way back will be what these files say, so that they must be what they were.
      if (!stamp || !isSameMoment(stamp, present) || stamp.tables.join() !== present?.tables.join()) return undefined;
      if (!readListedManifest(bundle)) return undefined;
      return { tables: tablesOf(bundle), rules: stamp.hasRules ? reading.iptables : undefined, stamp };
    }
    case 'earlier':
      return settling && back.nftProven ? { tables: tablesOf(settling.files), stamp: back.nftProven } : undefined;
    case undefined:
      return undefined;
    default:
      return back satisfies never;
  }
}

/** A reading, and the moment for which it is true of nftables: where nothing changes that while it is read. */
async function readAtMoment(
  host: Host,
  {
    nftables,
    isSettling,
    present,
  }: Pick<ReadingScope, 'nftables'> & { readonly isSettling: boolean; readonly present: NftStamp | undefined },
  back: LookBack | undefined,
  read: () => Promise<NodeReading>,
): Promise<{ readonly reading: NodeReading; readonly nftStamp: NftStamp | undefined }> {
  const isAsked = nftables || (isSettling && (await mayHaveMoment(host, back)));
  const from = isAsked ? (present ?? (await readNftStamp(host, hasRulesBefore(back)))) : undefined;
  const reading = await read();
  if (!from || !(nftables || (from.hasRules && hasNoTables(reading)))) return { reading, nftStamp: undefined };
  // Of a second look, what has not been changed is as the first one read it.
  const isTrue =
    back?.kind !== 'earlier' || isSameMoment(back.earlier.nftStamp, from, back.nftTransactions(from.hasRules));
  const to = await readNftStamp(host, from.hasRules);
  return { reading, nftStamp: isTrue && isSameMoment(from, to) ? to : undefined };
}

/** Of a second look, what the first one found: the variant of iptables stays the same from one to the other. */
function hasRulesBefore(back: LookBack | undefined): boolean | undefined {
  return back?.kind === 'earlier' ? back.earlier.nftStamp?.hasRules : undefined;
}

/** Whether to ask the kernel for the moment, although nothing is wanted in nftables: the rules of iptables may be there. */
async function mayHaveMoment(host: Host, back: LookBack | undefined): Promise<boolean> {
  switch (back?.kind) {
    case 'settled':
      return mayHaveStamp(back.settled);
    case 'earlier':
      return back.earlier.nftStamp !== undefined;
    case undefined:
      return mayHaveNftables(host);
    default:
      return back satisfies never;
  }
}

/** Whether it had one, or would have had one where the kernel had told. */
function mayHaveStamp({ nftables, reading }: Settled): boolean {
  return nftables !== undefined || families.some((family) => namesNftables.test(reading.iptables[family]));
}

/** "# Generated by iptables-save v1.8.9 (nf_tables) on …". */
const namesNftables = /^# Generated by \S+ v\S+ \(nf_tables\) on /;

/** Whether kube-proxy has no table in nftables. */
function hasNoTables({ nftables }: NodeReading): boolean {
  return families.every((family) => nftables[family] === '');
}

/** A plan in which rules of a kube-proxy that packets still meet are in the way. */
function refuseLeftovers(plan: Plan): Plan {
  const { conflicts, leftovers } = plan.share;
  const inTheWay = leftovers.filter(({ isInEffect }) => isInEffect);
  const added = inTheWay.map(({ kind, name, isHeld }): Conflict => ({ kind, name, adoptable: !isHeld, isHeld }));
  return { ...plan, share: { ...plan.share, conflicts: [...conflicts, ...added] } };
}

/**
 * The wanted tables, of the values that were read where these mean the same: what has not been changed then compares at
 * no cost. A plan's changes lead from what is there to what is wanted, no more and no less.
 */
function afterwards({ present, delta }: Plan, wanted: KernelState): KernelState['iptables'] {
  const iptables: { [F in Family]?: Tables } = {};
  for (const family of families) {
    if (wanted.iptables[family] === undefined) continue;
    iptables[family] = applyTablesDelta(present.iptables[family] ?? {}, delta.iptables[family] ?? []);
  }
  return iptables;
}
