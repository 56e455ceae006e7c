import { guardIn } from '../plan/access-guard.ts';
import type { ChangeEvent } from './change-event.ts';
import { awaitConfirmation } from './confirm-apply.ts';
import { describeError } from '../../bundle/errors.ts';
import { explainError, Failure } from '../state/failure.ts';
import {
  commit,
  isRepair,
  joinEarlier,
  joinSettingsMade,
  nextId,
  stateAfter,
  stateLeft,
  writeRecord,
} from '../state/history.ts';
import type { Host } from '../node/host.ts';
import {
  addressKey,
  isEmptyBelongings,
  joinBelongings,
  noBelongings,
  ownershipOf,
  withoutBelongings,
  type Belongings,
} from '../state/belongings.ts';
import { look, type ChangeRequest, type Observation } from './observe-node.ts';
import { listTraffic, trafficIn, type OpenTraffic } from '../node/open-traffic.ts';
import { assertReadable, parseReading, type ReadingPart } from '../node/node-reading.ts';
import { describeConflict, type Conflict } from '../plan/share-draft.ts';
import { isEmptyPlan, joinRelease, planRelease, withoutRelease, type DrainTerms, type Plan } from '../plan/plan.ts';
import { endOrphans, inHaste, shortLimit } from '../node/tool-time-limits.ts';
import { readBootId } from '../state/process-identity.ts';
import {
  readRecord,
  readSnapshot,
  writeJson,
  type DrainingServer,
  type OwnershipRecord,
  type Snapshot,
  type StateFolder,
  type StateMark,
} from '../state/record.ts';
import { runStep } from './run-steps.ts';
import { findSettled, proveChange, settleFor, writeBesideSettled } from '../quick/small-change.ts';
import { beginUnconfirmed, endUnconfirmed, settleUnconfirmed } from './unconfirmed-apply.ts';
import {
  changedParts,
  countNftTransactions,
  describeStep,
  listNftInputs,
  listSteps,
  type Step,
} from '../plan/steps.ts';
import { restrictState } from '../../kernel/restrict.ts';
import { isEmptyDelta } from '../../kernel/delta.ts';

/** The node, the files that kpc-apply keeps of it, and who is told how it goes. */
export interface Session {
  readonly host: Host;
  readonly folder: StateFolder;
  readonly onEvent: (event: ChangeEvent) => void;
  /** Aborted when the operator asks to stop: what has been changed is then put back. */
  readonly signal?: AbortSignal | undefined;
}

export type ChangeOutcome =
  | { readonly kind: 'unchanged'; readonly plan: Plan }
  | { readonly kind: 'changed'; readonly plan: Plan; readonly draining: readonly DrainingServer[] }
  /** It failed, and the node is as it was. */
  | { readonly kind: 'put-back'; readonly failure: Failure }
  /** It failed, and not everything could be put back. */
  | { readonly kind: 'stuck'; readonly failure: Failure; readonly left: Plan | undefined };

/** Looks at the node and says what would have to change. Changes nothing. */
export async function observe(session: Session, request: ChangeRequest): Promise<Observation> {
  const { owned, record } = await readHoldings(session);
  return look(session.host, request, owned, drainTerms(session.host, request, record));
}

/** One moment for a whole change: whatever has had its time then has it, and nothing else until the next change. */
function drainTerms(host: Host, request: ChangeRequest, record?: OwnershipRecord): DrainTerms {
  const { draining: known = [], leftIpvs } = record ?? {};
  return { timeout: request.drainTimeout, now: host.now(), uptime: host.uptime(), known, leftIpvs };
}

/** What is ours by the record, and by the journal of an apply that did not finish. */
async function readHoldings({ host, folder }: Session): Promise<{
  readonly record: OwnershipRecord;
  readonly unfinished: Snapshot | undefined;
  readonly owned: Belongings;
}> {
  const bootId = await readBootId(host);
  const record = await readRecord(host, folder, bootId);
  const unfinished = await readSnapshot(host, folder.journal, bootId);
  const owned = unfinished ? joinBelongings(record.owned, unfinished.touched) : record.owned;
  return { record, unfinished, owned };
}

/**
 * Brings the node to what is wanted, or back to what it was. Before the first change a snapshot of the node is on the
 * disk as the journal; it stays there until everything has been read back and is right. So whenever this process dies,
 * the next one knows what was touched, and what to go back to.
 *
 * Throws a Failure where it did not even begin. Call it with the lock held.
 */
export async function changeNode(session: Session, request: ChangeRequest): Promise<ChangeOutcome> {
  const { host, folder } = session;
  await settleUnconfirmed(session);
  const { record, unfinished, owned } = await readHoldings(session);
  session.onEvent({ kind: unfinished ? 'recovering' : 'reading' });
  await endOrphans(host, unfinished?.toolMark);
  const { settling } = request;
  const mayBeSettled = settling && !unfinished && !request.adopt;
  const known = mayBeSettled ? await findSettled(host, folder, settling, record) : undefined;
  const before = await look(host, request, owned, drainTerms(host, request, record), known);
  const { reading, plan, focus } = before;
  const isIdle = isEmptyPlan(plan) && !unfinished && plan.share.conflicts.length === 0;
  // A kube-proxy that runs comes first: --adopt would not help against it, and takes nothing from it.
  await request.prepare?.(plan, isIdle && !takesOver(request, record, plan.share.belongings), before.node);
  assertNoConflicts(plan);
  if (isIdle) {
    const kept = await recordUnchanged(session, request, record, plan.share.belongings);
    // Where nftables was changed by others, this is a new moment at which it was as the bundle says.
    const isNew = !known || before.nftStamp !== known.settled.nftables;
    if (settling && isNew) await settleFor(host, folder, settling, before, kept, known);
    return { kind: 'unchanged', plan };
  }

  if (before.isKnown) await assertReadable(host, reading, changedParts([plan]));

  // What was not looked at stays ours.
  const withAside = (some: Belongings): Belongings => (focus ? joinBelongings(focus.aside(record.owned), some) : some);
  const { origin } = request;
  const present = await identifyState(session, unfinished ? unfinished.state : record.state);
  const snapshot = await takeSnapshot(session, before, { unfinished, record, state: stateLeft(origin, present) });
  const milliseconds = request.confirmTimeout;
  const unconfirmed =
    milliseconds === undefined ? undefined : { id: await beginUnconfirmed(session, milliseconds), milliseconds };
  let keepsSettled: boolean;
  try {
    keepsSettled = await writeJournal(session, snapshot);
  } catch (error) {
    if (unconfirmed) await endUnconfirmed(session).catch(() => undefined);
    throw error;
  }
  // From here on it is for this process to end what an earlier one has left.
  if (!unconfirmed && unfinished) await endUnconfirmed(session).catch(() => undefined);
  // An operator who may be cut off from the node must not wait for a tool that hangs.
  const hasty = unconfirmed && inHaste(session, { reading, unconfirmed: unconfirmed.id, mayBeCut: true });
  const working: Session = hasty ?? session;
  try {
    const progress = await carryOut(working, before);
    const settled = await settle(working, request, joinBelongings(owned, plan.share.touched), before, progress);
    const committed: OwnershipRecord = {
      bootId: record.bootId,
      owned: withDraining(withAside(request.belongings ?? plan.share.belongings), settled.plan, progress.plan),
      draining: settled.plan.draining,
      leftIpvs: settled.plan.leftIpvs,
      state: stateAfter(origin, present, await nextId(host, folder, present), host.now()),
    };
    if (unconfirmed) {
      await hasty?.announce('the confirmation', unconfirmed.milliseconds + shortLimit);
      session.onEvent({ kind: 'awaiting-confirmation', milliseconds: unconfirmed.milliseconds });
      await awaitConfirmation(session, { ...unconfirmed, record: committed });
    }
    const keep = () => commit(host, folder, committed, { keepsState: isRepair(origin, present) });
    keepsSettled = (await writeBesideSettled(host, folder, keep, committed.state)) && keepsSettled;
    if (settling) await settleFor(host, folder, settling, settled, committed, keepsSettled ? known : undefined);
    // What stays behind finds no journal, and so nothing to put back.
    if (unconfirmed) await endUnconfirmed(session).catch(() => undefined);
    const { kept, draining } = settled.plan;
    return { kind: 'changed', plan: { ...progress.plan, kept }, draining };
  } catch (error) {
    const failure = explainError(error);
    session.onEvent({ kind: 'putting-back', because: failure });
    if (unconfirmed) await host.remove(folder.confirmed).catch(() => undefined);
    const left = await putBack(session, snapshot, unconfirmed?.id);
    // Where something is left, those who stand by go on trying when this process has ended.
    if (unconfirmed && left === 'nothing') await endUnconfirmed(session).catch(() => undefined);
    return left === 'nothing' ? { kind: 'put-back', failure } : { kind: 'stuck', failure, left };
  }
}

/** The node as it is, for the way back; or as it was before a change that did not finish. */
function takeSnapshot(
  { host, folder }: Session,
  { reading, plan }: Observation,
  {
    unfinished,
    record,
    state,
  }: { readonly unfinished: Snapshot | undefined; readonly record: OwnershipRecord; readonly state: StateMark },
): Promise<Snapshot> {
  const { toolMark } = host;
  const { touched } = plan.share;
  const settingsMade = Object.fromEntries(plan.settings.map(({ setting: { path, value } }) => [path, [value]]));
  if (unfinished) {
    const all = {
      touched: joinBelongings(unfinished.touched, touched),
      settingsMade: joinSettingsMade([unfinished, { settingsMade }]),
    };
    return Promise.resolve({ ...unfinished, ...all, state, toolMark });
  }
  const now = { takenAt: host.now(), uptime: host.uptime() };
  const id = `${now.takenAt}-${host.pid}`;
  return joinEarlier(host, folder, { id, ...now, state, reading, record, touched, settingsMade, toolMark });
}

/** The state that the node is in. One that has no name yet gets one. */
async function identifyState({ host, folder }: Session, state: StateMark | undefined): Promise<StateMark> {
  return state ?? { id: await nextId(host, folder, state) };
}

/**
 * What is taken over may need no change, as a kube-proxy makes the same rules: it is ours from now on all the same. Nor may
 * another bundle. Gives the record as it is then.
 */
async function recordUnchanged(
  session: Session,
  request: ChangeRequest,
  record: OwnershipRecord,
  belongings: Belongings,
): Promise<OwnershipRecord> {
  const { host, folder } = session;
  const { origin } = request;
  const adopts = takesOver(request, record, belongings);
  const owned = adopts ? joinBelongings(record.owned, belongings) : record.owned;
  const renames =
    'bundle' in origin && !isEmptyBelongings(owned) && origin.bundle.digest !== record.state?.bundle?.digest;
  if (!adopts && !renames) return record;
  const { kind: command, bundle } = 'bundle' in origin ? origin : { kind: undefined, bundle: undefined };
  const named = renames ? await identifyState(session, record.state) : record.state;
  const state = named && renames ? { since: host.now(), command, ...named, bundle } : named;
  const kept: OwnershipRecord = { ...record, owned, state };
  try {
    await writeRecord(host, folder, kept);
  } catch (error) {
    throw cannotWrite(`cannot write ${folder.record}`, error);
  }
  return kept;
}

/** Whether something becomes ours that is there already, and was not. */
function takesOver({ adopt }: ChangeRequest, { owned }: OwnershipRecord, belongings: Belongings): boolean {
  return adopt && !isEmptyBelongings(withoutBelongings(belongings, owned));
}

/** Throws a Failure where something is in the way. */
export function assertNoConflicts(plan: Plan): void {
  const { conflicts } = plan.share;
  if (conflicts.length === 0) return;
  const names = conflicts.map(describeConflict);
  const shown = names.length > 5 ? [...names.slice(0, 5), `${names.length - 5} more`] : names;
  throw new Failure(
    'conflict',
    `these exist already, and kpc-apply did not make them: ${shown.join(', ')}`,
    adviseOnConflicts(conflicts),
  );
}

function adviseOnConflicts(conflicts: readonly Conflict[]): string {
  if (conflicts.every(({ adoptable }) => adoptable)) {
    return 'if kube-proxy left them, apply with --adopt to take them over';
  }
  return conflicts.every(({ adoptable, isHeld }) => adoptable || isHeld)
    ? 'stop the program that owns the table: the kernel removes the table then'
    : 'remove them, or remove what collides with them from the bundle';
}

/** Gives whether what was settled still has its files. */
async function writeJournal(session: Session, snapshot: Snapshot): Promise<boolean> {
  const { host, folder } = session;
  try {
    const write = () => writeJson(host, folder.journal, snapshot);
    const isBeside = await writeBesideSettled(host, folder, write, snapshot.state);
    await host.remove(folder.lastCommand);
    return isBeside;
  } catch (error) {
    await host.remove(`${folder.journal}.new`);
    throw cannotWrite(`cannot save a snapshot in ${folder.path}`, error);
  }
}

/** Of what is written before the first change. */
function cannotWrite(what: string, error: unknown): Failure {
  return new Failure(
    'write-failed',
    `${what}: ${describeError(error)}`,
    'free some space there, or choose another folder with --state-dir; nothing has been changed',
  );
}

/** Gives the steps that were carried out. */
async function runPlan(session: Session, plan: Plan): Promise<readonly Step[]> {
  const steps = listSteps(plan);
  for (const [i, step] of steps.entries()) {
    assertNotInterrupted(session);
    session.onEvent({ kind: 'step', step, number: i + 1, of: steps.length });
    await runStep(session.host, step);
  }
  return steps;
}

/** What has been done upon a look at the node. */
interface Progress {
  /** All of it, as one plan. */
  readonly plan: Plan;
  readonly changed: ReadonlySet<ReadingPart>;
  readonly steps: readonly Step[];
  readonly traffic: OpenTraffic;
}

/** Carries out a plan: what is new, and what goes; and last, upon another look at connections, what drains without any. */
async function carryOut(session: Session, { plan, traffic, terms }: Observation): Promise<Progress> {
  const first = withoutRelease(plan);
  const steps = await runPlan(session, first);
  const leavesIpvs = plan.takeover !== undefined;
  if (!leavesIpvs && plan.draining.length === 0) {
    return { plan, changed: changedParts([plan]), steps, traffic };
  }
  const present = trafficIn(await listTraffic(session.host, leavesIpvs));
  const release = planRelease(plan, present, terms);
  const all = [...steps, ...(await runPlan(session, release))];
  return { plan: joinRelease(plan, release), changed: changedParts([first, release]), steps: all, traffic: present };
}

/**
 * What drains stays ours, with the addresses that it is reached at and what guards them, where what is wanted has no such
 * virtual server.
 */
function withDraining(belongings: Belongings, { draining, leftIpvs }: Plan, { share, state }: Plan): Belongings {
  if (draining.length === 0 && leftIpvs === undefined) return belongings;
  const links = new Set(state.links.map(({ name }) => name));
  const addresses = new Set(state.links.flatMap((link) => link.addresses.map((each) => addressKey(link.name, each))));
  return joinBelongings(belongings, {
    ...(leftIpvs === undefined ? noBelongings : guardIn(state)),
    virtualServers: draining.map((server) => server.virtualServer),
    links: share.ours.links.filter((name) => links.has(name)),
    addresses: share.ours.addresses.filter((key) => addresses.has(key)),
  });
}

function assertNotInterrupted({ signal }: Session): void {
  if (signal?.aborted) throw new Failure('interrupted', 'stopped by a signal', 'apply again when you are ready');
}

/**
 * Reads back what has been changed, and compares: a plan made from that must find nothing left to do but settings that
 * came with a module, which it sets. Tools' exit statuses prove too little.
 *
 * What is read is all that a tool tells of the part that it changed: one family's tables, all sets, all virtual servers,
 * all addresses; and every setting. So what another program does to the same part meanwhile is found, near what
 * was changed or not. Parts in which nothing was to be changed count as they were read before the first change; "verify"
 * reads them all.
 */
async function settle(
  session: Session,
  request: ChangeRequest,
  owned: Belongings,
  before: Observation,
  { plan, changed, steps, traffic }: Progress,
): Promise<Observation> {
  session.onEvent({ kind: 'checking' });
  const terms = { ...before.terms, known: plan.draining, leftIpvs: plan.leftIpvs };
  const nftProven = await proveChange(session.host, before, before.plan, listNftInputs(steps));
  const back = { kind: 'earlier' as const, traffic, nftProven };
  let after = await look(session.host, request, owned, terms, {
    ...back,
    earlier: before,
    changed,
    nftTransactions: (hasRules) => countNftTransactions(steps, hasRules),
  });
  if (!isEmptyPlan(after.plan) && hasSettingsOnly(after.plan)) {
    await runPlan(session, after.plan);
    const nothing = { changed: new Set<ReadingPart>(), nftTransactions: () => 0 };
    after = await look(session.host, request, owned, terms, { ...back, earlier: after, ...nothing });
  }
  if (isEmptyPlan(after.plan)) return after;
  throw new Failure(
    'wrong-result',
    `the tools reported success, but the node is not as it should be; still to do:\n${describeRest(after.plan)}`,
    'check whether another program (kube-proxy, a firewall manager) changes the same rules, then apply again',
  );
}

/** What a plan would do, cut short: the first lines tell what kind of thing went wrong. */
function describeRest(plan: Plan): string {
  const lines = listSteps(plan).flatMap((step) => [
    describeStep(step),
    ...(step.kind === 'restore' ? step.input.trimEnd().split('\n') : []).map((line) => `  ${line}`),
  ]);
  return [...lines.slice(0, 12), ...(lines.length > 12 ? ['…'] : [])].join('\n');
}

function hasSettingsOnly(plan: Plan): boolean {
  return plan.modules.length === 0 && isEmptyDelta(plan.delta);
}

/** How often putting back is tried: what failed once may have been a passing trouble. */
const attempts = 3;

/**
 * Brings the node back to a snapshot, and ends the journal. Every step is tried even where one before it failed, and no tool is
 * waited for long. `unconfirmed`: the apply of this process, if others stand by for it. Gives what is left undone.
 */
export async function putBack(
  session: Session,
  snapshot: Snapshot,
  unconfirmed?: string,
): Promise<Plan | 'nothing' | undefined> {
  const { host } = inHaste(session, { reading: snapshot.reading, unconfirmed, mayBeCut: false });
  await endOrphans(host, snapshot.toolMark);
  const request = requestSnapshot(snapshot);
  const owned = joinBelongings(snapshot.record.owned, snapshot.touched);
  let left: Plan | undefined;
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      left = (await look(host, request, owned, drainTerms(host, request))).plan;
    } catch {
      // The node cannot be read just now. The next attempt may fare better.
      continue;
    }
    if (isEmptyPlan(left)) {
      await endJournal(session, snapshot.record);
      return 'nothing';
    }
    for (const step of listSteps(left)) await runStep(host, step).catch(() => undefined);
  }
  return left;
}

/**
 * The record is written only where it differs: this must work on a full disk too. Where it does not, the journal stays,
 * and the next apply or rollback finds by it that everything has been put back.
 */
async function endJournal({ host, folder, onEvent }: Session, record: OwnershipRecord): Promise<void> {
  try {
    // One that is damaged differs from any.
    const present = await readRecord(host, folder, record.bootId).catch(() => undefined);
    if (JSON.stringify(present) !== JSON.stringify(record)) await writeRecord(host, folder, record);
    await host.remove(folder.journal);
  } catch (error) {
    const text = `everything is put back, but ${folder.journal} cannot be closed: ${describeError(error)}`;
    onEvent({ kind: 'warning', text: `${text}; the next apply or rollback closes it` });
  }
}

/** The wish to have everything as it was in a snapshot. */
export function requestSnapshot(snapshot: Snapshot): ChangeRequest {
  const owned = joinBelongings(snapshot.record.owned, snapshot.touched);
  const state = restrictState(parseReading(snapshot.reading), ownershipOf(owned));
  const settings = Object.entries(snapshot.reading.settings).map(([path, value]) => ({
    path,
    name: path,
    value,
  }));
  return {
    origin: { kind: 'rollback', to: snapshot.state },
    target: async () => ({ state, settings, modules: [] }),
    families: [],
    adopt: false,
    excluded: [],
    drainTimeout: 0,
    belongings: snapshot.record.owned,
  };
}
