import type { AssignedService } from '../cluster/assign-addresses.ts';
import type { Cluster, NodeContext } from '../cluster/model.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { TrackedFlow } from '../kernel/conntrack.ts';
import type { Family } from '../kernel/family.ts';
import type { KernelState } from '../kernel/state.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import type { Coverage } from './coverage.ts';
import type { Doubt } from './dump.ts';
import type { ProxyLog } from './kube-proxy-log.ts';

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
  /** The flows that a dump lists, if it lists any. */
  readonly flows?: readonly TrackedFlow[] | undefined;
  /** What a log of kube-proxy in a dump says. */
  readonly log?: ProxyLog | undefined;
  /** Undefined for a dump: it does not show which Services it came from. */
  readonly services: SideServices | undefined;
}

/** What a side was compiled from. */
export interface SideServices {
  readonly cluster: Cluster;
  readonly node: NodeContext;
  readonly settings: ProxySettings;
  readonly assumed: AssumedValues;
  /** Flags for what the other side of a comparison decided, with their values: with them, this side comes out alone. */
  readonly taken?: Readonly<Record<string, string>> | undefined;
}

/** What kpc chose, since nothing in the input says it. */
interface AssumedValues {
  readonly services: readonly AssignedService[];
  /** The addresses of Pods that no input holds. */
  readonly pods: ReadonlySet<string>;
  readonly node: boolean;
  readonly mode?: boolean;
}

/** Whether nft lists the chains of iptables mode, of which iptables-save alone names the Services. */
export function showsIptablesAsNft({ doubts }: Side): boolean {
  return doubts.some(
    (doubt) =>
      doubt.kind === 'other-table' && doubt.tables?.some(({ chains }) => chains.has(baseChains.services)) === true,
  );
}
