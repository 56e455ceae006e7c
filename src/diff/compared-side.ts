import type { AssignedService } from '../cluster/assign-addresses.ts';
import type { Cluster, NodeContext } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { Family } from '../kernel/family.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Coverage } from '../dumps/coverage.ts';
import type { Doubt } from '../dumps/dump.ts';

/** One side of a comparison: a state, what it is known to hold, and the Services it was compiled from where known. */
export interface Side {
  readonly kind: 'manifests' | 'bundle' | 'dump';
  /** What the user called it: a path, or "-". */
  readonly name: string;
  readonly state: KernelState;
  /** A state whose origins show what the items of `state` are there for; undefined if none does. */
  readonly labels: KernelState | undefined;
  readonly coverage: Coverage;
  /** The families that it was compiled for; both for a dump. */
  readonly families: readonly Family[];
  /** Files of a dump that may have held more than was read. */
  readonly doubts: readonly Doubt[];
  /** Undefined for a dump: it does not show which Services it came from. */
  readonly services: SideServices | undefined;
}

/** What a side was compiled from. */
export interface SideServices {
  readonly cluster: Cluster;
  readonly node: NodeContext;
  readonly settings: ProxySettings;
  readonly assumed: AssumedValues;
}

/** What kpc chose, since nothing in the input says it. */
interface AssumedValues {
  readonly services: readonly AssignedService[];
  /** The addresses of Pods that no input holds. */
  readonly pods: ReadonlySet<string>;
  readonly node: boolean;
}
