import type { ServiceInfo, ServicePort } from '../cluster/model.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import { factsOf, type PortAddress, type PortFacts } from '../diff/port-facts.ts';
import type { Family, Protocol } from '../kernel/family.ts';

/** A Service port as manifests or a node's kernel show it. What nothing in a kernel shows is undefined. */
export interface ShownPort extends Omit<PortFacts, 'type' | 'endpoints'> {
  /** "namespace/name:port" where comments have it, else "10.96.0.1:80/TCP" or "node port 30080/TCP". */
  readonly name: string;
  /** What becomes of traffic that no endpoint is chosen for. */
  readonly fallback?: 'no-endpoints' | 'local-drops' | 'local-to-all' | undefined;
  readonly masquerade?: Masquerade | undefined;
  /** Undefined if nothing shows them, as in sets alone. */
  readonly endpoints: readonly ShownEndpoint[] | undefined;
}

/** Whose packets leave the node with the node's address for their source. */
export interface Masquerade {
  /** Of those to the cluster IP. */
  clusterIP?: MasqueradedClients;
  /** Of those to external addresses and the node port. */
  external?: MasqueradedClients;
}

/** The clients whose packets are masqueraded. */
export type MasqueradedClients =
  | { readonly kind: 'all' }
  /** `clients` is how pods are recognised: by a network, or "interface cni0". */
  | { readonly kind: 'all-but'; readonly clients: string }
  /** The node's own. */
  | { readonly kind: 'node' };

interface ShownEndpoint {
  /** "ip:port". */
  readonly endpoint: string;
  /** The policies whose traffic it takes, as far as a kernel tells them apart. */
  readonly takes: readonly TrafficPolicy[];
  /** Set of a real server of weight 0: it takes no new connections. */
  readonly draining?: true | undefined;
}

/** A Service port of manifests. */
export function shownInManifests(port: ServicePort): ShownPort {
  const endpoints = port.endpoints.map(({ label }) => ({ endpoint: label, takes: [] }));
  return { ...factsOf(port, undefined), name: port.label, endpoints };
}

/** The ports of a Service that kube-proxy programs nothing for. A headless Service has endpoints without ports. */
export function shownWithoutPorts({
  namespace,
  name,
  skipped,
  ports,
  headlessEndpoints,
}: ServiceInfo): readonly ShownPort[] {
  if (skipped === undefined) return [];
  const own = ports.length > 0 ? ports : [{ name: '', port: undefined, protocol: 'TCP' as const }];
  return own.map(({ name: portName, port, protocol }) => {
    const draft = new PortDraft(`${namespace}/${name}${portName && ':'}${portName}`, 'ipv4', protocol);
    const endpoints = headlessEndpoints.map(({ address }) => ({ endpoint: address, takes: [] }));
    return { ...draft.finish(), port, endpoints };
  });
}

/** A Service port while what a kernel has of it is read. */
export class PortDraft {
  readonly name: string;
  readonly family: Family;
  protocol: Protocol;
  port: number | undefined;
  nodePort: number | undefined;
  internalTrafficPolicy: TrafficPolicy | undefined;
  externalTrafficPolicy: TrafficPolicy | undefined;
  affinitySeconds: number | undefined;
  /** Nothing in nftables shows it. */
  healthCheckNodePort: number | undefined;
  scheduler: string | undefined;
  readonly addresses = new Map<string, PortAddress>();
  /** Whether packets from outside of the source ranges are dropped, though the ranges may not be shown. */
  hasFirewall = false;
  readonly sourceRanges = new Set<string>();
  /** What becomes of packets that no endpoint takes. */
  readonly refusals = new Set<'reject' | 'drop'>();
  /** Whether those that no endpoint of the node takes go to all endpoints. */
  goesToAll = false;
  readonly masquerade: Masquerade = {};
  /** By "ip:port": the policies whose traffic an endpoint takes, and whether it takes no new connections. */
  readonly endpoints = new Map<string, { readonly takes: Set<TrafficPolicy>; readonly draining?: true | undefined }>();
  /** Whether all of its endpoints are shown. */
  showsEndpoints = false;

  constructor(name: string, family: Family, protocol: Protocol) {
    this.name = name;
    this.family = family;
    this.protocol = protocol;
  }

  /** Adds an address; what one rule shows of its kind is kept where another does not show it. */
  addAddress(kind: PortAddress['kind'], address: string, port: number | undefined): void {
    const known = this.addresses.get(address);
    if (!known || known.kind === 'unknown') this.addresses.set(address, { kind, address });
    this.port ??= port;
  }

  /** Adds an endpoint that takes the traffic of a policy. */
  addEndpoint(endpoint: string, policy: TrafficPolicy): void {
    const known = this.endpoints.get(endpoint);
    if (known) known.takes.add(policy);
    else this.endpoints.set(endpoint, { takes: new Set([policy]) });
  }

  hasClusterIP(): boolean {
    return [...this.addresses.values()].some(({ kind }) => kind === 'cluster-ip');
  }

  /** What was read, as it is handed on. */
  finish(): ShownPort {
    const {
      addresses,
      hasFirewall,
      sourceRanges,
      refusals,
      goesToAll,
      masquerade,
      endpoints,
      showsEndpoints,
      ...shown
    } = this;
    const refusal = refusals.has('drop') ? 'local-drops' : refusals.has('reject') ? 'no-endpoints' : undefined;
    const isRefused = refusal === 'no-endpoints' && endpoints.size === 0;
    const { clusterIP, external } = masquerade;
    return {
      ...shown,
      addresses: [...addresses.values()],
      sourceRanges: [...sourceRanges],
      hidesSourceRanges: hasFirewall && sourceRanges.size === 0 ? true : undefined,
      fallback: goesToAll ? 'local-to-all' : refusal,
      // The same however the rules are ordered.
      masquerade:
        clusterIP || external ? { ...(clusterIP && { clusterIP }), ...(external && { external }) } : undefined,
      endpoints:
        isRefused || showsEndpoints
          ? [...endpoints].map(([endpoint, { takes, draining }]) => ({ endpoint, takes: [...takes], draining }))
          : undefined,
    };
  }
}
