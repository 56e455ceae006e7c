import { placeAtLine } from '../base/findings/finding.ts';
import type { Reading } from '../snapshot/open/opened.ts';
import { keyOfFinding } from './open.ts';

/** The name of a side: a path, or a word such as a mode. */
export interface CalledSide {
  readonly name: string;
  readonly isPath: boolean;
}

/** Names the side in findings that name neither a file nor the side, unless both sides have the same. What both say is said of the first. */
export function ofSides(
  [from, to]: readonly [Reading, Reading],
  [first, second]: readonly [CalledSide, CalledSide],
): readonly [Reading, Reading] {
  const [old, fresh] = [from, to].map(({ diagnostics }) => new Set(diagnostics.map(keyOfFinding)));
  const diagnosticsOf = (reading: Reading, side: CalledSide, beside: Set<string> | undefined) =>
    reading.diagnostics.map((each) => {
      const { name, isPath } = side;
      const isNamed = each.place !== undefined || Object.values(each.arguments).includes(name);
      if (isNamed || beside?.has(keyOfFinding(each))) return each;
      if (isPath) return { ...each, place: placeAtLine(name === '-' ? 'stdin' : name) };
      return { ...each, about: { kind: 'side', name } } as const;
    });
  return [
    { ...from, diagnostics: diagnosticsOf(from, first, fresh) },
    {
      ...to,
      diagnostics: diagnosticsOf(to, second, old).filter((each) => !old?.has(keyOfFinding(each))),
    },
  ];
}
