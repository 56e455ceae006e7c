import { partition, type Split } from './diff-by-key.ts';
import { diffSets, splitSetsDelta } from './ipset/ipset.ts';
import { diffFamilyTables } from './iptables/iptables-delta.ts';
import { diffTimeouts, diffVirtualServers } from './ipvs/ipvs-delta.ts';
import { diffLinks, splitLinksDelta } from './link/link.ts';
import { diffModules } from './modules.ts';
import { diffNftTables, splitNftDelta } from './nftables/nft-delta.ts';
import type { KernelState } from './state.ts';
import { diffSysctls } from './sysctl.ts';

/** A kind of kernel object, named after the field of a state that holds such objects. */
export type ObjectKind = keyof KernelState;

/** What can be done with the objects of one kind. */
export interface Kind<State, Delta> {
  /** How to get from one to the other, in an order in which the changes can be made. */
  diff(from: State, to: State): Delta;
  isEmpty(delta: Delta): boolean;
  /** Splits a delta: additions, and removals to make once everything new is there. */
  split(delta: Delta): { readonly additions: Delta; readonly removals: Delta };
}

/**
 * All kinds of objects, in the order in which they are added on a node: an object comes after those that it uses. Removal
 * takes the reverse order. Each kind has its own files beside this one: types, formatter and parser, and diff.
 */
export const kinds = {
  modules: listKind(diffModules, (changes) => partition(changes, ({ change }) => change === 'removed')),
  sysctls: listKind(diffSysctls, (changes) => partition(changes, ({ to }) => to === undefined)),
  ipvsTimeouts: {
    diff: diffTimeouts,
    isEmpty: (change) => change === undefined,
    split: (change) => ({ additions: change, removals: undefined }),
  } satisfies Kind<KernelState['ipvsTimeouts'], ReturnType<typeof diffTimeouts>>,
  // A table takes over from rules and virtual servers of other modes, or gives way to them: it is there before these.
  nftables: listKind(diffNftTables, splitNftDelta),
  sets: listKind(diffSets, splitSetsDelta),
  iptables: {
    diff: diffFamilyTables,
    isEmpty: (delta) => Object.values(delta).every((tables) => tables.length === 0),
    // iptables-restore changes a table at once. So the rules of a set are gone before the set goes.
    split: (delta) => ({ additions: delta, removals: {} }),
  } satisfies Kind<KernelState['iptables'], ReturnType<typeof diffFamilyTables>>,
  virtualServers: listKind(diffVirtualServers, (changes) => partition(changes, ({ to }) => to === undefined)),
  links: listKind(diffLinks, splitLinksDelta),
} as const satisfies { readonly [K in ObjectKind]: Kind<KernelState[K], unknown> };

/** All kinds, in the order in which kpc-apply adds their objects. */
export const objectKinds = Object.keys(kinds) as readonly ObjectKind[];

/** A value for each kind. */
export function mapKinds<Values extends { readonly [K in ObjectKind]: unknown }>(
  make: <K extends ObjectKind>(kind: K) => Values[K],
): Values {
  return Object.fromEntries(objectKinds.map((kind) => [kind, make(kind)])) as Values;
}

/** A kind whose delta is a list of changes. */
function listKind<State, Change>(
  diff: (from: State, to: State) => readonly Change[],
  split: (changes: readonly Change[]) => Split<Change>,
): Kind<State, readonly Change[]> {
  return { diff, isEmpty: (changes) => changes.length === 0, split };
}
