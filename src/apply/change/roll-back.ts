import { realServerKey, virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { RealServer, VirtualServer } from '../../kernel/ipvs/ipvs.ts';
import { changeNode } from './change-node.ts';
import { observe, readOwned, type ChangeOutcome, type ChangeRequest, type Session } from './observe-node.ts';
import { putBack, requestSnapshot } from './carry-out.ts';
import { withoutGuard } from '../plan/access-guard.ts';
import { placeKey } from '../node/open-traffic.ts';
import { Failure } from '../state/failure.ts';
import { findState, readHistory, type History } from '../state/history.ts';
import { noteCommand, readLastCommand, type LastCommand } from '../state/last-command.ts';
import type { Plan, WantedNode } from '../plan/plan.ts';
import { readJournal, readRecord, type StoredSnapshot, type StateMark } from '../state/record.ts';
import { assertNoKubeProxy } from '../node/processes.ts';
import { assertNoOrphans } from '../node/tool-time-limits.ts';
import { endUnconfirmed, keepOrForgetUnconfirmed } from './unconfirmed-apply.ts';

export type RollBackOutcome =
  | { readonly kind: 'unfinished'; readonly left: Awaited<ReturnType<typeof putBack>> }
  | { readonly kind: 'state'; readonly to: StateMark; readonly outcome: ChangeOutcome };

export interface RollBackChoices {
  /** The id of a state; undefined undoes the last command. */
  readonly to: number | undefined;
  /** Milliseconds; undefined waits until all connections end. */
  readonly drainTimeout: number | undefined;
  readonly force: boolean;
}

export interface RollBackPlan {
  /** Undefined for the state before an unfinished apply. */
  readonly to: StateMark | undefined;
  readonly plan: Plan;
}

/** The states that a rollback can restore. `last`: the last command, if it left nothing to undo. */
export interface RollBackStates extends History {
  readonly last: LastCommand | undefined;
  readonly isUnfinished: boolean;
}

/** Undoes the last command or an unfinished apply, or restores a state. Needs the lock. Throws a Failure if there is nothing to undo. */
export async function rollBack(session: Session, choices: RollBackChoices): Promise<RollBackOutcome> {
  await keepOrForgetUnconfirmed(session);
  const { to, request, unfinished } = await choose(session, choices);
  const assumesAlone = session.assumesAlone === true;
  const assertAlone = () => (choices.force ? undefined : assertNoKubeProxy(session.host, assumesAlone));
  if (to === undefined) {
    await assertAlone();
    await assertNoOrphans(session.host, unfinished, assumesAlone);
    session.onEvent({ kind: 'recovering' });
    const left = await putBack(session, unfinished);
    if (left === 'nothing') {
      await endUnconfirmed(session).catch(() => undefined);
      await noteCommand(session, { command: 'rollback', outcome: 'put-back' });
    }
    return { kind: 'unfinished', left };
  }
  const prepare: ChangeRequest['prepare'] = async (_plan, isIdle) => {
    if (!isIdle) await assertAlone();
  };
  return { kind: 'state', to, outcome: await changeNode(session, { ...request, prepare }) };
}

export async function planRollBack(session: Session, choices: RollBackChoices): Promise<RollBackPlan> {
  const { to, request } = await choose(session, choices);
  return { to, plan: (await observe(session, request)).plan };
}

export async function listStates(session: Session): Promise<RollBackStates> {
  const { host, folder } = session;
  const { record, unfinished } = await readOwned(session);
  const history = await readHistory(host, folder, record);
  return { ...history, last: await readLastCommand(session), isUnfinished: unfinished !== undefined };
}

async function choose(session: Session, { to, drainTimeout }: RollBackChoices) {
  const { host, folder } = session;
  // Read the journal first, so that this works even if the record is damaged.
  const unfinished = await readJournal(host, folder);
  if (unfinished && to === undefined) return { unfinished, request: requestSnapshot(unfinished) };
  const history = await readHistory(host, folder, await readRecord(host, folder));
  const { before, states } = history;
  const last = to === undefined ? await readLastCommand(session) : undefined;
  const kept = { states: states.map(({ state }) => state) };
  if (last) throw new Failure('nothing-to-undo', { last, ...kept });
  const id = to ?? before;
  if (id === undefined) throw new Failure('nothing-to-roll-back', { folder: folder.path, ...kept });
  const snapshot = findState(history, id);
  return { to: snapshot.state, request: { ...requestState(snapshot), drainTimeout } };
}

/**
 * Returns a request for the former state of the node, without the real servers that were draining then. Restores a setting only if it
 * still has a value that kpc-apply set; otherwise the administrator has changed it.
 */
function requestState(snapshot: StoredSnapshot): ChangeRequest {
  const whole = requestSnapshot(snapshot);
  const { record, settingsMade } = snapshot;
  const places = new Set(record.draining.map(({ virtualServer, realServer }) => placeKey(virtualServer, realServer)));
  const leavesIpvs = record.leftIpvs !== undefined;
  const withoutDraining = (server: VirtualServer): VirtualServer => {
    const drains = (real: RealServer) => places.has(placeKey(virtualServerKey(server), realServerKey(real)));
    return { ...server, realServers: server.realServers.filter((real) => !drains(real)) };
  };
  const target: ChangeRequest['target'] = async (variants): Promise<WantedNode> => {
    const wanted = await whole.target(variants);
    const state = leavesIpvs
      ? { ...wanted.state, iptables: withoutGuard(wanted.state), virtualServers: [], links: [], sets: [] }
      : { ...wanted.state, virtualServers: wanted.state.virtualServers.map(withoutDraining) };
    const settings = wanted.settings.flatMap((setting) => {
      const onlyFrom = settingsMade[setting.path];
      return onlyFrom === undefined ? [] : { ...setting, onlyFrom };
    });
    return { ...wanted, state, settings };
  };
  return { ...whole, target, ownedAfter: leavesIpvs ? undefined : whole.ownedAfter };
}
