import { realServerKey, virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { KernelState } from '../../kernel/state.ts';
import { changeNode, type ChangeOutcome } from './change-node.ts';
import { observe, type ChangeRequest, type Session } from './observe-node.ts';
import { putBack, requestSnapshot } from './put-back.ts';
import { guardIn, withoutGuard } from '../plan/access-guard.ts';
import { noBelongings, withoutBelongings, type Belongings } from '../state/belongings.ts';
import { placeKey } from '../node/open-traffic.ts';
import { Failure } from '../state/failure.ts';
import { adviseOnStates, findState, readHistory, type History, type KeptState } from '../state/history.ts';
import { assertSomethingToUndo, noteCommand, readLastCommand, type LastCommand } from '../state/last-command.ts';
import { parseReading } from '../node/node-reading.ts';
import { readBootId } from '../state/process-identity.ts';
import type { Plan, Target } from '../plan/plan.ts';
import { readRecord, readSnapshot, type SettingsMade, type StateMark } from '../state/record.ts';
import { assertNoKubeProxy } from '../node/processes.ts';
import { endUnconfirmed, settleUnconfirmed } from './unconfirmed-apply.ts';

/** What became of a roll back: of an apply that did not end, or of a change that did. */
export type RollBackOutcome =
  | { readonly kind: 'unfinished-put-back' }
  | { readonly kind: 'unfinished-stuck' }
  | { readonly kind: 'rolled-back'; readonly to: StateMark; readonly outcome: ChangeOutcome }
  /** The node is in the state that was asked for. */
  | { readonly kind: 'there-already'; readonly to: StateMark };

/** What the operator may choose about a roll back. */
export interface RollBackChoices {
  /** The id of a state; undefined undoes the last command. */
  readonly to: number | undefined;
  /** Milliseconds; undefined waits for the end of all connections. */
  readonly drainTimeout: number | undefined;
  /** Go on although a kube-proxy is running. */
  readonly force: boolean;
}

/** What a roll back would do. */
export type RollBackPlan =
  | { readonly kind: 'unfinished'; readonly plan: Plan }
  | { readonly kind: 'state'; readonly to: StateMark; readonly plan: Plan }
  | { readonly kind: 'there-already'; readonly to: StateMark };

/** The states to go back to, and why a rollback that names none has nothing to undo, if it has not. */
export interface RollBackStates extends History {
  readonly last: LastCommand | undefined;
  /** Whether an apply did not finish: a rollback puts back what it did. */
  readonly isUnfinished: boolean;
}

/**
 * Undoes the last command: brings the node to the state before it, or to the state that was asked for. If an apply never came to
 * its end, a rollback that names no state goes to the one before it began. A second rollback undoes the first. Call it with the
 * lock held. Throws a Failure if there is nothing to undo.
 */
export async function rollBack(session: Session, choices: RollBackChoices): Promise<RollBackOutcome> {
  const { host, folder } = session;
  await settleUnconfirmed(session);
  const unfinished = await readSnapshot(host, folder.journal, await readBootId(host));
  if (unfinished && choices.to === undefined) {
    if (!choices.force) await assertNoKubeProxy(host);
    session.onEvent({ kind: 'recovering' });
    const left = await putBack(session, unfinished);
    if (left !== 'nothing') return { kind: 'unfinished-stuck' };
    await endUnconfirmed(session).catch(() => undefined);
    const reason = 'an apply did not finish';
    await noteCommand(session, { command: 'rollback', outcome: 'put-back', reason });
    return { kind: 'unfinished-put-back' };
  }
  const found = await chooseState(session, choices.to, unfinished !== undefined);
  if (found.kind === 'there-already') return found;
  const prepare: ChangeRequest['prepare'] = async (_plan, isIdle) => {
    if (!choices.force && !isIdle) await assertNoKubeProxy(host);
  };
  const request = { ...requestState(found.state), drainTimeout: choices.drainTimeout, prepare };
  return { kind: 'rolled-back', to: found.state.mark, outcome: await changeNode(session, request) };
}

/** Says what a roll back would do. Changes nothing. */
export async function planRollBack(session: Session, choices: RollBackChoices): Promise<RollBackPlan> {
  const { host, folder } = session;
  const unfinished = await readSnapshot(host, folder.journal, await readBootId(host));
  if (unfinished && choices.to === undefined) {
    return { kind: 'unfinished', plan: (await observe(session, requestSnapshot(unfinished))).plan };
  }
  const found = await chooseState(session, choices.to, unfinished !== undefined);
  if (found.kind === 'there-already') return found;
  const request = { ...requestState(found.state), drainTimeout: choices.drainTimeout };
  return { kind: 'state', to: found.state.mark, plan: (await observe(session, request)).plan };
}

export async function listStates(session: Session): Promise<RollBackStates> {
  const { host, folder } = session;
  const bootId = await readBootId(host);
  const history = await readHistory(host, folder, await readRecord(host, folder, bootId));
  const isUnfinished = (await readSnapshot(host, folder.journal, bootId)) !== undefined;
  return { ...history, last: await readLastCommand(session), isUnfinished };
}

type Choice =
  { readonly kind: 'found'; readonly state: KeptState } | { readonly kind: 'there-already'; readonly to: StateMark };

/** `isUnfinished`: what an apply that did not end has changed goes, too. */
async function chooseState(session: Session, to: number | undefined, isUnfinished: boolean): Promise<Choice> {
  const { host, folder } = session;
  const history = await readHistory(host, folder, await readRecord(host, folder, await readBootId(host)));
  const { present, before, states } = history;
  if (to !== undefined && to === present?.id && !isUnfinished) return { kind: 'there-already', to: present };
  if (to !== undefined) return { kind: 'found', state: findState(history, to) };
  assertSomethingToUndo(await readLastCommand(session), adviseOnStates(states));
  if (before !== undefined) return { kind: 'found', state: findState(history, before) };
  throw new Failure(
    'nothing-to-roll-back',
    `${folder.path} holds no earlier state to restore`,
    states.length > 0
      ? adviseOnStates(states)
      : 'the state before an apply is kept for a while, but not after a reboot',
  );
}

/** The wish to put back a setting only where kpc-apply set it, and it is still as it was set: the rest is the administrator's. */
function ofKpcApply(settings: Target['settings'], made: SettingsMade): Target['settings'] {
  return settings.flatMap((setting) => {
    const onlyFrom = made[setting.path];
    return onlyFrom === undefined ? [] : { ...setting, onlyFrom };
  });
}

/**
 * The wish to have a node as it was, but for real servers that waited for the end of their connections then: these stay
 * where they are still there, and do not come back where they are not. Nor does what was left of IPVS for them.
 */
function requestState({ mark, snapshot }: KeptState): ChangeRequest {
  const whole = requestSnapshot(snapshot);
  const { settingsMade } = snapshot;
  const goBack = async (): Promise<Target> => {
    const wanted = await whole.target();
    return { ...wanted, settings: ofKpcApply(wanted.settings, settingsMade) };
  };
  const request: ChangeRequest = { ...whole, target: goBack, origin: { kind: 'rollback', to: mark } };
  const { draining, leftIpvs, owned } = snapshot.record;
  if (leftIpvs !== undefined) {
    const { chains, jumps, besideKubelet } = withoutBelongings(owned, guardIn(parseReading(snapshot.reading)));
    const belongings: Belongings = { ...noBelongings, chains, jumps, besideKubelet };
    const target = changeTarget(request, (state) => ({
      ...withoutGuard(state),
      virtualServers: [],
      links: [],
      sets: [],
    }));
    return { ...request, belongings, target };
  }
  if (draining.length === 0) return request;
  const places = new Set(draining.map((server) => placeKey(server.virtualServer, server.realServer)));
  const target = changeTarget(request, ({ virtualServers }) => ({
    virtualServers: virtualServers.map((server) => ({
      ...server,
      realServers: server.realServers.filter(
        (real) => !places.has(placeKey(virtualServerKey(server), realServerKey(real))),
      ),
    })),
  }));
  return { ...request, target };
}

function changeTarget(
  { target }: ChangeRequest,
  change: (state: KernelState) => Partial<KernelState>,
): () => Promise<Target> {
  return async () => {
    const wanted = await target();
    return { ...wanted, state: { ...wanted.state, ...change(wanted.state) } };
  };
}
