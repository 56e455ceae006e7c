import type { Chain, Rule } from './iptables.ts';
import { ruleMeaning } from './iptables-meaning.ts';

/** A rule with a key that is unique in its list. Corresponding rules in two lists have the same key. */
interface Keyed {
  readonly rule: Rule;
  readonly meaning: string;
  readonly key: string;
}

/**
 * Turns a chain's owned rules into the wanted ones. Keeps other programs' rules, and owned rules already in the wanted order. Inserts any
 * other rule right before the rule that follows it in the wanted chain, owned or not; else right after the rule before it; else at the
 * head, as kube-proxy does (iptables.Prepend). Rules with `isLast` are placed only relative to each other, the first after all existing
 * rules (iptables.Append).
 */
export function placeRules(from: Chain | undefined, to: Chain | undefined) {
  const owned = new Set(from?.rules.map(ruleMeaning));
  const here = keyRules(from?.whole ?? from?.rules ?? []);
  const wantedMeanings = new Set(to?.rules.map(ruleMeaning));
  const asked = keyRules(wantedOrder(to, (meaning) => wantedMeanings.has(meaning) || owned.has(meaning)));
  const kept = keepRules(here, asked, owned);
  const deleted = here.filter(({ key, meaning }) => owned.has(meaning) && !kept.has(key));
  const left = here.filter(({ key, meaning }) => !owned.has(meaning) || kept.has(key));
  const placed = asked.filter(({ key, meaning }) => kept.has(key) || wantedMeanings.has(meaning));
  const first = anchorRules(
    placed.filter(({ rule }) => !rule.isLast),
    kept,
  );
  const last = anchorRules(
    placed.filter(({ rule }) => rule.isLast),
    kept,
  );
  const near = (key: string, side: 'before' | 'after') => [first, last].flatMap((each) => each[side].get(key) ?? []);
  const whole = [
    ...first.free,
    ...left.flatMap((each) => [...near(each.key, 'before'), each, ...near(each.key, 'after')]),
    ...last.free,
  ];
  const inserted = new Set(placed.filter(({ key }) => !kept.has(key)));
  return {
    /** Rules to delete first, by meaning; iptables deletes the first of equal rules. */
    deleted: deleted.map(({ rule }) => rule),
    /** Rules to insert next, in this order. Positions count from 1. */
    inserted: whole.flatMap((each, i) => (inserted.has(each) ? [{ rule: each.rule, position: i + 1 }] : [])),
    whole: whole.map(({ rule }) => rule),
  };
}

function anchorRules(asked: readonly Keyed[], kept: ReadonlySet<string>) {
  const before = new Map<string, readonly Keyed[]>();
  let pending: Keyed[] = [];
  let lastKept: string | undefined;
  for (const each of asked) {
    if (!kept.has(each.key)) {
      pending.push(each);
      continue;
    }
    before.set(each.key, pending);
    pending = [];
    lastKept = each.key;
  }
  if (lastKept === undefined) return { before, after: new Map<string, readonly Keyed[]>(), free: pending };
  return { before, after: new Map([[lastKept, pending]]), free: [] as readonly Keyed[] };
}

/** Returns the wanted rules in their places among other programs' rules. A new rule goes right before the next rule that the node had. */
function wantedOrder(to: Chain | undefined, isOwned: (meaning: string) => boolean): readonly Rule[] {
  if (!to) return [];
  const { rules, whole = [] } = to;
  const meanings = whole.map(ruleMeaning);
  const places = new Map<string, number[]>();
  for (const [i, meaning] of [...meanings.entries()].reverse()) {
    const known = places.get(meaning);
    if (known) known.push(i);
    else places.set(meaning, [i]);
  }
  const findFrom = (meaning: string, start: number): number | undefined => {
    const known = places.get(meaning) ?? [];
    while ((known.at(-1) ?? Infinity) < start) known.pop();
    return known.at(-1);
  };
  const others = (start: number, end?: number) =>
    whole.slice(start, end).filter((_, i) => !isOwned(meanings[start + i] ?? ''));
  const order: Rule[] = [];
  let added: Rule[] = [];
  let end = 0;
  for (const rule of rules) {
    added.push(rule);
    const index = findFrom(ruleMeaning(rule), end);
    if (index === undefined) continue;
    order.push(...others(end, index), ...added);
    added = [];
    end = index + 1;
  }
  return [...order, ...added, ...others(end)];
}

/**
 * Returns the keys of the rules that stay: as many owned rules as are already in the wanted order, then as many foreign rules as fit that
 * order. An owned rule cannot stay if iptables would delete it in place of an equal rule. Test: kernel/place-rules.test.ts.
 */
function keepRules(here: readonly Keyed[], asked: readonly Keyed[], owned: ReadonlySet<string>): ReadonlySet<string> {
  const indices = new Map(asked.map(({ key }, i) => [key, i]));
  const common = here.flatMap((each) => {
    const index = indices.get(each.key);
    return index === undefined ? [] : { ...each, index };
  });
  const inOrder = new Set(
    longestIncreasing(
      common.filter(({ meaning }) => owned.has(meaning)),
      ({ index }) => index,
    ).map(({ key }) => key),
  );
  const keptOwn = new Set<string>();
  const deletedLater = new Set<string>();
  for (const { key, meaning } of here.toReversed()) {
    if (inOrder.has(key) && !deletedLater.has(meaning)) keptOwn.add(key);
    else if (owned.has(meaning)) deletedLater.add(meaning);
  }
  const ownBefore = (list: readonly Keyed[]) => {
    let count = 0;
    return new Map(list.map(({ key }) => [key, keptOwn.has(key) ? count++ : count]));
  };
  const [countHere, countAsked] = [ownBefore(here), ownBefore(asked)];
  const others = common.filter(({ key, meaning }) => !owned.has(meaning) && countHere.get(key) === countAsked.get(key));
  return new Set([...keptOwn, ...longestIncreasing(others, ({ index }) => index).map(({ key }) => key)]);
}

/** Numbers equal rules from the end. iptables deletes the first of equal rules, so the last ones stay and must correspond. */
function keyRules(rules: readonly Rule[]): readonly Keyed[] {
  const counts = new Map<string, number>();
  return rules
    .toReversed()
    .map((rule) => {
      const meaning = ruleMeaning(rule);
      const count = counts.get(meaning) ?? 0;
      counts.set(meaning, count + 1);
      return { rule, meaning, key: `${count} ${meaning}` };
    })
    .reverse();
}

function longestIncreasing<T>(items: readonly T[], numberOf: (item: T) => number): readonly T[] {
  interface Linked {
    readonly item: T;
    readonly number: number;
    readonly before: Linked | undefined;
  }
  /** For each length, the increasing subsequence of that length with the lowest last number. */
  const ends: Linked[] = [];
  for (const item of items) {
    const number = numberOf(item);
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle]?.number ?? Infinity) < number) low = middle + 1;
      else high = middle;
    }
    ends[low] = { item, number, before: ends[low - 1] };
  }
  const longest: T[] = [];
  for (let link = ends.at(-1); link; link = link.before) longest.push(link.item);
  return longest.reverse();
}
