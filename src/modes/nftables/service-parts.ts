import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import type { MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import type { Protocol } from '../../kernel/family.ts';
import type { Element } from '../../kernel/nftables/element.ts';
import type { NftChain, NftSet } from '../../kernel/nftables/table.ts';
import { type nftSets, nftPrefixes } from '../../kube-proxy/nft-names.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { hashName } from '../../base/hash-name.ts';
import type { TrafficPolicy } from '../../cluster/plan-traffic.ts';

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

/** The chains that a Service port may have, in use or not, those that spread packets over endpoints by their policy: see nftPrefixes. */
export type ServiceChainNames = { readonly [C in TrafficPolicy | 'external' | 'firewall']: string };

/** The chain that sends packets to an endpoint, and the set of the clients that it remembers. */
export interface EndpointNames {
  readonly chain: string;
  readonly affinitySet: string;
}

/** A prefix, a hash, and the Service port's namespace, name, protocol and port name (servicePortChainNameBase). */
export function serviceChainNames(port: ServicePort): ServiceChainNames {
  const base = hashAndTruncate(describePort(port));
  return {
    Cluster: nftPrefixes.cluster + base,
    Local: nftPrefixes.local + base,
    external: nftPrefixes.external + base,
    firewall: nftPrefixes.firewall + base,
  };
}

/** The same of one endpoint, with its address and port (servicePortEndpointChainNameBase): a name may have no colon. */
export function endpointNames(port: ServicePort, { address, port: number }: Endpoint): EndpointNames {
  const base = hashAndTruncate(`${describePort(port)}__${address.text.replaceAll(':', '.')}/${number}`);
  return { chain: nftPrefixes.endpoint + base, affinitySet: nftPrefixes.affinity + base };
}

function describePort({ namespace, service, protocol, portName }: ServicePort): string {
  return `${namespace}/${service}/${protocol.toLowerCase()}/${portName}`;
}

/** chainNameBaseLengthMax: what nft allows, less the longest prefix. */
const maxLength = 240;

/** The hash keeps names apart that are too long to be written whole. */
function hashAndTruncate(text: string): string {
  const name = `${hashName(text, 8)}-${text}`;
  return name.length > maxLength ? `${name.slice(0, maxLength - 3)}...` : name;
}
