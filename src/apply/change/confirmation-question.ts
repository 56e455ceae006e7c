import { amount, objectOf, text } from '../../base/shape.ts';
import type { Host } from '../node/host.ts';
import { processFields, type ProcessIdentity } from '../state/process-identity.ts';
import { completeRecord, readJson, recordShape, type OwnershipRecord, type StoredRecord } from '../state/record.ts';

/**
 * What an apply asks that waits to be confirmed: the file with it is renamed by the process that answers, yes or no. It holds
 * all that is needed to make the change stay, for the process that asks may be gone by then.
 */
export interface Question extends ProcessIdentity {
  readonly id: string;
  /** Milliseconds since the node booted. */
  readonly deadline: number;
  /** What is kpc-apply's when the change stays. */
  readonly record: OwnershipRecord;
}

/** A question in a file. */
interface StoredQuestion extends Omit<Question, 'record'> {
  readonly record: StoredRecord;
}

const questionShape = objectOf<StoredQuestion>({ ...processFields, id: text, deadline: amount, record: recordShape });

/** Undefined where nothing is asked. */
export async function readQuestion(host: Host, path: string): Promise<Question | undefined> {
  const advice = 'remove it and apply again: an apply that waits for confirmation is put back when its time is over';
  const stored = await readJson(host, path, questionShape, advice);
  return stored && { ...stored, record: completeRecord(stored.record) };
}
