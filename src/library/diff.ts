import { reportDiff } from '../diff/diff-report.ts';
import { diffSides } from '../diff/diff-sides.ts';
import type { Side } from '../diff/compared-side.ts';
import { filePairs } from '../diff/comparable-texts.ts';
import { diffToJson, type DifferenceJson } from '../report/json.ts';
import { formatMarkdown } from '../report/markdown.ts';
import { formatText } from '../report/text.ts';
import { formatUnifiedDiff } from '../report/unified.ts';
import { checkOptionNames } from './texts.ts';

export interface DiffOptions {
  /** Also compare what is not kube-proxy's. */
  readonly foreign?: boolean | undefined;
}

/** Compares two sides by meaning: what `kpc diff --output json` prints. */
export function diff(from: Side, to: Side, options: DiffOptions = {}): DifferenceJson {
  checkOptionNames(options, { foreign: true });
  const { foreign = false } = options;
  return diffToJson(from, to, diffSides(from, to, { foreign }));
}

export interface FormatOptions extends DiffOptions {
  /** Lines of a list to write before "and 230 more". */
  readonly limit?: number | undefined;
}

/** Compares two sides, and writes what differs as `kpc diff --output` does. */
export function formatDiff(
  from: Side,
  to: Side,
  format: 'text' | 'markdown' | 'unified',
  options: FormatOptions = {},
): string {
  checkOptionNames(options, { foreign: true, limit: true });
  const { foreign = false, limit = 20 } = options;
  const report = () => reportDiff(diffSides(from, to, { foreign }), { servicePorts: limit, lines: limit });
  switch (format) {
    case 'text':
      return formatText(report(), (_, text) => text);
    case 'markdown':
      return formatMarkdown(report());
    case 'unified':
      return filePairs(from, to)
        .map((pair) => formatUnifiedDiff(pair.name, pair.from, pair.to))
        .join('');
  }
}
