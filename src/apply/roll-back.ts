import { realServerKey, virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { KernelState } from '../kernel/state.ts';
import { changeNode, putBack, requestSnapshot } from './change-node.ts';
import type { ChangeOutcome, Session } from './change-node.ts';
import type { ChangeRequest } from './look.ts';
import { guardIn, withoutGuard } from './access-guard.ts';
import { noBelongings, withoutBelongings } from './belongings.ts';
import type { Belongings } from './belongings.ts';
import { placeKey } from './connections.ts';
import { Failure } from './failure.ts';
import { parseReading } from './node-reading.ts';
import { readBootId } from './process-identity.ts';
import type { Target } from './plan.ts';
import { readSnapshot } from './record.ts';
import type { Snapshot } from './record.ts';
import { assertNoKubeProxy } from './running-kube-proxy.ts';
import { endUnconfirmed, settleUnconfirmed } from './unconfirmed.ts';

/** What became of a roll back: of an apply that did not end, or of the last one that did. */
export type RollBackOutcome =
  | { readonly kind: 'unfinished-put-back' }
  | { readonly kind: 'unfinished-stuck' }
  | { readonly kind: 'rolled-back'; readonly outcome: ChangeOutcome };

/** What the operator may choose about a roll back. */
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
  const outcome = await changeNode(session, { ...requestPrevious(previous), drainTimeout, prepare });
  return { kind: 'rolled-back', outcome };
}

/**
 * The wish to have a node as it was, but for real servers that waited for the end of their connections then: these stay
 * where they are still there, and do not come back where they are not. Nor does what was left of IPVS for them.
 */
function requestPrevious(snapshot: Snapshot): ChangeRequest {
  const request = requestSnapshot(snapshot);
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
