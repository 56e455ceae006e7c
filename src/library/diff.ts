import { diffSides } from '../ask/diff/diff-sides.ts';
import { diffToJson, type DifferenceJson } from '../say/differences.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { diffAnswer, formatSideDiffs } from './differences.ts';
import { checkOptionNames } from './inputs.ts';

/** How to compare two sides. */
export interface DiffOptions {
  /** Also compare what is not kube-proxy's. */
  readonly foreign?: boolean | undefined;
}

/** Compares two sides by meaning: what `kpc diff --output json` prints. */
export function diff(from: Snapshot, to: Snapshot, options: DiffOptions = {}): DifferenceJson {
  checkOptionNames(options, ['foreign']);
  const { foreign = false } = options;
  return diffToJson(from, to, diffSides(from, to, { foreign }));
}

/** How to compare two sides and print the result. */
export interface FormatOptions extends DiffOptions {
  /** Lines of a list to write before "and 230 more". */
  readonly limit?: number | undefined;
}

/** Compares two sides, and writes what differs as `kpc diff --output` does. */
export function formatDiff(
  from: Snapshot,
  to: Snapshot,
  format: 'text' | 'markdown' | 'unified',
  options: FormatOptions = {},
): string {
  checkOptionNames(options, ['foreign', 'limit']);
  const { foreign = false, limit = 20 } = options;
  if (format === 'unified') return formatSideDiffs(from, to);
  const answer = diffAnswer({ from, to, diff: diffSides(from, to, { foreign }) }, { limit });
  return format === 'text' ? answer.text() : answer.markdown();
}
