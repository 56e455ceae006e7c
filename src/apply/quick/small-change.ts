import { hashHex } from '#hash';
import { listOf, objectOf, optional, text, type Shaped } from '../../base/json-shape.ts';
import { version } from '../../base/version.ts';
import { hasCode } from '../../base/system-errors.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { readListedManifest } from '../../bundle/read-bundle.ts';
import { families } from '../../kernel/family.ts';
import type { Host } from '../node/host.ts';
import {
  mayHaveNftables,
  readNode,
  textsBut,
  type NodeReading,
  type ReadingPart,
  type ReadingScope,
  type ReadingTexts,
} from '../node/node-reading.ts';
import { type Step, countNftTransactions, listNftInputs } from '../plan/steps.ts';
import type { OpenTraffic } from '../node/open-traffic.ts';
import type { RuleLinesByFamily } from '../../kernel/iptables/parse-save.ts';
import type { DrainTerms, NodeState, Plan } from '../plan/plan.ts';
import { isEmptyBelongings, type Belongings } from '../state/belongings.ts';
import { pruneStates } from '../state/history.ts';
import { readBootId, readJson, writeJson, type OwnershipRecord, type StateFolder } from '../state/record.ts';
import { cutParts, focusOn, splitTables, type CutTexts, type Focus } from './focus.ts';
import { isSameMoment, nftStampShape, proveNftChange, readNftStamp, type NftStamp } from './prove-nft-change.ts';

/**
 * Makes small changes cheap. Nothing outside this folder uses its other files. Without it, a change is just as
 * complete and correct, but reads and compares everything.
 */

/**
 * A bundle that was found to hold what kpc writes and nothing else, and what the tools printed of the node when all that
 * is kpc-apply's there was as this bundle says. What has not changed since in either need not be looked at again.
 */
export interface Settled {
  readonly id: string;
  readonly bundle: BundleFiles;
  readonly texts: CutTexts;
  /** When the tables of nftables were as the bundle says; undefined if that is unknown. */
  readonly nftables?: NftStamp | undefined;
  /** Tools that were found fit for their work. */
  readonly fitTools: readonly string[];
}

const indexShape = objectOf({
  id: text,
  bootId: text,
  version: text,
  /** The names of the bundle's files. */
  files: listOf(text),
  nftables: optional(nftStampShape),
  /** SHA-256 of what iptables-save and ip6tables-save printed, if that may be all that is read of them. */
  rules: optional(text),
  fitTools: listOf(text),
});

/** Which one it is, and of what: another version might write a bundle otherwise, and a reboot leaves nothing. */
type SettledIndex = Shaped<typeof indexShape>;

const bundleFile = (folder: StateFolder, name: string): string => `${folder.settled}/bundle-${name}`;
const indexFile = (folder: StateFolder): string => `${folder.settled}/index.json`;

/**
 * What was settled last, since the node booted and by this version, as it was before another process had the lock; undefined
 * where nothing was, or since was changed.
 */
export async function recallSettled(host: Host, folder: StateFolder): Promise<Settled | undefined> {
  const index = await readIndex(host, folder);
  if (index?.version !== version || index.bootId !== (await readBootId(host))) return undefined;
  const paths = [
    ...index.files.map((name) => bundleFile(folder, name)),
    ...cutParts.map((part) => `${folder.settled}/${part}`),
  ];
  const contents = await Promise.all(paths.map((path) => host.readFile(path)));
  const found = contents.filter((content) => content !== undefined);
  // No lock is held: another process may have replaced some of these files meanwhile.
  if (found.length < paths.length || (await readIndex(host, folder))?.id !== index.id) return undefined;
  const bundle = new Map(index.files.map((name, i) => [name, found[i] ?? '']));
  const [ipv4 = '', ipv6 = '', ipset = '', ipvsadm = ''] = found.slice(index.files.length);
  const { id, nftables, rules, fitTools } = index;
  const texts = { ipv4, ipv6, ipset, ipvsadm };
  return nftables?.hasRules && hashRules(texts) !== rules ? undefined : { id, bundle, texts, nftables, fitTools };
}

function hashRules({ ipv4, ipv6 }: CutTexts): string {
  return `${hashHex(ipv4)} ${hashHex(ipv6)}`;
}

function readIndex(host: Host, folder: StateFolder): Promise<SettledIndex | undefined> {
  return readJson<SettledIndex>(host, indexFile(folder), indexShape, 'remove it').catch(() => undefined);
}

/** A bundle, which is settled once the node is as it says. */
export interface Settling {
  readonly files: BundleFiles;
  readonly known: Settled | undefined;
  /** The tools that were found fit, then or since. */
  readonly fitTools: Set<string>;
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

/** A look at a node, and what would have to change. The plan is of what was in focus alone. */
export interface Observation extends QuickReading {
  readonly plan: Plan;
  readonly node: NodeState;
  readonly rules: RuleLinesByFamily;
  /** By which connections and clock the plan was made. */
  readonly traffic: OpenTraffic;
  readonly terms: DrainTerms;
}

/** What a look at a node may rely on, so that not all is read again. */
export type Grounds =
  /** What was settled last, except for virtual servers that had more than the bundle says: those that drained. */
  | { readonly kind: 'settled'; readonly settled: Settled; readonly unlike: readonly string[] }
  /** An earlier look, which holds for all but the parts that have been changed since, by these steps. */
  | {
      readonly kind: 'earlier';
      readonly earlier: Observation;
      readonly changed: ReadonlySet<ReadingPart>;
      readonly steps: readonly Step[];
      /** The connections that the change went by. */
      readonly traffic: OpenTraffic;
    };

/** Grounds of one kind. */
export type GroundsOf<K extends Grounds['kind']> = Grounds & { readonly kind: K };

/** What was settled last, if that still holds, and nothing is taken over or left of another mode. Ask with the lock held. */
export async function findSettled(
  host: Host,
  folder: StateFolder,
  { known }: Settling,
  { draining, leftIpvs }: OwnershipRecord,
): Promise<GroundsOf<'settled'> | undefined> {
  if (!known || leftIpvs !== undefined || (await readIndex(host, folder))?.id !== known.id) return undefined;
  return { kind: 'settled', settled: known, unlike: draining.map(({ virtualServer }) => virtualServer) };
}

/**
 * Begins a look at a node: a quick one if what is wanted is a bundle that differs little from what was settled last, else a
 * whole one. Returns the part of it in focus (undefined for all), and `read`, which reads only what may have changed.
 */
export async function beginLook(host: Host, settling: Settling | undefined, grounds: Grounds | undefined) {
  const settled = grounds?.kind === 'settled' ? grounds.settled : undefined;
  const earlier = grounds?.kind === 'earlier' ? grounds : undefined;
  const present = settled?.nftables && (await readNftStamp(host));
  // For this moment it is known what nftables holds: it has not changed, or just as it was to.
  const stamp = earlier
    ? await proveSteps(host, earlier)
    : settled && isStill(settled, present)
      ? settled.nftables
      : undefined;
  const tables = stamp && splitTables((settled?.bundle ?? settling?.files)?.get('nftables.nft') ?? '');
  const known: Partial<ReadingTexts> = {
    ...(tables && { 'nft ipv4': tables.ipv4, 'nft ipv6': tables.ipv6 }),
    ...(settled && stamp?.hasRules && { ipv4: settled.texts.ipv4, ipv6: settled.texts.ipv6 }),
  };
  const focus =
    settling && grounds?.kind === 'settled'
      ? focusOn(grounds.settled.bundle, settling.files, grounds.unlike, stamp !== undefined)
      : earlier?.earlier.focus;
  return {
    focus,
    async read(scope: ReadingScope, owned: Belongings): Promise<QuickReading> {
      const since = earlier
        ? textsBut(earlier.earlier.reading, earlier.changed)
        : settled && textsSince(settled, scope.needed, owned);
      const work = () => readNode(host, scope, since || stamp ? { ...since, ...known } : undefined);
      const { reading, nftStamp } =
        stamp || !settling
          ? { reading: await work(), nftStamp: stamp }
          : await readAtMoment(host, scope, present, grounds, work);
      const before = earlier?.earlier.reading ?? settled?.texts ?? reading;
      return { reading, nftStamp, isKnown: stamp !== undefined, focus: focus?.widen(before, reading) };
    },
  };
}

/** Whether nothing of nftables has changed, and the files of the bundle are what they were: the way back will be what these say. */
function isStill({ nftables, bundle }: Settled, present: NftStamp | undefined): boolean {
  const isSame = isSameMoment(nftables, present) && nftables?.tables.join() === present?.tables.join();
  return isSame && readListedManifest(bundle) !== undefined;
}

/**
 * What need not be read of a settled node: the parts in which nothing is wanted or ours. There nothing was ours, whatever
 * another program has made of them since. The rules of iptables are read as a whole where nftables keeps them: a stamp
 * vouches for those of both families, and for there being no table of kube-proxy's.
 */
function textsSince(
  settled: Settled,
  needed: ReadonlySet<ReadingPart>,
  owned: Belongings,
): Partial<ReadingTexts> | undefined {
  // Without a record, what is there may be what a kube-proxy left.
  if (isEmptyBelongings(owned)) return undefined;
  const read = new Set<ReadingPart>([
    ...needed,
    ...(mayHaveStamp(settled) ? (['ipv4', 'ipv6', 'nft ipv4', 'nft ipv6'] as const) : []),
  ]);
  const texts: { [P in ReadingPart]?: string } = { 'nft ipv4': '', 'nft ipv6': '', addresses: '', ...settled.texts };
  for (const part of read) delete texts[part];
  return texts;
}

/** A reading, and the moment for which it is true of nftables: if nothing changes that while it is read. */
async function readAtMoment(
  host: Host,
  { needed }: ReadingScope,
  present: NftStamp | undefined,
  grounds: Grounds | undefined,
  read: () => Promise<NodeReading>,
): Promise<Pick<QuickReading, 'reading' | 'nftStamp'>> {
  const isWanted = needed.has('nft ipv4');
  // Of a second look, the first one found which variant of iptables there is.
  const before = grounds?.kind === 'earlier' ? grounds.earlier.nftStamp : undefined;
  // The rules of iptables may be in nftables, although nothing is wanted there.
  const mayHaveMoment = grounds?.kind === 'settled' ? mayHaveStamp(grounds.settled) : before !== undefined;
  const isAsked = isWanted || (grounds ? mayHaveMoment : await mayHaveNftables(host));
  const from = isAsked ? (present ?? (await readNftStamp(host, before?.hasRules))) : undefined;
  const reading = await read();
  const hasTables = families.some((family) => reading[`nft ${family}`] !== '');
  if (!from || !(isWanted || (from.hasRules && !hasTables))) return { reading, nftStamp: undefined };
  // Of a second look, what has not been changed is as the first one read it.
  const isTrue =
    grounds?.kind !== 'earlier' || isSameMoment(before, from, countNftTransactions(grounds.steps, from.hasRules));
  const to = await readNftStamp(host, from.hasRules);
  return { reading, nftStamp: isTrue && isSameMoment(from, to) ? to : undefined };
}

/** Whether it had one, or would have had one if the kernel had reported it. */
function mayHaveStamp({ nftables, texts }: Settled): boolean {
  return nftables !== undefined || [texts.ipv4, texts.ipv6].some((rules) => namesNftables.test(rules));
}

/** "# Generated by iptables-save v1.8.9 (nf_tables) on …". */
const namesNftables = /^# Generated by \S+ v\S+ \(nf_tables\) on /;

/** The moment at which nftables was found changed as it was to be, if no list of the tables is needed for that. */
async function proveSteps(host: Host, { earlier, steps }: GroundsOf<'earlier'>): Promise<NftStamp | undefined> {
  const inputs = listNftInputs(steps);
  const { nftStamp, focus, plan } = earlier;
  if (!nftStamp || !focus?.cutsNftables || inputs.length === 0) return undefined;
  return proveNftChange(host, nftStamp, plan, inputs);
}

/**
 * Writes to the state folder what a change needs. Nothing is settled any more. If there is no space for both, what is written takes
 * that of the files of what was settled, and then that of earlier states.
 */
export async function writeBesideSettled(host: Host, folder: StateFolder, write: () => Promise<void>): Promise<void> {
  await host.remove(indexFile(folder));
  for (const free of [() => host.remove(folder.settled), () => pruneStates(host, folder, 1)]) {
    try {
      await write();
      return;
    } catch (error) {
      if (!hasCode(error, 'ENOSPC') && !hasCode(error, 'EDQUOT')) throw error;
      await free();
    }
  }
  await write();
}

/**
 * Keeps what the next change need not look at, if all that is ours is as the bundle says, and nothing else is ours. It
 * saves time and no more: if it cannot be kept, everything is looked at the next time. `known` is what was settled before: what
 * is the same of it need not be written again, unless its files have given way.
 */
export async function settleFor(
  host: Host,
  folder: StateFolder,
  { files, fitTools }: Settling,
  { plan, reading, nftStamp }: QuickReading & { readonly plan: Plan },
  { bootId, leftIpvs }: OwnershipRecord,
  known: GroundsOf<'settled'> | undefined,
): Promise<void> {
  const { belongings, ours, conflicts } = plan.share;
  const [chains, sets] = [new Set(ours.chains), new Set(ours.sets)];
  const keepsOthers =
    belongings.chains.some((key) => !chains.has(key)) || belongings.sets.some((name) => !sets.has(name));
  if (keepsOthers || leftIpvs !== undefined || conflicts.length > 0) return;
  const index: SettledIndex = {
    id: `${host.now()}-${host.pid}`,
    bootId,
    version,
    files: [...files.keys()],
    nftables: nftStamp,
    rules: nftStamp?.hasRules ? hashRules(reading) : undefined,
    fitTools: [...fitTools],
  };
  const write = async (path: string, content: string, before: string | undefined) => {
    if (content !== before) await host.replaceFile(path, content);
  };
  try {
    await host.remove(indexFile(folder));
    const last = (await host.list(folder.settled)).length > 0 ? known?.settled : undefined;
    await Promise.all([
      ...[...files].map(([name, content]) => write(bundleFile(folder, name), content, last?.bundle.get(name))),
      ...cutParts.map((part) => write(`${folder.settled}/${part}`, reading[part], last?.texts[part])),
    ]);
    // The index comes last: until then, nothing is settled.
    await writeJson(host, indexFile(folder), index);
  } catch {
    // Half of it would only take the space that the next journal needs.
    await host.remove(folder.settled).catch(() => undefined);
  }
}
