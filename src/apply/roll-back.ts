import {
  changeNode,
  putBack,
  requestSnapshot,
  type ChangeOutcome,
  type ChangeRequest,
  type Session,
} from './change-node.ts';
import { Failure } from './failure.ts';
import { readBootId } from './process-identity.ts';
import { readSnapshot } from './record.ts';
import { assertNoKubeProxy } from './running-kube-proxy.ts';
import { endUnconfirmed, settleUnconfirmed } from './unconfirmed.ts';

/** What became of a roll back: of an apply that did not end, or of the last one that did. */
export type RollBackOutcome =
  | { readonly kind: 'unfinished-put-back' }
  | { readonly kind: 'unfinished-stuck' }
  | { readonly kind: 'rolled-back'; readonly outcome: ChangeOutcome };

/** What somebody may choose about a roll back. */
export interface RollBackChoices {
  /** Milliseconds; undefined waits for the end of all connections. */
  readonly drainTimeout: number | undefined;
  /** Go on although a kube-proxy is running. */
  readonly force: boolean;
}

/**
 * Brings the node to the state before the last apply. Where that apply never came to its end, to the state before it
 * began. Rolling back twice brings back what was rolled back. Call it with the lock held.
 */
export async function rollBack(session: Session, { drainTimeout, force }: RollBackChoices): Promise<RollBackOutcome> {
  const { host, folder } = session;
  await settleUnconfirmed(session);
  const bootId = await readBootId(host);
  const unfinished = await readSnapshot(host, folder.journal, bootId);
  if (unfinished) {
    if (!force) await assertNoKubeProxy(host);
    session.onEvent({ kind: 'recovering' });
    const left = await putBack(session, unfinished);
    if (left === 'nothing') await endUnconfirmed(session).catch(() => undefined);
    return { kind: left === 'nothing' ? 'unfinished-put-back' : 'unfinished-stuck' };
  }
  const previous = await readSnapshot(host, folder.previous, bootId);
  if (!previous) {
    throw new Failure(
      'nothing-to-roll-back',
      `${folder.previous} holds no earlier state to restore`,
      'the state before an apply is kept until the next apply or reboot',
    );
  }
  const prepare: ChangeRequest['prepare'] = async (_plan, isIdle) => {
    if (!force && !isIdle) await assertNoKubeProxy(host);
  };
  const outcome = await changeNode(session, { ...requestSnapshot(previous), drainTimeout, prepare });
  return { kind: 'rolled-back', outcome };
}
