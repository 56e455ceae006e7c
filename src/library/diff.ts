import type { DifferenceJson } from '../say/differences.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { compareSides, diffAnswer, diffResult, expectCompared, formatSideDiffs } from './differences.ts';
import { checkOptionNames, expectSnapshot } from './inputs.ts';
import { misuse } from './words.ts';

export interface DiffOptions {
  /** Whether to compare objects of other programs too. */
  readonly foreign?: boolean | undefined;
}

/** Compares two sides by meaning. Returns the result of `kpc diff --output json`. */
export function diff(from: Snapshot, to: Snapshot, options: DiffOptions = {}): DifferenceJson {
  checkOptionNames(options, ['foreign']);
  checkSides(from, to);
  const { foreign = false } = options;
  const differences = compareSides(from, to, { foreign });
  expectCompared(differences);
  return diffResult(differences);
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
  checkOptionNames(options, ['foreign', 'limit']);
  checkSides(from, to);
  if (!formats.includes(format)) misuse({ problem: 'not-one-of', option: 'format', values: formats });
  const { foreign = false, limit = 20 } = options;
  if (format === 'unified') return formatSideDiffs(from, to);
  const differences = compareSides(from, to, { foreign });
  expectCompared(differences);
  return diffAnswer(differences, { limit })[format]();
}

function checkSides(from: Snapshot, to: Snapshot): void {
  expectSnapshot(from, 'from');
  expectSnapshot(to, 'to');
}
