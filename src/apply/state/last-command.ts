import { lastCommand as lastCommandCheck } from '#checks';
import type { Shaped } from '../../base/json/schema.ts';
import { isDone, type ChangeOutcome, type Session } from '../change/observe-node.ts';
import { explainError } from './failure.ts';
import { readJsonFile, readRecord, writeJson, type BundleMark } from './record.ts';
import type { lastCommandSchema } from './schemas.ts';

/** A command that left the node unchanged. A plain rollback must not undo the command before it. */
export type LastCommand = Shaped<typeof lastCommandSchema>;

type Work = () => Promise<ChangeOutcome>;

export async function noteCommand({ host, folder }: Session, note: Omit<LastCommand, 'bootId' | 'at'>): Promise<void> {
  const last: LastCommand = { ...note, bootId: folder.network.bootId, at: host.now() };
  await writeJson(host, folder.lastCommand, last).catch(() => undefined);
}

async function isKnown({ host, folder }: Session): Promise<boolean> {
  const names = await host.list(folder.path).catch((): readonly string[] => []);
  return names.includes('record.json');
}

/** Runs a command. Saves a note unless the command changed the node. */
export async function noting(session: Session, command: string, work: Work): Promise<ChangeOutcome> {
  try {
    const outcome = await work();
    const { kind } = outcome;
    if (kind === 'unchanged' && (await isKnown(session))) await noteCommand(session, { command, outcome: kind });
    if (kind === 'put-back')
      await noteCommand(session, { command, outcome: kind, reason: session.say(outcome.failure) });
    return outcome;
  } catch (error) {
    if (await isKnown(session))
      await noteCommand(session, { command, outcome: 'refused', reason: session.say(explainError(error)) });
    throw error;
  }
}

/** Like noting, for a round of watch. A round counts as a command only while it fails to apply a new bundle. */
export async function notingRound(session: Session, bundle: BundleMark, work: Work): Promise<ChangeOutcome> {
  const { host, folder } = session;
  const command = `watch ${bundle.folder}`;
  const { state } = await readRecord(host, folder);
  const outcome = await (state?.bundle?.digest === bundle.digest ? work() : noting(session, command, work));
  const last = isDone(outcome) ? await readLastCommand(session).catch(() => undefined) : undefined;
  if (last?.command === command) await host.remove(folder.lastCommand);
  return outcome;
}

/** Returns the last command since boot, if it did not change the node. */
export async function readLastCommand({ host, folder }: Session): Promise<LastCommand | undefined> {
  const last = await readJsonFile<LastCommand>(host, folder.lastCommand, lastCommandCheck, 'last-command');
  return last?.bootId === folder.network.bootId ? last : undefined;
}
