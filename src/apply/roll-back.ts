import { changeNode, putBack, requestSnapshot, type ChangeOutcome, type Session } from './change-node.ts';
import { Failure } from './failure.ts';
import { readBootId } from './process-identity.ts';
import { readSnapshot } from './record.ts';
import { endUnconfirmed, settleUnconfirmed } from './unconfirmed.ts';

/** What became of a roll back: of an apply that did not end, or of the last one that did. */
export type RollBackOutcome =
  | { readonly kind: 'unfinished-put-back' }
  | { readonly kind: 'unfinished-stuck' }
  | { readonly kind: 'rolled-back'; readonly outcome: ChangeOutcome };

/**
 * Brings the node to the state before the last apply. Where that apply never came to its end, to the state before it
 * began. Rolling back twice brings back what was rolled back. Call it with the lock held.
 */
export async function rollBack(session: Session, drainTimeout: number | undefined): Promise<RollBackOutcome> {
  const { host, folder } = session;
  await settleUnconfirmed(session);
  const bootId = await readBootId(host);
  const unfinished = await readSnapshot(host, folder.journal, bootId);
  if (unfinished) {
    session.onEvent({ kind: 'recovering' });
    const left = await putBack(session, unfinished);
    if (left === 'nothing') await endUnconfirmed(session).catch(() => undefined);
    return { kind: left === 'nothing' ? 'unfinished-put-back' : 'unfinished-stuck' };
  }
  const previous = await readSnapshot(host, folder.previous, bootId);
  if (!previous) {
    throw new Failure(
      'nothing-to-roll-back',
      `${folder.previous} holds no state to go back to`,
      'the state before an apply is kept until the next apply, and until the node boots',
    );
  }
  return { kind: 'rolled-back', outcome: await changeNode(session, { ...requestSnapshot(previous), drainTimeout }) };
}
