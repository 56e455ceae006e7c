import { restrictState } from '../../kernel/restrict.ts';
import { describeError } from '../../bundle/errors.ts';
import { parseReading } from '../node/node-reading.ts';
import { endOrphans, inHaste } from '../node/tool-time-limits.ts';
import { isEmptyPlan, type Plan } from '../plan/plan.ts';
import { listSteps } from '../plan/steps.ts';
import { joinBelongings, ownershipOf } from '../state/belongings.ts';
import { writeRecord } from '../state/history.ts';
import { readRecord, type OwnershipRecord, type Snapshot } from '../state/record.ts';
import { drainTerms, look, type ChangeRequest, type Session } from './observe-node.ts';
import { runStep } from './run-steps.ts';

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
  const settings = Object.entries(snapshot.reading.settings).map(([path, value]) => ({ path, name: path, value }));
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
