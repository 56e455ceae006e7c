/** What one list has more than the other, whatever their order: equal texts are of equal items. */
export function subtract<T>(list: readonly T[], others: readonly T[], textOf: (item: T) => string): readonly T[] {
  const left = new Map<string, number>();
  for (const item of others) left.set(textOf(item), (left.get(textOf(item)) ?? 0) + 1);
  return list.filter((item) => {
    const text = textOf(item);
    const count = left.get(text) ?? 0;
    left.set(text, count - 1);
    return count <= 0;
  });
}

/** How the rules of a chain differ, each in one text for all ways to write it. */
interface RuleDifference {
  readonly rulesFrom: number;
  readonly rulesTo: number;
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/** Compares the rules of a chain; none are on the side that lacks it. */
export function compareRules(from: readonly string[], to: readonly string[]): RuleDifference {
  const asItIs = (text: string): string => text;
  return {
    rulesFrom: from.length,
    rulesTo: to.length,
    added: subtract(to, from, asItIs),
    removed: subtract(from, to, asItIs),
  };
}
