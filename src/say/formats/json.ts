import type { Schema, Shaped } from '../../base/json/schema.ts';
import { printableJson } from '../../base/printable.ts';
import { version } from '../../base/version.ts';
import type { SnapshotJson, finding } from '../outputs/envelope.ts';
import type { SaidFinding } from '../words/said.ts';

/** A command's messages that are not part of its result. */
export interface SaidByCommand {
  /** For example "kpc trace". */
  readonly command: string;
  readonly findings: readonly SaidFinding[];
}

/** An answer for programs. `result` is undefined if findings kept kpc from answering. */
export interface CommandAnswer<T> {
  readonly command: string;
  readonly findings?: readonly Shaped<typeof finding>[];
  readonly snapshots?: readonly SnapshotJson[];
  readonly result?: T | undefined;
}

/** Makes the envelope of all answers. Its type makes a command print the shape published for it (src/say/outputs, schemas/). */
export function makeEnvelope<S extends Schema>({
  command,
  snapshots = [],
  findings = [],
  result,
}: CommandAnswer<Shaped<S>>) {
  return { kpc: version, command, snapshots, findings, result };
}

/** Returns undefined for an empty list, which keeps the list out of JSON. */
export function unlessEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length > 0 ? list : undefined;
}

export function formatJson<S extends Schema = Schema>(answer: CommandAnswer<Shaped<S>>): string {
  return `${printableJson(JSON.stringify(makeEnvelope<S>(answer), undefined, 2))}\n`;
}
