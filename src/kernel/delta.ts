import type { Kind, ObjectKind } from './kinds.ts';
import { kinds, objectKinds } from './kinds.ts';
import type { KernelState } from './state.ts';

type DeltaOf<K extends ObjectKind> = ReturnType<(typeof kinds)[K]['diff']>;

/**
 * How to get from one state to another, by kind of object. Within one kind the changes are in an order in which they
 * can be made; each has its formatter (formatTablesDelta and so on), which writes the input of the tool that makes it.
 */
export type KernelDelta = { readonly [K in ObjectKind]: DeltaOf<K> };

type AnyKinds = { readonly [K in ObjectKind]: Kind<KernelState[K], KernelDelta[K]> };

/** A value for each kind of objects. */
function mapKinds<Values extends { readonly [K in ObjectKind]: unknown }>(
  make: <K extends ObjectKind>(kind: AnyKinds[K], name: K) => Values[K],
): Values {
  const rows: AnyKinds = kinds;
  return Object.fromEntries(objectKinds.map((name) => [name, make(rows[name], name)])) as Values;
}

/**
 * The difference between two states, by meaning: neither origins nor the order of chains, sets and entries take part;
 * the order of rules does.
 */
export function diffStates(from: KernelState, to: KernelState): KernelDelta {
  return mapKinds<KernelDelta>((kind, name) => kind.diff(from[name], to[name]));
}

/** Whether there is nothing to change. */
export function isEmptyDelta(delta: KernelDelta): boolean {
  const rows: AnyKinds = kinds;
  const isEmpty = <K extends ObjectKind>(name: K): boolean => rows[name].isEmpty(delta[name]);
  return objectKinds.every((name) => isEmpty(name));
}

/** Whether nothing is to be changed in `a` to make it mean the same as `b`: see diffStates. */
export function equalStates(a: KernelState, b: KernelState): boolean {
  return isEmptyDelta(diffStates(a, b));
}

/** The state after the changes. */
export function applyDelta(state: KernelState, delta: KernelDelta): KernelState {
  return mapKinds<KernelState>((kind, name) => kind.apply(state[name], delta[name]));
}

/**
 * The delta in two: what is made before anything goes, and what goes once everything new is there. Applying both, one
 * after the other, is applying the delta.
 */
export function splitDelta(delta: KernelDelta): { readonly additions: KernelDelta; readonly removals: KernelDelta } {
  return {
    additions: mapKinds<KernelDelta>((kind, name) => kind.split(delta[name]).additions),
    removals: mapKinds<KernelDelta>((kind, name) => kind.split(delta[name]).removals),
  };
}
