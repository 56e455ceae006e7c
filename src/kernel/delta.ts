import { partition } from './diff-by-key.ts';
import { splitSetsDelta } from './ipset/ipset.ts';
import { diffByKind, objectKinds, type ObjectKind } from './kinds.ts';
import { splitLinksDelta } from './link/link.ts';
import { splitNftDelta } from './nftables/nft-delta.ts';
import type { KernelState } from './state.ts';

/**
 * How to get from one state to another, by kind of object. Within a kind, the changes are in an order that works. Each kind has a
 * formatter (formatTablesDelta and so on) that writes the input of its tool.
 */
export type KernelDelta = { readonly [K in ObjectKind]: ReturnType<(typeof diffByKind)[K]> };

/** The same table, typed for lookup by a kind's name. */
const rows: { readonly [K in ObjectKind]: (from: KernelState[K], to: KernelState[K]) => KernelDelta[K] } = diffByKind;

/** The difference in meaning between two states. Ignores origins and the order of chains, sets and entries; the order of rules counts. */
export function diffStates(from: KernelState, to: KernelState): KernelDelta {
  const diff = <K extends ObjectKind>(kind: K): KernelDelta[K] => rows[kind](from[kind], to[kind]);
  return Object.fromEntries(objectKinds.map((kind) => [kind, diff(kind)])) as KernelDelta;
}

export function isEmptyDelta(delta: KernelDelta): boolean {
  return objectKinds.every((kind) => Object.keys(delta[kind] ?? {}).length === 0);
}

/** Whether `a` and `b` mean the same: see diffStates. */
export function equalStates(a: KernelState, b: KernelState): boolean {
  return isEmptyDelta(diffStates(a, b));
}

/**
 * For kinds whose objects come and go one by one, splits the changes into additions, and removals to make after them. Both together make
 * the whole change. iptables-restore changes a table at once, so rules that use a set are gone before the set is removed.
 */
export function splitDelta({ nftables, sets, virtualServers, links }: KernelDelta) {
  return {
    nftables: splitNftDelta(nftables),
    sets: splitSetsDelta(sets),
    virtualServers: partition(virtualServers, ({ to }) => to === undefined),
    links: splitLinksDelta(links),
  };
}
