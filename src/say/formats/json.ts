import type { Schema, Shaped } from '../../base/json/schema.ts';
import { printableJson } from '../../base/printable.ts';
import { version } from '../../base/version.ts';
import type { SnapshotJson, finding } from '../outputs/envelope.ts';
import type { SaidFinding } from '../words/said.ts';

/** A command's messages besides its result. */
export interface SaidByCommand {
  /** "kpc trace". */
  readonly command: string;
  readonly findings: readonly SaidFinding[];
}

/** An answer for programs. `result` is undefined if findings kept kpc from an answer. */
export interface CommandAnswer<T> {
  readonly command: string;
  readonly findings?: readonly Shaped<typeof finding>[];
  readonly snapshots?: readonly SnapshotJson[];
  readonly result?: T | undefined;
}

/** The one envelope of all answers. The type makes each command print its published shape (src/say/outputs, schemas/). */
export function makeEnvelope<S extends Schema>({
  command,
  snapshots = [],
  findings = [],
  result,
}: CommandAnswer<Shaped<S>>) {
  return { kpc: version, command, snapshots, findings, result };
}

/** Leaves an empty list out of JSON. */
export function unlessEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length > 0 ? list : undefined;
}

/** Formats an answer for --output json. */
export function formatJson<S extends Schema = Schema>(answer: CommandAnswer<Shaped<S>>): string {
  return `${printableJson(JSON.stringify(makeEnvelope<S>(answer), undefined, 2))}\n`;
}
