import { hasCode } from '../../bundle/errors.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { readListedManifest } from '../../bundle/read-bundle.ts';
import { version } from '../../base/version.ts';
import { families } from '../../kernel/family.ts';
import type { Host } from '../node/host.ts';
import {
  mayHaveNftables,
  readNode,
  type EarlierReading,
  type NodeReading,
  type ReadingPart,
  type ReadingScope,
} from '../node/node-reading.ts';
import type { Plan } from '../plan/plan.ts';
import { isEmptyBelongings, type Belongings } from '../state/belongings.ts';
import { pruneStates } from '../state/history.ts';
import { readBootId } from '../state/process-identity.ts';
import type { OwnershipRecord, StateFolder, StateMark } from '../state/record.ts';
import { splitTables, type NftTexts } from './changed-nftables.ts';
import { focusOn, type Focus } from './changed-parts.ts';
import { isSameMoment, proveNftChange, readNftStamp, type NftStamp } from './nft-generation.ts';
import { discardSettled, isStillSettled, readSettled, unsettle, writeSettled, type Settled } from './settled-bundle.ts';

/**
 * What lets a small change cost little: nothing outside this folder uses more of it than this file. A change without it is as
 * whole and as right; it reads and compares everything.
 */

/** What was settled last, as it was before another process had the lock; undefined if that is not known. */
export type LastSettled = Settled | undefined;

export async function recallSettled(host: Host, folder: StateFolder): Promise<LastSettled> {
  return readSettled(host, folder, await readBootId(host), version);
}

/** A bundle, which is settled once the node is as it says. */
export interface Settling {
  readonly files: BundleFiles;
  readonly known: LastSettled;
  /** The tools that were found fit, then or since. */
  readonly fitTools: () => readonly string[];
}

/** What a look at a node found, as far as a later one may rely on it. */
export interface QuickReading {
  readonly reading: NodeReading;
  /** If not all of the node and the bundle was looked at, what was. */
  readonly focus: Focus | undefined;
  /** The moment for which the tables of nftables were read; undefined if that is unknown. */
  readonly nftStamp: NftStamp | undefined;
  /** Whether nftables, and with it perhaps the rules of iptables, was known without a list. */
  readonly isKnown: boolean;
}

/** What was settled last, except for virtual servers that had more than the bundle says: those that drained. */
export interface SettledLook {
  readonly kind: 'settled';
  readonly settled: Settled;
  readonly unlike: readonly string[];
}

/** An earlier look, which holds for all but the parts that have been changed since. */
export interface EarlierLook {
  readonly kind: 'earlier';
  readonly earlier: QuickReading;
  readonly changed: ReadonlySet<ReadingPart>;
  /** How many transactions of our own have changed nftables since, with those for the rules of iptables or without. */
  readonly nftTransactions: (hasRules: boolean) => number;
  /** When the tables of nftables were found to be as the bundle says, after all of these. */
  readonly nftProven: NftStamp | undefined;
}

/** What was settled last, if that still holds, and nothing is taken over or left of another mode. */
export async function findSettled(
  host: Host,
  folder: StateFolder,
  { known }: Settling,
  { draining, leftIpvs }: OwnershipRecord,
): Promise<SettledLook | undefined> {
  if (!known || leftIpvs !== undefined || !(await isStillSettled(host, folder, known))) return undefined;
  return { kind: 'settled', settled: known, unlike: draining.map(({ virtualServer }) => virtualServer) };
}

/** A look at a node that reads no more of it than may have changed. */
export interface QuickLook {
  /** What of the bundle is in sight; undefined for all of it. */
  readonly focus: Focus | undefined;
  read(scope: ReadingScope, owned: Belongings): Promise<QuickReading>;
}

export async function beginLook(
  host: Host,
  { files }: Settling,
  back: SettledLook | EarlierLook | undefined,
): Promise<QuickLook> {
  const settled = back?.kind === 'settled' ? back.settled : undefined;
  const earlier = back?.kind === 'earlier' ? back.earlier : undefined;
  const present = settled?.nftables && (await readNftStamp(host));
  const known = findUnchanged(files, back, present);
  const focus =
    back?.kind === 'settled' ? focusOn(back.settled, files, back.unlike, known !== undefined) : earlier?.focus;
  return {
    focus,
    async read(scope, owned) {
      const since =
        back?.kind === 'earlier'
          ? { reading: back.earlier.reading, changed: back.changed }
          : settled && readSince(settled, scope, owned);
      const work = () => readNode(host, { ...scope, nftTables: known?.tables, rules: known?.rules }, since);
      const { reading, nftStamp } = known
        ? { reading: await work(), nftStamp: known.stamp }
        : await readAtMoment(host, scope, present, back, work);
      const before = (earlier ?? settled)?.reading ?? reading;
      return { reading, nftStamp, isKnown: known !== undefined, focus: focus?.widen(before, reading) };
    },
  };
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
  /** Those of iptables, if it keeps them in nftables. */
  readonly rules?: NodeReading['iptables'] | undefined;
  readonly stamp: NftStamp;
}

/** `present`: the moment of this look, if something was settled at an earlier one. */
function findUnchanged(
  files: BundleFiles,
  back: SettledLook | EarlierLook | undefined,
  present: NftStamp | undefined,
): UnchangedTables | undefined {
  const tablesOf = (some: BundleFiles) => splitTables(some.get('nftables.nft') ?? '');
  if (back?.kind === 'earlier') return back.nftProven && { tables: tablesOf(files), stamp: back.nftProven };
  if (!back) return undefined;
  const { nftables: stamp, bundle, reading } = back.settled;
  // The way back will be what these files say, so that they must be what they were.
  if (!stamp || !isSameMoment(stamp, present) || stamp.tables.join() !== present?.tables.join()) return undefined;
  if (!readListedManifest(bundle)) return undefined;
  return { tables: tablesOf(bundle), rules: stamp.hasRules ? reading.iptables : undefined, stamp };
}

/** A reading, and the moment for which it is true of nftables: if nothing changes that while it is read. */
async function readAtMoment(
  host: Host,
  { nftables }: Pick<ReadingScope, 'nftables'>,
  present: NftStamp | undefined,
  back: SettledLook | EarlierLook | undefined,
  read: () => Promise<NodeReading>,
): Promise<Pick<QuickReading, 'reading' | 'nftStamp'>> {
  // Of a second look, the first one found which variant of iptables there is.
  const before = back?.kind === 'earlier' ? back.earlier.nftStamp : undefined;
  const isAsked = nftables || (await mayHaveMoment(host, back));
  const from = isAsked ? (present ?? (await readNftStamp(host, before?.hasRules))) : undefined;
  const reading = await read();
  const hasTables = families.some((family) => reading.nftables[family] !== '');
  if (!from || !(nftables || (from.hasRules && !hasTables))) return { reading, nftStamp: undefined };
  // Of a second look, what has not been changed is as the first one read it.
  const isTrue = back?.kind !== 'earlier' || isSameMoment(before, from, back.nftTransactions(from.hasRules));
  const to = await readNftStamp(host, from.hasRules);
  return { reading, nftStamp: isTrue && isSameMoment(from, to) ? to : undefined };
}

/** Whether to ask the kernel for the moment, although nothing is wanted in nftables: the rules of iptables may be there. */
async function mayHaveMoment(host: Host, back: SettledLook | EarlierLook | undefined): Promise<boolean> {
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

/** Whether it had one, or would have had one if the kernel had reported it. */
function mayHaveStamp({ nftables, reading }: Settled): boolean {
  return nftables !== undefined || families.some((family) => namesNftables.test(reading.iptables[family]));
}

/** "# Generated by iptables-save v1.8.9 (nf_tables) on …". */
const namesNftables = /^# Generated by \S+ v\S+ \(nf_tables\) on /;

/** The moment at which nftables was found changed as it was to be, if no list of the tables is needed for that. */
export async function proveChange(
  host: Host,
  { focus, nftStamp }: QuickReading,
  { present, state, delta }: Plan,
  inputs: readonly string[],
): Promise<NftStamp | undefined> {
  if (!nftStamp || !focus?.cutsNftables || inputs.length === 0) return undefined;
  const rehearsal = { present: present.nftables, wanted: state.nftables, delta: delta.nftables, inputs };
  return proveNftChange(host, nftStamp, rehearsal);
}

/**
 * Writes to the state folder what a change needs, and gives whether what was settled still has its files. Nothing is settled any
 * more. If there is no space for both, what is written takes that of those files, and then that of earlier states.
 */
export async function writeBesideSettled(
  host: Host,
  folder: StateFolder,
  write: () => Promise<void>,
  state: StateMark | undefined,
): Promise<boolean> {
  await unsettle(host, folder);
  const makeRoom = [() => discardSettled(host, folder), ...(state ? [() => pruneStates(host, folder, state, 1)] : [])];
  for (const free of makeRoom) {
    try {
      await write();
      return free === makeRoom[0];
    } catch (error) {
      if (!hasCode(error, 'ENOSPC') && !hasCode(error, 'EDQUOT')) throw error;
      await free();
    }
  }
  await write();
  return false;
}

/**
 * Keeps what the next change need not look at, if all that is ours is as the bundle says, and nothing else is ours. It
 * saves time and no more: if it cannot be kept, everything is looked at the next time. `last` is what is still on the disk:
 * of what was read before the lock was taken, another process may have replaced some since.
 */
export async function settleFor(
  host: Host,
  folder: StateFolder,
  { files, fitTools }: Settling,
  { plan, reading, nftStamp }: QuickReading & { readonly plan: Plan },
  { bootId, leftIpvs }: OwnershipRecord,
  last: SettledLook | undefined,
): Promise<void> {
  const { belongings, ours, conflicts } = plan.share;
  const [chains, sets] = [new Set(ours.chains), new Set(ours.sets)];
  const keepsOthers =
    belongings.chains.some((key) => !chains.has(key)) || belongings.sets.some((name) => !sets.has(name));
  if (keepsOthers || leftIpvs !== undefined || conflicts.length > 0) return;
  const settled = {
    id: `${host.now()}-${host.pid}`,
    bundle: files,
    reading,
    nftables: nftStamp,
    fitTools: fitTools(),
  };
  await writeSettled(host, folder, settled, { bootId, version, known: last?.settled }).catch(() =>
    // Half of it would only take the space that the next journal needs.
    discardSettled(host, folder).catch(() => undefined),
  );
}
