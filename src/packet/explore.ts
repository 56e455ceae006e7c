import { sourceText, sumChances, unknown, isUnknownOwn, type Decision, type UnknownEnd, type Way } from './packet.ts';
import type { AskedSource, Step } from './step.ts';
import type { Reason } from './reason.ts';

/** Decides each fork in a packet's path. A walk follows the `planned` choices, then takes the first branch at every further fork. */
export class Choices {
  readonly points: Point[] = [];
  readonly sources: Set<AskedSource>;
  asksFlags = false;
  readonly #planned: readonly number[];
  readonly #budget: Budget;
  #depth = 0;

  constructor(planned: readonly number[], budget: Budget) {
    this.#planned = planned;
    this.#budget = budget;
    this.sources = budget.sources;
  }

  /** Runs a chain. Gives up if chains loop or there are too many paths. */
  enter(run: () => Decision): Decision {
    this.#budget.chains++;
    if (this.#budget.chains > mostChains || this.#depth >= deepest) return tooMany;
    this.#depth++;
    const decision = run();
    this.#depth--;
    return decision;
  }

  draw(probabilities: readonly number[]): number {
    return this.#choose({ kind: 'random', probabilities });
  }

  /** Returns whether this walk assumes that the answer is yes. `steps` ends with the step in doubt. */
  doubt(reason: Reason, steps: () => readonly Step[]): boolean {
    return this.#choose({ kind: 'doubt', reason, steps: steps() }) === 0;
  }

  #choose(point: Point): number {
    const choice = this.#planned[this.points.length] ?? 0;
    this.points.push(point);
    return choice;
  }
}

type Point =
  | { readonly kind: 'random'; readonly probabilities: readonly number[] }
  | { readonly kind: 'doubt'; readonly reason: Reason; readonly steps: readonly Step[] };

interface Budget {
  chains: number;
  readonly sources: Set<AskedSource>;
}

/** The most chains to run for one packet, about ten for each endpoint of a Service. */
const mostChains = 300_000;

/** The deepest nesting of chains that kpc follows. The kernel allows sixteen levels in nftables. */
const deepest = 200;

const mostDoubts = 12;

const tooMany: UnknownEnd = unknown({ kind: 'too-many-ways' });

/** Returns all paths of a packet with their probabilities. Drops doubts that do not change how a path ends. */
export function explore<End>(
  walk: (choices: Choices) => Way<End>,
  sources: Set<AskedSource> = new Set(),
): readonly Way<End>[] {
  return exploreFrom(walk, { chains: 0, sources }, []);
}

function exploreFrom<End>(
  walk: (choices: Choices) => Way<End>,
  budget: Budget,
  planned: readonly number[],
): readonly Way<End>[] {
  const choices = new Choices(planned, budget);
  let ways: readonly Way<End>[] = [walk(choices)];
  for (let at = choices.points.length - 1; at >= planned.length; at--) {
    const [first] = ways as readonly [Way<End>];
    if (budget.chains > mostChains) return [unknownWay(first, first.steps, [tooMany.reason])];
    const point = choices.points[at] as Point;
    const before = Array.from({ length: at }, (_, i) => planned[i] ?? 0);
    if (point.kind === 'random') {
      ways = point.probabilities.flatMap((probability, choice) =>
        scale(choice === 0 ? ways : exploreFrom(walk, budget, [...before, choice]), probability),
      );
    } else {
      const doubts = choices.points.filter(({ kind }) => kind === 'doubt').length;
      const others = doubts > mostDoubts ? [] : exploreFrom(walk, budget, [...before, 1]);
      if (isSameEnd(ways, others, exactEnd, 1e-9)) {
        ways = withDoubt(ways, others, point.reason);
        continue;
      }
      const reasons = [...ways, ...others].flatMap((way) => way.reasons);
      ways = [unknownWay(first, point.steps, [point.reason, ...reasons])];
    }
  }
  return ways;
}

/** Adds a doubt to ways whose other branch ends the same but leaves different data in conntrack. */
function withDoubt<End>(ways: readonly Way<End>[], others: readonly Way<End>[], reason: Reason): readonly Way<End>[] {
  const known = new Set(ways.map(({ kept }) => kept?.()));
  const differing = others.filter(({ kept }) => !known.has(kept?.()));
  if (differing.length === 0) return ways;
  return ways.map((way) => {
    const same = differing.filter((other) => exactEnd(other) === exactEnd(way));
    const further = same.flatMap(({ end, doubts = [] }) => [{ reason, end }, ...doubts]);
    return { ...way, doubts: [...(way.doubts ?? []), ...further] };
  });
}

function scale<End>(ways: readonly Way<End>[], factor: number): readonly Way<End>[] {
  return factor === 1 ? ways : ways.map((way) => ({ ...way, probability: way.probability * factor }));
}

export function unknownWay(
  { source }: Pick<Way, 'source'>,
  steps: readonly Step[],
  reasons: readonly Reason[],
): Way<never> {
  return { probability: 1, verdict: 'unknown', endpoint: undefined, source, steps, reasons };
}

export function isSameEnd(
  a: readonly Way[],
  b: readonly Way[],
  endOf: (way: Way) => string,
  tolerance: number,
): boolean {
  const [left, right] = [sumChances(a, endOf), sumChances(b, endOf)];
  if (left.size !== right.size) return false;
  return [...left].every(([end, probability]) => Math.abs((right.get(end) ?? -1) - probability) < tolerance);
}

/** Returns equal texts for equal ends. To the receiver, a packet masqueraded as the node looks like one from the node's own address. */
function exactEnd({ verdict, endpoint, source, loss }: Way): string {
  const seen = source === 'masqueraded' || isUnknownOwn(source) ? 'node' : sourceText(source);
  return `${verdict} ${endpoint?.address.text ?? ''} ${endpoint?.port ?? ''} ${seen} ${loss?.kind ?? ''}`;
}
