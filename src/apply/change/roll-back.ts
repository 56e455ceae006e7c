import { realServerKey, virtualServerKey } from '../../kernel/ipvs/ipvs-delta.ts';
import type { KernelState } from '../../kernel/state.ts';
import { changeNode, type ChangeOutcome } from './change-node.ts';
import { observe, type ChangeRequest, type Session } from './observe-node.ts';
import { putBack, requestSnapshot } from './carry-out.ts';
import { guardIn, withoutGuard } from '../plan/access-guard.ts';
import { noBelongings, withoutBelongings } from '../state/belongings.ts';
import { placeKey } from '../node/open-traffic.ts';
import { Failure } from '../state/failure.ts';
import { adviseOnStates, findState, readHistory, type History, type KeptState } from '../state/history.ts';
import { assertSomethingToUndo, noteCommand, readLastCommand, type LastCommand } from '../state/last-command.ts';
import { parseReading } from '../node/node-reading.ts';
import { readBootId } from '../state/process-identity.ts';
import type { Plan, Target } from '../plan/plan.ts';
import { readRecord, readSnapshot, type Snapshot, type StateMark } from '../state/record.ts';
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
  await settleUnconfirmed(session);
  const choice = await choose(session, choices);
  const assertAlone = () => (choices.force ? undefined : assertNoKubeProxy(session.host));
  switch (choice.kind) {
    case 'unfinished': {
      await assertAlone();
      session.onEvent({ kind: 'recovering' });
      if ((await putBack(session, choice.snapshot)) !== 'nothing') return { kind: 'unfinished-stuck' };
      await endUnconfirmed(session).catch(() => undefined);
      const reason = 'an apply did not finish';
      await noteCommand(session, { command: 'rollback', outcome: 'put-back', reason });
      return { kind: 'unfinished-put-back' };
    }
    case 'state': {
      const prepare: ChangeRequest['prepare'] = async (_plan, isIdle) => {
        if (!isIdle) await assertAlone();
      };
      const outcome = await changeNode(session, { ...choice.request, prepare });
      return { kind: 'rolled-back', to: choice.to, outcome };
    }
    case 'there-already':
      return choice;
    default:
      return choice satisfies never;
  }
}

/** Says what a roll back would do. Changes nothing. */
export async function planRollBack(session: Session, choices: RollBackChoices): Promise<RollBackPlan> {
  const choice = await choose(session, choices);
  switch (choice.kind) {
    case 'unfinished':
      return { kind: 'unfinished', plan: (await observe(session, requestSnapshot(choice.snapshot))).plan };
    case 'state':
      return { kind: 'state', to: choice.to, plan: (await observe(session, choice.request)).plan };
    case 'there-already':
      return choice;
    default:
      return choice satisfies never;
  }
}

/** The states that a rollback may go to, without any change. Throws a Failure if the record or the journal is damaged. */
export async function listStates(session: Session): Promise<RollBackStates> {
  const { host, folder } = session;
  const bootId = await readBootId(host);
  const history = await readHistory(host, folder, await readRecord(host, folder, bootId));
  const isUnfinished = (await readSnapshot(host, folder.journal, bootId)) !== undefined;
  return { ...history, last: await readLastCommand(session), isUnfinished };
}

/** What a rollback undoes: an apply that did not end, or the changes since a state. */
type Choice =
  | { readonly kind: 'unfinished'; readonly snapshot: Snapshot }
  | { readonly kind: 'state'; readonly to: StateMark; readonly request: ChangeRequest }
  | { readonly kind: 'there-already'; readonly to: StateMark };

/** Throws a Failure if there is nothing to undo. */
async function choose(session: Session, { to, drainTimeout }: RollBackChoices): Promise<Choice> {
  const { host, folder } = session;
  const bootId = await readBootId(host);
  const snapshot = await readSnapshot(host, folder.journal, bootId);
  if (snapshot && to === undefined) return { kind: 'unfinished', snapshot };
  const history = await readHistory(host, folder, await readRecord(host, folder, bootId));
  const { present, before, states } = history;
  // What an apply that did not end has changed goes, too.
  if (to !== undefined && to === present?.id && !snapshot) return { kind: 'there-already', to: present };
  if (to === undefined) assertSomethingToUndo(await readLastCommand(session), adviseOnStates(states));
  const id = to ?? before;
  if (id === undefined) {
    throw new Failure(
      'nothing-to-roll-back',
      `${folder.path} holds no earlier state to restore`,
      states.length > 0
        ? adviseOnStates(states)
        : 'the state before an apply is kept for a while, but not after a reboot',
    );
  }
  const state = findState(history, id);
  return { kind: 'state', to: state.mark, request: { ...requestState(state), drainTimeout } };
}

/**
 * Asks for a node as it was, except for real servers that waited for the end of their connections then: these stay
 * where they are still there, and do not come back where they are not. Nor does what was left of IPVS for them. A setting is put
 * back only where kpc-apply set it, and it is still as it was set: the rest is the administrator's.
 */
function requestState({ mark, snapshot }: KeptState): ChangeRequest {
  const whole = requestSnapshot(snapshot);
  const { record, settingsMade, reading } = snapshot;
  const places = new Set(record.draining.map(({ virtualServer, realServer }) => placeKey(virtualServer, realServer)));
  const leavesIpvs = record.leftIpvs !== undefined;
  const withoutDraining = (state: KernelState): KernelState => ({
    ...state,
    virtualServers: state.virtualServers.map((server) => {
      const key = virtualServerKey(server);
      return {
        ...server,
        realServers: server.realServers.filter((real) => !places.has(placeKey(key, realServerKey(real)))),
      };
    }),
  });
  const target = async (): Promise<Target> => {
    const wanted = await whole.target();
    const state = leavesIpvs
      ? { ...withoutGuard(wanted.state), virtualServers: [], links: [], sets: [] }
      : withoutDraining(wanted.state);
    const settings = wanted.settings.flatMap((setting) => {
      const onlyFrom = settingsMade[setting.path];
      return onlyFrom === undefined ? [] : { ...setting, onlyFrom };
    });
    return { ...wanted, state, settings };
  };
  const request: ChangeRequest = { ...whole, target, origin: { kind: 'rollback', to: mark } };
  if (!leavesIpvs) return request;
  const { chains, jumps, besideKubelet } = withoutBelongings(record.owned, guardIn(parseReading(reading)));
  return { ...request, belongings: { ...noBelongings, chains, jumps, besideKubelet } };
}
