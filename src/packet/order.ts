import { decide, type Flow } from './flow.ts';
import type { Decision } from './packet.ts';
import { hooks, type Hook } from './step.ts';
import type { Station } from './knowledge.ts';

/** Something that sees packets at a hook; lower priority goes first. */
export interface Visitor extends Station {
  /** Order among chains of type nat, all of which the kernel enters at one priority. */
  readonly natOrder?: number | undefined;
  /** Shown to users: "nftables firewall input". */
  readonly name: string;
  /** The listing that shows the order in which visitors of one priority were registered: a later one has a higher place. */
  readonly listing: string;
  readonly place: number;
  /** Whether a changed mark makes the kernel route the node's own packets again. */
  readonly reroutes: boolean;
  /** 'sent-on': IPVS sends the packet out, or keeps it because the real server is the node itself. */
  readonly visit: (flow: Flow) => Decision | 'sent-on';
}

/** Visitors in the order the kernel enters them, with blocks whose mutual order is unknown. */
export type Ordered = readonly (Visitor | readonly Ordered[])[];

/**
 * Orders visitors as the kernel does: by priority, and within one priority the latest registered first (nf_hook_entries_grow in
 * netfilter/core.c). The same goes for chains of type nat, which share one station.
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

/** Joins blocks of one priority. Only a single block has a known order. */
function join(blocks: readonly Ordered[]): Ordered {
  const [only, ...others] = blocks;
  return others.length === 0 ? (only ?? []) : [blocks];
}

/** The visitors in one possible order; for two blocks, both orders are tried. */
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
