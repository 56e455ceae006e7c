import { partition } from './diff-by-key.ts';
import { splitSetsDelta } from './ipset/ipset.ts';
import { diffByKind, objectKinds, type ObjectKind } from './kinds.ts';
import { splitLinksDelta } from './link/link.ts';
import { splitNftDelta } from './nftables/nft-delta.ts';
import type { KernelState } from './state.ts';

/**
 * How to get from one state to another, by kind of object. Within one kind the changes are in an order in which they
 * can be made; the formatter of each (formatTablesDelta and so on) writes the input of the tool that makes it.
 */
export type KernelDelta = { readonly [K in ObjectKind]: ReturnType<(typeof diffByKind)[K]> };

/** The same table, typed so that a row can be looked up by a kind's name. */
const rows: { readonly [K in ObjectKind]: (from: KernelState[K], to: KernelState[K]) => KernelDelta[K] } = diffByKind;

/**
 * The difference between two states, by meaning: neither origins nor the order of chains, sets and entries take part;
 * the order of rules does.
 */
export function diffStates(from: KernelState, to: KernelState): KernelDelta {
  const diff = <K extends ObjectKind>(kind: K): KernelDelta[K] => rows[kind](from[kind], to[kind]);
  return Object.fromEntries(objectKinds.map((kind) => [kind, diff(kind)])) as KernelDelta;
}

export function isEmptyDelta(delta: KernelDelta): boolean {
  return objectKinds.every((kind) => Object.keys(delta[kind] ?? {}).length === 0);
}

/** Whether `a` already means the same as `b`: see diffStates. */
export function equalStates(a: KernelState, b: KernelState): boolean {
  return isEmptyDelta(diffStates(a, b));
}

/**
 * Splits the kinds of which things come and go one by one into additions, and removals to make once all that is new
 * is there. Making both in turn makes all. iptables-restore changes a table at once, so the rules that use a set are
 * gone before the set goes.
 */
export function splitDelta({ nftables, sets, virtualServers, links }: KernelDelta) {
  return {
    nftables: splitNftDelta(nftables),
    sets: splitSetsDelta(sets),
    virtualServers: partition(virtualServers, ({ to }) => to === undefined),
    links: splitLinksDelta(links),
  };
}
