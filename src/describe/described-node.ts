import type { Cluster } from '../cluster/model.ts';
import type { Owners } from '../diff/changes/owners.ts';
import type { SideServices } from '../diff/compared-side.ts';
import type { Family } from '../kernel/family.ts';
import type { KernelState } from '../kernel/state.ts';
import type { ShownPort } from './shown-port.ts';
import type { AddressObjects } from './find-ports.ts';

/** What is looked at: Services, and the state that one node has of them. */
export interface View {
  readonly state: KernelState;
  readonly families: readonly Family[];
  readonly owners: Owners;
  readonly services: SideServices;
  /** Of manifests only: what says whose an address is that the node does not serve. */
  readonly objects?: AddressObjects | undefined;
  /** What the state shows of a Service port. */
  readonly shownOf: (label: string, family: Family) => ShownPort | undefined;
  /** What kube-proxy would program on the same node for other Services. */
  readonly compile: (cluster: Cluster) => KernelState;
}
