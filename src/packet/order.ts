import { decide, type Flow } from './flow.ts';
import type { Decision } from './packet.ts';
import { hooks, type Hook } from './step.ts';
import type { Station } from './knowledge.ts';

/** What sees packets at a hook, those of lower priority first. */
export interface Visitor extends Station {
  /** Of chains of type nat, all of which the kernel enters at one priority: the order among them. */
  readonly natOrder?: number | undefined;
  /** In words: "nftables firewall input". */
  readonly name: string;
  /** What says in which order visitors of one priority were registered: the later has the higher place. */
  readonly listing: string;
  readonly place: number;
  /** Whether the node's own packets are routed again where it changes their mark. */
  readonly reroutes: boolean;
  /** IPVS sends packets out from the node, or leaves them where they are because the real server is the node's own. */
  readonly visit: (flow: Flow) => Decision | 'sent-on';
}

/** Visitors in the order in which the kernel enters them, with blocks whose order among each other is not known. */
export type Ordered = readonly (Visitor | readonly Ordered[])[];

/**
 * Orders visitors as the kernel does: by priority, and of one priority the one that was registered last first
 * (nf_hook_entries_grow in netfilter/core.c). The same holds among chains of type nat, which have one station together.
 */
export function arrange(visitors: readonly Visitor[]): { readonly [H in Hook]: Ordered } {
  const own = hooks.map((hook) => {
    const here = visitors.filter((visitor) => visitor.hook === hook);
    const blocks = group(here, ({ priority }) => priority).map((same) => {
      const nat = same.filter(({ natOrder }) => natOrder !== undefined);
      const others = same.filter(({ natOrder }) => natOrder === undefined);
      const ordered = group(nat, ({ natOrder = 0 }) => natOrder).flatMap((each) => join(byListing(each)));
      return join([...byListing(others), ...(ordered.length > 0 ? [ordered] : [])]);
    });
    return [hook, blocks.flat()] as const;
  });
  return Object.fromEntries(own) as unknown as { readonly [H in Hook]: Ordered };
}

/** Groups by a number, the lowest first. */
function group(visitors: readonly Visitor[], keyOf: (visitor: Visitor) => number): readonly (readonly Visitor[])[] {
  const keys = [...new Set(visitors.map(keyOf))].sort((a, b) => a - b);
  return keys.map((key) => visitors.filter((visitor) => keyOf(visitor) === key));
}

function byListing(visitors: readonly Visitor[]): readonly Ordered[] {
  const listings = [...new Set(visitors.map(({ listing }) => listing))];
  return listings.map((listing) =>
    visitors.filter((visitor) => visitor.listing === listing).toSorted((a, b) => b.place - a.place),
  );
}

/** Blocks of one priority: only a single one has a known order. */
function join(blocks: readonly Ordered[]): Ordered {
  const [only, ...others] = blocks;
  return others.length === 0 ? (only ?? []) : [blocks];
}

/** The visitors in one of the orders that are possible; both orders of two blocks are tried. */
export function* inOrder(flow: Flow, ordered: Ordered): Generator<Visitor> {
  for (const item of ordered) {
    if ('visit' in item) yield item;
    else yield* inAnyOrder(flow, item);
  }
}

function* inAnyOrder(flow: Flow, blocks: readonly Ordered[]): Generator<Visitor> {
  const left = [...blocks];
  while (left.length > 0) {
    const next = left.findIndex((block, at) => left.slice(at + 1).every((other) => isFirst(flow, block, other)));
    const [block = []] = left.splice(next < 0 ? left.length - 1 : next, 1);
    yield* inOrder(flow, block);
  }
}

function isFirst(flow: Flow, a: Ordered, b: Ordered): boolean {
  const chains = [nameOf(a), nameOf(b)] as const;
  return decide(flow, () => ({ kind: 'unknown-order', chains, fact: `order ${chains.join(', ')}` }));
}

function nameOf(ordered: Ordered): string {
  const [first] = ordered;
  return first === undefined ? '' : 'visit' in first ? first.name : nameOf(first[0] ?? []);
}
