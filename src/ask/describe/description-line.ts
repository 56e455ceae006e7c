import { cutLines } from '../../base/printable.ts';

/** `depth` is the indentation. */
export interface DescriptionLine {
  readonly role: 'heading' | 'plain' | 'dim' | 'good' | 'bad';
  readonly depth: number;
  readonly text: string;
  /** The cells of a table row, aligned when printed. */
  readonly cells?: readonly string[];
}

/** The first lines, and a count of the rest. */
export function cutDescription(
  lines: readonly DescriptionLine[],
  limit: number,
  depth: number,
): readonly DescriptionLine[] {
  return cutLines(lines, limit, (words) => descriptionLine('dim', depth, `… ${words}`));
}

export function descriptionLine(role: DescriptionLine['role'], depth: number, text: string): DescriptionLine {
  return { role, depth, text };
}
