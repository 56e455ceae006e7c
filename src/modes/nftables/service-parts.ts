import type { Endpoint } from '../../cluster/model.ts';
import type { MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import type { Protocol } from '../../kernel/family.ts';
import type { Element } from '../../kernel/nftables/element.ts';
import type { NftChain, NftSet } from '../../kernel/nftables/table.ts';
import type { nftSets } from '../../kube-proxy/nftables.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import type { EndpointNames } from './chain-names.ts';

/** What the chains of all Service ports of one family depend on besides the ports. */
export interface ServiceContext {
  readonly masquerade: MasqueradePlan;
  /** Whether a firewall's source ranges hold the node's own address. */
  readonly nodeIsAdmitted: boolean;
  /** The protocols whose node ports are rejected on localhost. */
  readonly rejectedOnLocalhost: readonly Protocol[];
  readonly behaviours: Behaviours;
}

/** Which of a table's sets and maps an element is put into. */
export type ElementSet = Exclude<(typeof nftSets)[keyof typeof nftSets], typeof nftSets.nodePortIPs>;

/** An element of one of the sets and maps that all Service ports share. */
export interface PlacedElement {
  readonly set: ElementSet;
  readonly element: Element;
}

/** All that a table holds for one Service port. */
export interface ServiceObjects {
  readonly chains: readonly NftChain[];
  /** The clients of each endpoint, with session affinity. */
  readonly sets: readonly NftSet[];
  /** Of those with the same set and key, the last counts. */
  readonly elements: readonly PlacedElement[];
}

/** An endpoint that has a chain of its own, with the names of this and of its set of clients. */
export interface ChainedEndpoint extends EndpointNames {
  readonly endpoint: Endpoint;
}
