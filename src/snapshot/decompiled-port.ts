import type { PortAddress, ServicePort, ShownPort } from '../cluster/model.ts';
import type { LocalTraffic } from '../cluster/local-traffic.ts';
import type { MasqueradedClients } from '../cluster/plan-masquerade.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import { formatSocketAddress, parseSocketAddress, type SocketAddress } from '../kernel/socket-address.ts';
import type { Address } from '../kernel/address.ts';
import type { Family, Protocol } from '../kernel/family.ts';

/** A Service port as a kernel has it, and what its objects do with packets to it. */
export interface DecompiledPort extends ShownPort {
  /** Undefined if nothing shows them, as in sets alone. */
  readonly endpoints: readonly DecompiledEndpoint[] | undefined;
  /** What becomes of traffic that no endpoint is chosen for. */
  readonly fallback: 'no-endpoints' | 'local-drops' | 'local-to-all' | undefined;
  readonly masquerade: Masquerade | undefined;
  /** In userspace mode, the port where kube-proxy itself takes connections. */
  readonly proxyPort: number | undefined;
}

/** The clients that endpoints see with the node's address. */
export interface Masquerade {
  /** Among clients of the cluster IP. */
  clusterIP?: MasqueradedClients;
  /** Among clients of external addresses and the node port. */
  external?: MasqueradedClients;
}

type DecompiledEndpoint = NonNullable<ShownPort['endpoints']>[number] & {
  /** The policies whose traffic it takes, as far as a kernel shows that. */
  readonly takes: readonly TrafficPolicy[];
  /** Set for a real server of weight 0, which takes no new connections. */
  readonly draining?: true | undefined;
};

/** What a rule that marks packets for masquerading asks of where they come from. */
export interface MarkedSource {
  readonly isFromNode: boolean;
  /** What it takes, or what it leaves out: one client, or the node's pods. */
  readonly sender?: { readonly isExcluded: boolean; readonly who: LocalTraffic } | undefined;
}

/** The clients that such a rule marks; undefined for a single client, as in an endpoint's chain. */
export function markedClients({ isFromNode, sender }: MarkedSource): MasqueradedClients | undefined {
  if (isFromNode) return { kind: 'node' };
  if (!sender) return { kind: 'all' };
  return sender.isExcluded ? { kind: 'all-but-pods', pods: sender.who } : undefined;
}

const serviceLabel = /^(?:([^/: ]+)\/)?([^/: ]+)(?::([^/: ]+))?$/;

/** The names in a label of kube-proxy's, which some tools print without the namespace. An address holds none. */
function readLabel(label: string): Pick<ShownPort, 'namespace' | 'service' | 'portName'> {
  const [, namespace, service, portName = ''] = serviceLabel.exec(label) ?? [];
  return { namespace, service, portName: service === undefined ? undefined : portName };
}

/** An endpoint by what a rule sends to, or by what a comment says that it does. */
export type DraftEndpoint = Pick<DecompiledEndpoint, 'label' | 'address' | 'port'>;

export function endpointAt(socket: SocketAddress): DraftEndpoint {
  return { label: formatSocketAddress(socket), ...socket };
}

/** The endpoint at an address, whatever its port. */
export function endpointOn(address: Address): DraftEndpoint {
  return { label: address.text, address, port: undefined };
}

/** The endpoint that a text names: "ip:port", unless names took the place of addresses before it was pasted. */
export function endpointNamed(label: string): DraftEndpoint {
  return { label, ...(parseSocketAddress(label) ?? { address: undefined, port: undefined }) };
}

/** A Service port while what a kernel has of it is read. */
export class PortDraft {
  readonly label: string;
  readonly family: Family;
  protocol: Protocol;
  port: number | undefined;
  nodePort: number | undefined;
  internalPolicyLocal: boolean | undefined;
  externalPolicyLocal: boolean | undefined;
  affinitySeconds: number | undefined;
  /** Whether there is some that is not shown. */
  hidesAffinity = false;
  /** Nothing in nftables shows it. */
  healthCheckNodePort: number | undefined;
  scheduler: string | undefined;
  /** By their texts. */
  readonly addresses = new Map<string, PortAddress>();
  /** Whether packets from outside of the source ranges are dropped, though the ranges may not be shown. */
  hasFirewall = false;
  readonly sourceRanges = new Set<string>();
  /** What becomes of packets that no endpoint takes. */
  readonly refusals = new Set<'reject' | 'drop'>();
  /** Whether those that no endpoint of the node takes go to all endpoints. */
  goesToAll = false;
  readonly masquerade: Masquerade = {};
  /** By their labels. */
  readonly endpoints = new Map<
    string,
    DraftEndpoint & { readonly takes: Set<TrafficPolicy>; readonly draining?: true | undefined }
  >();
  showsEndpoints = false;
  /** Whether there may be addresses besides those that are shown. */
  hidesAddresses = false;
  proxyPort: number | undefined;

  constructor(label: string, family: Family, protocol: Protocol) {
    this.label = label;
    this.family = family;
    this.protocol = protocol;
  }

  /** Adds an address; what one rule shows of its kind is kept where another does not show it. */
  addAddress(kind: PortAddress['kind'], address: Address, port: number | undefined): void {
    const known = this.addresses.get(address.text);
    if (!known || known.kind === 'unknown') this.addresses.set(address.text, { kind, address });
    this.port ??= port;
  }

  addEndpoint(endpoint: DraftEndpoint, policy: TrafficPolicy): void {
    const known = this.endpoints.get(endpoint.label);
    if (known) known.takes.add(policy);
    else this.endpoints.set(endpoint.label, { ...endpoint, takes: new Set([policy]) });
  }

  hasClusterIP(): boolean {
    return [...this.addresses.values()].some(({ kind }) => kind === 'cluster-ip');
  }

  finish(): DecompiledPort {
    const { label, family, protocol, port, nodePort, internalPolicyLocal, externalPolicyLocal } = this;
    const refusal = this.refusals.has('drop')
      ? 'local-drops'
      : this.refusals.has('reject')
        ? 'no-endpoints'
        : undefined;
    const isRefused = refusal === 'no-endpoints' && this.endpoints.size === 0;
    const endpoints =
      isRefused || this.showsEndpoints
        ? [...this.endpoints.values()].map((each) => ({ ...each, takes: [...each.takes], status: undefined }))
        : undefined;
    const { clusterIP, external } = this.masquerade;
    return {
      ...readLabel(label),
      label,
      family,
      protocol,
      port,
      nodePort,
      internalPolicyLocal,
      externalPolicyLocal,
      ...this.#addressesByKind(),
      hidesAddresses: this.hidesAddresses ? true : undefined,
      sourceRanges: this.sourceRanges.size > 0 ? [...this.sourceRanges].map((text) => ({ text })) : undefined,
      hidesSourceRanges: this.hasFirewall && this.sourceRanges.size === 0 ? true : undefined,
      // Rules show affinity only where they lead to endpoints.
      affinitySeconds:
        this.affinitySeconds ?? (endpoints && endpoints.length > 0 && !this.hidesAffinity ? 0 : undefined),
      healthCheckNodePort: this.healthCheckNodePort,
      scheduler: this.scheduler,
      forwarding: undefined,
      endpoints,
      proxyPort: this.proxyPort,
      fallback: this.goesToAll ? 'local-to-all' : refusal,
      // The same however the rules are ordered.
      masquerade:
        clusterIP || external ? { ...(clusterIP && { clusterIP }), ...(external && { external }) } : undefined,
    };
  }

  #addressesByKind(): Pick<ServicePort<undefined>, 'clusterIP' | 'externalIPs' | 'loadBalancerIPs' | 'otherIPs'> {
    const all = [...this.addresses.values()];
    const of = (wanted: PortAddress['kind']) => all.flatMap(({ kind, address }) => (kind === wanted ? [address] : []));
    // Services whose names were made the same may look like one with several cluster IPs.
    const [clusterIP, ...others] = of('cluster-ip');
    return {
      clusterIP,
      externalIPs: of('external-ip'),
      loadBalancerIPs: of('load-balancer-ip'),
      otherIPs: [...others, ...of('unknown')],
    };
  }
}
