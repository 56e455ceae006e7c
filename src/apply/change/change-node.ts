import { isEmptyDelta } from '../../kernel/delta.ts';
import { nameSome } from '../../base/join-words.ts';
import { describeError } from '../../base/system-errors.ts';
import { assertReadable } from '../node/node-reading.ts';
import { readTraffic } from '../node/open-traffic.ts';
import { endOrphans, inHaste, shortLimit } from '../node/tool-time-limits.ts';
import { guardOf } from '../plan/access-guard.ts';
import { belongingsIn } from '../plan/ownership.ts';
import { describeConflict } from '../plan/share-draft.ts';
import { changedParts, describeStep, listSteps } from '../plan/steps.ts';
import { isEmptyPlan, joinRelease, planRelease, withoutRelease, type Plan } from '../plan/plan.ts';
import { findSettled, settleFor, writeBesideSettled, type GroundsOf, type Observation } from '../quick/small-change.ts';
import {
  addressKey,
  isEmptyBelongings,
  joinBelongings,
  noBelongings,
  withoutBelongings,
  type Belongings,
} from '../state/belongings.ts';
import { explainError, Failure } from '../state/failure.ts';
import { commit, isRepair, joinSettingsMade, nextId, stateAfter, writeRecord } from '../state/history.ts';
import { writeJson, type OwnershipRecord, type Snapshot, type StateMark } from '../state/record.ts';
import {
  drainTerms,
  look,
  readHoldings,
  type ChangeOutcome,
  type ChangeRequest,
  type Holdings,
  type Session,
} from './observe-node.ts';
import { putBack, runPlan } from './carry-out.ts';
import { awaitConfirmation, beginUnconfirmed, endUnconfirmed, settleUnconfirmed } from './unconfirmed-apply.ts';

/**
 * Brings the node to what is wanted, or back to what it was. Before the first change a snapshot of the node is on the
 * disk as the journal; it stays there until everything has been read back and is right. So whenever this process dies,
 * the next one knows what was touched, and what to go back to.
 *
 * Throws a Failure if it did not even begin. Call it with the lock held.
 */
export async function changeNode(session: Session, request: ChangeRequest): Promise<ChangeOutcome> {
  const { host, folder } = session;
  const { settling } = request;
  await settleUnconfirmed(session);
  const holdings = await readHoldings(session);
  const { record, unfinished, owned } = holdings;
  session.onEvent({ kind: unfinished ? 'recovering' : 'reading' });
  await endOrphans(host, unfinished?.toolMark);
  const mayBeSettled = settling && !unfinished && !request.adopt;
  const known = mayBeSettled ? await findSettled(host, folder, settling, record) : undefined;
  const before = await look(host, request, owned, drainTerms(host, request, record), known);
  const { plan } = before;
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
  if (before.isKnown) await assertReadable(host, before.reading, changedParts([plan]));
  const change = await beginChange(session, request, before, holdings);
  const { snapshot, unconfirmed } = change;
  try {
    return { kind: 'changed', plan: await makeChange(session, request, before, holdings, change, known) };
  } catch (error) {
    const failure = explainError(error);
    session.onEvent({ kind: 'putting-back', because: failure });
    if (unconfirmed) await host.remove(folder.confirmed).catch(() => undefined);
    const left = await putBack(session, snapshot, unconfirmed?.id);
    // If anything is left, the standby processes keep trying after this process ends.
    if (unconfirmed && left === 'nothing') await endUnconfirmed(session).catch(() => undefined);
    return left === 'nothing' ? { kind: 'put-back', plan, failure } : { kind: 'stuck', plan, failure, left };
  }
}

/** Saves the way back before the first change and, with confirmTimeout, that the change awaits confirmation. */
async function beginChange(
  session: Session,
  { confirmTimeout }: ChangeRequest,
  before: Observation,
  holdings: Holdings,
) {
  const { record, unfinished } = holdings;
  const present = await identifyState(session, unfinished ? unfinished.state : record.state);
  const snapshot = takeSnapshot(session, before, holdings, present);
  const unconfirmed = confirmTimeout === undefined ? undefined : await beginUnconfirmed(session, confirmTimeout);
  try {
    await writeJournal(session, snapshot);
  } catch (error) {
    if (unconfirmed) await endUnconfirmed(session).catch(() => undefined);
    throw error;
  }
  // From here on it is for this process to end what an earlier one has left.
  if (!unconfirmed && unfinished) await endUnconfirmed(session).catch(() => undefined);
  return { present, snapshot, unconfirmed };
}

/** Makes and commits a change; returns all of it as one plan. Throws a Failure if it must be put back. */
async function makeChange(
  session: Session,
  request: ChangeRequest,
  before: Observation,
  { record, owned }: Holdings,
  { present, unconfirmed }: Awaited<ReturnType<typeof beginChange>>,
  known: GroundsOf<'settled'> | undefined,
): Promise<Plan> {
  const { host, folder } = session;
  const { origin, settling, confirmTimeout } = request;
  const { reading, plan, focus } = before;
  // An operator who may be cut off from the node must not wait for a tool that hangs.
  const hasty = unconfirmed && inHaste(host, folder, { reading, unconfirmed: unconfirmed.id, mayBeCut: true });
  const working = { ...session, host: hasty?.host ?? host };
  const progress = await carryOut(working, before);
  const settled = await settle(working, request, joinBelongings(owned, plan.share.touched), before, progress);
  const { kept, draining, leftIpvs } = settled.plan;
  const belongings = request.belongings ?? plan.share.belongings;
  // Objects outside the focus stay ours.
  const withAside = focus ? joinBelongings(focus.aside(record.owned), belongings) : belongings;
  const committed: OwnershipRecord = {
    bootId: record.bootId,
    owned: withDraining(withAside, settled.plan, progress.plan),
    draining,
    leftIpvs,
    state: stateAfter(origin, present, await nextId(host, folder, present), host.now()),
  };
  if (unconfirmed && confirmTimeout !== undefined) {
    await hasty?.announce(confirmTimeout + shortLimit);
    session.onEvent({ kind: 'awaiting-confirmation', milliseconds: confirmTimeout });
    await awaitConfirmation(session, unconfirmed, confirmTimeout, committed);
  }
  const keep = () => commit(host, folder, committed, { keepsState: isRepair(origin, present) });
  await writeBesideSettled(host, folder, keep);
  if (settling) await settleFor(host, folder, settling, settled, committed, known);
  // A standby process that is still there finds no journal, so it puts nothing back.
  if (unconfirmed) await endUnconfirmed(session).catch(() => undefined);
  return { ...progress.plan, kept, draining };
}

/** The node as it is, for the way back; or as it was before a change that did not finish. */
function takeSnapshot(
  { host }: Session,
  { reading, plan }: Observation,
  { record, unfinished }: Holdings,
  state: StateMark,
): Snapshot {
  const now = { takenAt: host.now(), touched: noBelongings, settingsMade: {} };
  const before = unfinished ?? { ...now, reading, record };
  const settingsMade = Object.fromEntries(plan.settings.map(({ setting: { path, value } }) => [path, [value]]));
  return {
    ...before,
    state,
    touched: joinBelongings(before.touched, plan.share.touched),
    settingsMade: joinSettingsMade([before, { settingsMade }]),
    toolMark: host.toolMark,
  };
}

/** The state that the node is in. One that has no name yet gets one. */
async function identifyState({ host, folder }: Session, state: StateMark | undefined): Promise<StateMark> {
  return state ?? { id: await nextId(host, folder, state) };
}

/**
 * What is taken over may need no change, as a kube-proxy makes the same rules: it still is ours from now on. Nor may
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
  const isOther = origin.bundle && origin.bundle.digest !== record.state?.bundle?.digest && !isEmptyBelongings(owned);
  if (!adopts && !isOther) return record;
  const state = isOther
    ? {
        since: host.now(),
        command: origin.kind,
        ...(await identifyState(session, record.state)),
        bundle: origin.bundle,
      }
    : record.state;
  const kept: OwnershipRecord = { ...record, owned, state };
  await writeRecord(host, folder, kept);
  return kept;
}

/** Whether something becomes ours that is there already, and was not. */
function takesOver({ adopt }: ChangeRequest, { owned }: OwnershipRecord, belongings: Belongings): boolean {
  return adopt && !isEmptyBelongings(withoutBelongings(belongings, owned));
}

/** Throws a Failure if something is in the way. */
export function assertNoConflicts(plan: Plan): void {
  const { conflicts } = plan.share;
  if (conflicts.length === 0) return;
  const names = nameSome(conflicts.map(describeConflict), 5);
  const text = `these exist already, and kpc-apply did not make them: ${names}`;
  const advice = conflicts.every(({ adoptable }) => adoptable)
    ? 'if kube-proxy left them, apply with --adopt to take them over'
    : 'stop the program that made them and remove them, or remove what collides with them from the bundle';
  throw new Failure('conflict', text, advice);
}

async function writeJournal({ host, folder }: Session, snapshot: Snapshot): Promise<void> {
  try {
    await writeBesideSettled(host, folder, () => writeJson(host, folder.journal, snapshot));
    await host.remove(folder.lastCommand);
  } catch (error) {
    await host.remove(`${folder.journal}.new`);
    const advice = 'free some space there, or choose another folder with --state-dir; nothing has been changed';
    throw new Failure('write-failed', `cannot save a snapshot in ${folder.path}: ${describeError(error)}`, advice);
  }
}

/** What was done after a look at the node; `plan` holds all of it. */
interface Progress extends Omit<GroundsOf<'earlier'>, 'kind' | 'earlier'> {
  readonly plan: Plan;
}

/** Carries out a plan: what is new, and what goes; and last, upon another look at connections, what drains without any. */
async function carryOut(session: Session, { plan, traffic, terms }: Observation): Promise<Progress> {
  const first = withoutRelease(plan);
  const steps = await runPlan(session, first);
  const leavesIpvs = plan.takeover !== undefined;
  if (!leavesIpvs && plan.draining.length === 0) {
    return { plan, changed: changedParts([plan]), steps, traffic };
  }
  const present = await readTraffic(session.host, leavesIpvs);
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
    ...(leftIpvs === undefined ? noBelongings : belongingsIn(guardOf(state))),
    virtualServers: draining.map((server) => server.virtualServer),
    links: share.ours.links.filter((name) => links.has(name)),
    addresses: share.ours.addresses.filter((key) => addresses.has(key)),
  });
}

/**
 * Reads back what has been changed, and compares: a plan made from that must find nothing left to do but settings that
 * came with a module, which it sets. Tools' exit statuses prove too little.
 *
 * Everything that a tool prints about the part that it changed is read: one family's tables, all sets, all virtual servers,
 * all addresses; and every setting. So what another program does to the same part meanwhile is found, near what
 * was changed or not. Parts in which nothing was to be changed count as they were read before the first change; "verify"
 * reads them all.
 */
async function settle(
  session: Session,
  request: ChangeRequest,
  owned: Belongings,
  before: Observation,
  { plan, ...done }: Progress,
): Promise<Observation> {
  session.onEvent({ kind: 'checking' });
  const terms = { ...before.terms, known: plan.draining, leftIpvs: plan.leftIpvs };
  const lookAgain = (back: Omit<GroundsOf<'earlier'>, 'kind'>) =>
    look(session.host, request, owned, terms, { kind: 'earlier', ...back });
  let after = await lookAgain({ earlier: before, ...done });
  const { modules, delta } = after.plan;
  if (!isEmptyPlan(after.plan) && modules.length === 0 && isEmptyDelta(delta)) {
    await runPlan(session, after.plan);
    after = await lookAgain({ earlier: after, ...done, changed: new Set(), steps: [] });
  }
  if (isEmptyPlan(after.plan)) return after;
  const text = 'the tools reported success, but the node is not as it should be; still to do';
  const advice =
    'check whether another program (kube-proxy, a firewall manager) changes the same rules, then apply again';
  throw new Failure('wrong-result', `${text}:\n${describeRest(after.plan)}`, advice);
}

/** What a plan would do, cut short: the first lines show what kind of thing went wrong. */
function describeRest(plan: Plan): string {
  const lines = listSteps(plan).flatMap((step) => [
    describeStep(step),
    ...(step.kind === 'run' ? (step.command.stdin?.trimEnd().split('\n') ?? []) : []).map((line) => `  ${line}`),
  ]);
  return [...lines.slice(0, 12), ...(lines.length > 12 ? ['…'] : [])].join('\n');
}
