import { kinds, mapKinds, objectKinds, type Kind, type ObjectKind } from './kinds.ts';
import type { KernelState } from './state.ts';

type DeltaOf<K extends ObjectKind> = ReturnType<(typeof kinds)[K]['diff']>;

/**
 * How to get from one state to another, by kind of object. Within one kind the changes are in an order in which they
 * can be made; the formatter of each (formatTablesDelta and so on) writes the input of the tool that makes it.
 */
export type KernelDelta = { readonly [K in ObjectKind]: DeltaOf<K> };

/** The table of kinds, typed so that any kind's name finds its row. */
const rows: { readonly [K in ObjectKind]: Kind<KernelState[K], KernelDelta[K]> } = kinds;

/**
 * The difference between two states, by meaning: neither origins nor the order of chains, sets and entries take part;
 * the order of rules does.
 */
export function diffStates(from: KernelState, to: KernelState): KernelDelta {
  return mapKinds<KernelDelta>((kind) => rows[kind].diff(from[kind], to[kind]));
}

/** Whether there is nothing to change. */
export function isEmptyDelta(delta: KernelDelta): boolean {
  const isEmpty = <K extends ObjectKind>(kind: K): boolean => rows[kind].isEmpty(delta[kind]);
  return objectKinds.every((kind) => isEmpty(kind));
}

/** Whether `a` already means the same as `b`: see diffStates. */
export function equalStates(a: KernelState, b: KernelState): boolean {
  return isEmptyDelta(diffStates(a, b));
}

/**
 * Splits the delta in two: additions, and removals to make once everything new is there. Making both in turn
 * makes all of the delta.
 */
export function splitDelta(delta: KernelDelta): { readonly additions: KernelDelta; readonly removals: KernelDelta } {
  return {
    additions: mapKinds<KernelDelta>((kind) => rows[kind].split(delta[kind]).additions),
    removals: mapKinds<KernelDelta>((kind) => rows[kind].split(delta[kind]).removals),
  };
}
