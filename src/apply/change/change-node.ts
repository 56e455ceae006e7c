import { isEmptyDelta } from '../../kernel/state.ts';
import { readTraffic } from '../node/open-traffic.ts';
import { readStartTime } from '../node/processes.ts';
import { assertNoOrphans, inHaste, shortLimit } from '../node/tool-time-limits.ts';
import { guardOf } from '../plan/access-guard.ts';
import { ownedNamesIn } from '../plan/ownership.ts';
import { changedParts, listSteps } from '../plan/steps.ts';
import { isEmptyPlan, joinRelease, planRelease, withoutRelease, type Plan } from '../plan/plan.ts';
import type { OwnedNames } from '../state/owned-lists.ts';
import { addressKey, isNothingOwned, joinOwned, nothingOwned, withoutOwned } from '../state/owned-names.ts';
import {
  claimBalancerFile,
  rememberTables,
  writeJson,
  type OwnershipRecord,
  type StoredSnapshot,
  type StateMark,
} from '../state/record.ts';
import { causeOf, explainError, Failure } from '../state/failure.ts';
import { commit, isRepair, joinSettingsMade, makingSpace, nextId, stateAfter, writeRecord } from '../state/history.ts';
import {
  drainTerms,
  look,
  readOwned,
  warnOfOtherVariant,
  type ChangeOutcome,
  type ChangeRequest,
  type OwnedState,
  type Observation,
  type ChangeProgress,
  type Session,
} from './observe-node.ts';
import { assertNoFault, putBack, runPlan } from './carry-out.ts';
import { awaitConfirmation, beginUnconfirmed, endUnconfirmed, keepOrForgetUnconfirmed } from './unconfirmed-apply.ts';

/**
 * Brings the node to the wanted state, or back to its former state. Needs the lock. Throws a Failure if the change did not begin. The
 * journal holds a snapshot until the change is verified, so that after a kill the next process can restore the node.
 */
export async function changeNode(session: Session, request: ChangeRequest): Promise<ChangeOutcome> {
  const { host, folder } = session;
  await keepOrForgetUnconfirmed(session);
  const ownedState = await readOwned(session);
  const { record, unfinished, owned } = ownedState;
  session.onEvent({ kind: unfinished ? 'recovering' : 'reading' });
  await assertNoOrphans(host, unfinished, session.assumesAlone === true);
  const before = await look(session, request, owned, drainTerms(host, request, record), { recalls: true });
  warnOfOtherVariant(session, before);
  assertAllSeen(session, request, before);
  const { plan } = before;
  const isIdle = isEmptyPlan(plan) && !unfinished && plan.ownership.conflicts.length === 0;
  // Report a running kube-proxy first, because --adopt would have no effect beside it. Test: apply/ownership.test.ts.
  await request.prepare?.(plan, isIdle && !takesOver(request, record, plan.ownership.ownedAfter), before);
  assertNoConflicts(plan);
  if (isIdle) {
    await recordUnchanged(session, request, record, plan.ownership.ownedAfter);
    if (before.reading.balancer !== undefined) await claimBalancerFile(host, folder);
    if (before.tables) await rememberTables(host, folder, before.tables);
    return { kind: 'unchanged', plan };
  }
  const change = await beginChange(session, request, before, ownedState);
  const { snapshot, unconfirmed } = change;
  try {
    return { kind: 'changed', plan: await makeChange(session, request, before, ownedState, change) };
  } catch (error) {
    const failure = explainError(error);
    session.onEvent({ kind: 'putting-back', because: failure });
    if (unconfirmed) await host.remove(folder.confirmed).catch(() => undefined);
    const left = await putBack(session, snapshot, unconfirmed?.id);
    // Without this, the standby processes would go on trying to restore the node after this process ends.
    if (unconfirmed && left === 'nothing') await endUnconfirmed(session).catch(() => undefined);
    return left === 'nothing' ? { kind: 'put-back', plan, failure } : { kind: 'stuck', plan, failure, left };
  }
}

async function beginChange(
  session: Session,
  { confirmTimeout }: ChangeRequest,
  before: Observation,
  ownedState: OwnedState,
) {
  const { record, unfinished } = ownedState;
  const present = await identifyState(session, unfinished ? unfinished.state : record.state);
  const snapshot = await takeSnapshot(session, before, ownedState, present);
  const unconfirmed = confirmTimeout === undefined ? undefined : await beginUnconfirmed(session, confirmTimeout);
  try {
    await writeJournal(session, snapshot);
  } catch (error) {
    if (unconfirmed) await endUnconfirmed(session).catch(() => undefined);
    throw error;
  }
  // From here on, this process also takes over the unfinished change of an earlier process.
  if (!unconfirmed && unfinished) await endUnconfirmed(session).catch(() => undefined);
  return { present, snapshot, unconfirmed };
}

/** Makes and commits a change. Returns the whole change as one plan. Throws a Failure if the change must be rolled back. */
async function makeChange(
  session: Session,
  request: ChangeRequest,
  before: Observation,
  { record, owned }: OwnedState,
  { present, unconfirmed }: Awaited<ReturnType<typeof beginChange>>,
): Promise<Plan> {
  const { host, folder } = session;
  const { origin, confirmTimeout } = request;
  const { reading, plan } = before;
  // An operator who may be cut off from the node must not wait for a tool that hangs. Test: apply/hanging-tools.test.ts.
  const hasty = unconfirmed && inHaste(host, folder, { reading, unconfirmed: unconfirmed.id, mayBeCut: true });
  const working = { ...session, host: hasty?.host ?? host };
  const progress = await carryOutPlan(working, before);
  const after = await readBack(working, request, joinOwned(owned, plan.ownership.ownedDuring), before, progress);
  const { kept, draining, leftIpvs } = after.plan;
  const ownedAfter = request.ownedAfter ?? plan.ownership.ownedAfter;
  const committed: OwnershipRecord = {
    bootId: record.bootId,
    network: record.network,
    owned: withDraining(ownedAfter, after.plan, progress.plan),
    draining,
    leftIpvs,
    state: stateAfter(origin, present, await nextId(host, folder, present), host.now()),
    udpPorts: request.udpPorts,
  };
  if (unconfirmed && confirmTimeout !== undefined) {
    await hasty?.announce(confirmTimeout + shortLimit);
    session.onEvent({ kind: 'awaiting-confirmation', milliseconds: confirmTimeout });
    await awaitConfirmation(session, unconfirmed, confirmTimeout, committed);
  }
  assertNoFault(session.signal);
  const keep = () => commit(host, folder, committed, { keepsState: isRepair(origin, present) });
  await makingSpace(host, folder, keep);
  if (after.reading.balancer !== undefined) await claimBalancerFile(host, folder);
  if (after.tables) await rememberTables(host, folder, after.tables);
  // A standby process that still runs finds no journal, so it restores nothing.
  if (unconfirmed) await endUnconfirmed(session).catch(() => undefined);
  return { ...progress.plan, kept, draining };
}

async function takeSnapshot(
  { host }: Session,
  { reading, plan }: Observation,
  { record, unfinished }: OwnedState,
  state: StateMark,
): Promise<StoredSnapshot> {
  const now = { takenAt: host.now(), touched: nothingOwned, settingsMade: {} };
  const before = unfinished ?? { ...now, reading, record };
  const settingsMade = Object.fromEntries(plan.settings.map(({ setting: { path, value } }) => [path, [value]]));
  return {
    ...before,
    state,
    touched: joinOwned(before.touched, plan.ownership.ownedDuring),
    settingsMade: joinSettingsMade([before, { settingsMade }]),
    toolMark: host.toolMark,
    started: await readStartTime(host, host.pid),
  };
}

async function identifyState({ host, folder }: Session, state: StateMark | undefined): Promise<StateMark> {
  return state ?? { id: await nextId(host, folder, state) };
}

/** Records adopted objects and a new bundle even if the node already matches the bundle. */
async function recordUnchanged(
  session: Session,
  request: ChangeRequest,
  record: OwnershipRecord,
  ownedAfter: OwnedNames,
): Promise<void> {
  const { host, folder } = session;
  const { origin } = request;
  const adopts = takesOver(request, record, ownedAfter);
  const owned = adopts ? joinOwned(record.owned, ownedAfter) : record.owned;
  const isOther = origin.bundle && origin.bundle.digest !== record.state?.bundle?.digest && !isNothingOwned(owned);
  if (!adopts && !isOther) return;
  const state = isOther
    ? {
        since: host.now(),
        command: origin.kind,
        ...(await identifyState(session, record.state)),
        bundle: origin.bundle,
      }
    : record.state;
  const udpPorts = isOther ? request.udpPorts : record.udpPorts;
  await writeRecord(host, folder, { ...record, owned, state, udpPorts });
}

function takesOver({ adopt }: ChangeRequest, { owned }: OwnershipRecord, ownedAfter: OwnedNames): boolean {
  return adopt && !isNothingOwned(withoutOwned(ownedAfter, owned));
}

/** Throws a Failure if --adopt needs rules that could not be read. A missing tool is only a warning. Test: apply/unseen.test.ts. */
export function assertAllSeen({ assumesAlone }: Session, { adopt }: ChangeRequest, { unread }: Observation): void {
  const failure = unread.find(({ code }) => code !== 'tool-missing');
  if (!failure || !adopt || assumesAlone === true) return;
  throw new Failure('unreadable-node', { problem: 'leftovers', failure: failure.finding, tool: failure.tool });
}

export function assertNoConflicts(plan: Plan): void {
  const { conflicts } = plan.ownership;
  if (conflicts.length > 0) throw new Failure('conflict', { objects: conflicts });
}

async function writeJournal({ host, folder }: Session, snapshot: StoredSnapshot): Promise<void> {
  try {
    await makingSpace(host, folder, () => writeJson(host, folder.journal, snapshot));
    await host.remove(folder.lastCommand);
  } catch (error) {
    throw new Failure('write-failed', { problem: 'journal', folder: folder.path, cause: causeOf(error) });
  }
}

/** Carries out a plan. Then counts connections again and removes the draining real servers that have none left. */
async function carryOutPlan(session: Session, { plan, traffic, terms }: Observation): Promise<ChangeProgress> {
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

function withDraining(
  ownedAfter: OwnedNames,
  { draining, leftIpvs }: Plan,
  { ownership, state, variants }: Plan,
): OwnedNames {
  if (draining.length === 0 && leftIpvs === undefined) return ownedAfter;
  const links = new Set(state.links.map(({ name }) => name));
  const addresses = new Set(state.links.flatMap((link) => link.addresses.map((each) => addressKey(link.name, each))));
  return joinOwned(ownedAfter, {
    ...(leftIpvs === undefined ? nothingOwned : ownedNamesIn(guardOf(state), variants)),
    virtualServers: draining.map((server) => server.virtualServer),
    links: ownership.owned.links.filter((name) => links.has(name)),
    addresses: ownership.owned.addresses.filter((key) => addresses.has(key)),
  });
}

/**
 * Reads the changed parts and all settings again, because exit statuses prove too little. If only settings are left to change, because
 * a module brought them, sets them and reads again. Throws a Failure if anything read still needs a change. Only "verify" reads the other
 * parts.
 */
async function readBack(
  session: Session,
  request: ChangeRequest,
  owned: OwnedNames,
  before: Observation,
  done: ChangeProgress,
): Promise<Observation> {
  session.onEvent({ kind: 'checking' });
  const terms = { ...before.terms, known: done.plan.draining, leftIpvs: done.plan.leftIpvs };
  const lookAgain = (earlier: Observation, progress: ChangeProgress) =>
    look(session, request, owned, terms, { since: { earlier, ...progress } });
  let after = await lookAgain(before, done);
  const { modules, delta } = after.plan;
  if (!isEmptyPlan(after.plan) && modules.length === 0 && isEmptyDelta(delta)) {
    await runPlan(session, after.plan);
    after = await lookAgain(after, { ...done, changed: new Set(), steps: [] });
  }
  if (isEmptyPlan(after.plan)) return after;
  throw new Failure('wrong-result', { rest: listSteps(after.plan) });
}
