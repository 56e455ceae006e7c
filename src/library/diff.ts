import type { DifferenceJson } from '../say/differences.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import {
  compareSides,
  diffAnswer,
  diffResult,
  expectCompared,
  formatSideDiffs,
  type Differences,
} from './differences.ts';
import { checkOptionNames, expectSnapshot } from './inputs.ts';
import { answerInOptions, misuse } from './words.ts';

export interface DiffOptions {
  /** Whether to also compare the objects of other programs. */
  readonly foreign?: boolean | undefined;
  /** Whether to show the rules that differ instead of the packets that are treated differently. */
  readonly rules?: boolean | undefined;
}

const ofDiff = ['foreign', 'rules'] as const;

/** Compares two sides by meaning. Returns the result of `kpc diff --output json`. */
export function diff(from: Snapshot, to: Snapshot, options: DiffOptions = {}): DifferenceJson {
  checkOptionNames(options, ofDiff);
  return answerInOptions(diffResult(compareSnapshots(from, to, options)));
}

export interface FormatOptions extends DiffOptions {
  readonly limit?: number | undefined;
}

const formats = ['text', 'markdown', 'unified'] as const;

/** Formats the difference like `kpc diff --output`. */
export function formatDiff(
  from: Snapshot,
  to: Snapshot,
  format: (typeof formats)[number],
  options: FormatOptions = {},
): string {
  checkOptionNames(options, [...ofDiff, 'limit']);
  if (!formats.includes(format)) misuse({ problem: 'not-one-of', option: 'format', values: formats });
  const { limit = 20 } = options;
  if (format !== 'unified') return diffAnswer(compareSnapshots(from, to, options), { limit })[format]();
  checkSides(from, to);
  return formatSideDiffs(from, to);
}

function compareSnapshots(from: Snapshot, to: Snapshot, { foreign = false, rules = false }: DiffOptions): Differences {
  checkSides(from, to);
  // A snapshot does not know which command reads it again.
  const differences = compareSides(from, to, { foreign, trace: rules ? undefined : 'no-command' });
  expectCompared(differences);
  return differences;
}

function checkSides(from: Snapshot, to: Snapshot): void {
  expectSnapshot(from, 'from');
  expectSnapshot(to, 'to');
}
