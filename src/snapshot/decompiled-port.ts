import type { PortAddress, ServicePort, ShownPort } from '../cluster/model.ts';
import type { LocalTraffic, MasqueradedClients } from '../cluster/plan-masquerade.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import { formatSocketAddress, parseSocketAddress, type SocketAddress } from '../kernel/ports-and-marks.ts';
import { hostNetwork, type Address } from '../kernel/address.ts';
import type { Family, Protocol } from '../kernel/family.ts';
import type { Match } from '../kernel/nftables/table.ts';

/** A Service port as read from a kernel, with the treatment of its packets. */
export interface DecompiledPort extends ShownPort {
  /** Undefined if nothing shows them, for example if there are only sets. */
  readonly endpoints: readonly DecompiledEndpoint[] | undefined;
  readonly fallback: 'no-endpoints' | 'local-drops' | 'local-to-all' | undefined;
  readonly masquerade: Masquerade | undefined;
  /** Its chains that packets come to, and whose way on to endpoints was removed. */
  readonly endless: readonly EndlessChain[];
  /** In userspace mode, the port where kube-proxy itself accepts connections. */
  readonly proxyPort: number | undefined;
}

interface EndlessChain {
  readonly chain: string;
  /** The endpoint or chain that it should lead to; undefined for any endpoint. */
  readonly lacks: string | undefined;
}

/** Clients whose packets endpoints see under the node's address. */
export interface Masquerade {
  /** Among clients of the cluster IP. */
  clusterIP?: MasqueradedClients;
  /** Among clients of external addresses and the node port. */
  external?: MasqueradedClients;
}

type DecompiledEndpoint = NonNullable<ShownPort['endpoints']>[number] & {
  /** The policies whose traffic it takes, as far as a kernel shows that. */
  readonly takes: readonly TrafficPolicy[];
  /** Set for a real server with weight 0, which takes no new connections. */
  readonly draining?: true | undefined;
  /** Where its virtual servers listen, in IPVS mode: addresses, and `nodePortPlace`. */
  readonly at?: readonly string[] | undefined;
};

/** A range that a tool prints as no network has only its text. */
export type SourceRange = NonNullable<ShownPort['sourceRanges']>[number];

/** Stands for a node port among the places where a Service port listens. */
export const nodePortPlace = 'node port';

/** The clients that a rule with these conditions marks; undefined for a single client, as in an endpoint's chain. */
export function markedClients(conditions: Conditions): MasqueradedClients | undefined {
  const sender = sendersAsked(conditions)[0];
  if (!sender) return { kind: 'all' };
  if (sender.who === 'node') return { kind: 'node' };
  return sender.isExcluded ? { kind: 'all-but-pods', pods: sender.who } : undefined;
}

type Conditions = readonly (Match | { readonly kind: string })[];

/** The senders that a rule matches or excludes: one client, or the node's pods. */
export function sendersAsked(conditions: Conditions) {
  return conditions.flatMap((each) => {
    const match = each.kind === 'match' && 'left' in each ? each : undefined;
    const who = match && whoIsAsked(match);
    return who ? [{ who, isExcluded: match.operator === '!=' }] : [];
  });
}

function whoIsAsked({ left: [field], right }: Match): LocalTraffic | 'node' | undefined {
  if (field?.name.startsWith('fib saddr')) return 'node';
  const value = 'set' in right ? undefined : right.elements[0]?.key[0];
  if (field?.name.endsWith(' saddr') && value?.kind === 'network')
    return { kind: 'from-network', network: value.network };
  if (field?.name.endsWith(' saddr') && value?.kind === 'address')
    return { kind: 'from-network', network: hostNetwork(value.address) };
  if (field?.name !== 'iifname' || value?.kind !== 'word') return undefined;
  const { text: name } = value;
  return name.endsWith('*') ? { kind: 'from-interfaces', prefix: name.slice(0, -1) } : { kind: 'from-interface', name };
}

const serviceLabel = /^(?:([^/: ]+)\/)?([^/: ]+)(?::([^/: ]+))?$/;

/** The names in a kube-proxy label, which some tools print without the namespace. A label that is an address has no names. */
function readLabel(label: string): Pick<ShownPort, 'namespace' | 'service' | 'portName'> {
  const [, namespace, service, portName = ''] = serviceLabel.exec(label) ?? [];
  return { namespace, service, portName: service === undefined ? undefined : portName };
}

/** From a rule's target or a comment. */
export type DraftEndpoint = Pick<DecompiledEndpoint, 'label' | 'address' | 'port'>;

export function endpointAt(socket: SocketAddress): DraftEndpoint {
  return { label: formatSocketAddress(socket), ...socket };
}

/** On any port. */
export function endpointOn(address: Address): DraftEndpoint {
  return { label: address.text, address, port: undefined };
}

/** From "ip:port", unless names replaced addresses before pasting. */
export function endpointNamed(label: string): DraftEndpoint {
  return { label, ...(parseSocketAddress(label) ?? { address: undefined, port: undefined }) };
}

/** A Service port under construction. */
export class PortDraft {
  readonly label: string;
  readonly family: Family;
  protocol: Protocol;
  port: number | undefined;
  nodePort: number | undefined;
  internalPolicyLocal: boolean | undefined;
  externalPolicyLocal: boolean | undefined;
  affinitySeconds: number | undefined;
  /** Whether the port has affinity that the state hides. */
  hidesAffinity = false;
  /** Not shown in nftables. */
  healthCheckNodePort: number | undefined;
  scheduler: string | undefined;
  /** By their texts. */
  readonly addresses = new Map<string, PortAddress>();
  /** Whether packets from outside the source ranges are dropped, even if the ranges are not shown. */
  hasFirewall = false;
  /** Whether a missing rule that drops them means that they pass. */
  showsFirewall = false;
  /** By their texts. */
  readonly sourceRanges = new Map<string, SourceRange>();
  readonly refusals = new Set<'reject' | 'drop'>();
  /** Whether packets without an endpoint on the node go to all endpoints. */
  goesToAll = false;
  readonly masquerade: Masquerade = {};
  /** By their labels. */
  readonly endpoints = new Map<
    string,
    DraftEndpoint & Pick<DecompiledEndpoint, 'draining' | 'at'> & { readonly takes: Set<TrafficPolicy> }
  >();
  showsEndpoints = false;
  /** With the endpoint or chain that each should lead to. */
  readonly endless = new Map<string, string | undefined>();
  hidesAddresses = false;
  proxyPort: number | undefined;

  constructor(label: string, family: Family, protocol: Protocol) {
    this.label = label;
    this.family = family;
    this.protocol = protocol;
  }

  /** Later rules do not change the kind that a rule has shown. */
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

  /** The chain for external clients under policy Local. Where no endpoint is on the node, kube-proxy drops their packets instead. */
  lackLocal(chain: string, local: string): void {
    if (!this.refusals.has('drop')) this.endless.set(chain, local);
  }

  admit(range: SourceRange): void {
    this.sourceRanges.set(range.text, range);
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
      sourceRanges: this.#enforcedRanges(),
      hidesSourceRanges: this.hasFirewall && this.sourceRanges.size === 0 ? true : undefined,
      // Rules show affinity only if they lead to endpoints.
      affinitySeconds:
        this.affinitySeconds ?? (endpoints && endpoints.length > 0 && !this.hidesAffinity ? 0 : undefined),
      healthCheckNodePort: this.healthCheckNodePort,
      scheduler: this.scheduler,
      forwarding: undefined,
      endpoints,
      endless: Array.from(this.endless, ([chain, lacks]) => ({ chain, lacks })),
      proxyPort: this.proxyPort,
      fallback: this.goesToAll ? 'local-to-all' : refusal,
      // Independent of the order of rules.
      masquerade:
        clusterIP || external ? { ...(clusterIP && { clusterIP }), ...(external && { external }) } : undefined,
    };
  }

  #enforcedRanges(): DecompiledPort['sourceRanges'] {
    if (this.sourceRanges.size === 0) return undefined;
    return this.hasFirewall || !this.showsFirewall ? [...this.sourceRanges.values()] : [];
  }

  #addressesByKind(): Pick<ServicePort<undefined>, 'clusterIP' | 'externalIPs' | 'loadBalancerIPs' | 'otherIPs'> {
    const all = [...this.addresses.values()];
    const of = (wanted: PortAddress['kind']) => all.flatMap(({ kind, address }) => (kind === wanted ? [address] : []));
    // Anonymised Services with the same name may look like one Service with several cluster IPs.
    const [clusterIP, ...others] = of('cluster-ip');
    return {
      clusterIP,
      externalIPs: of('external-ip'),
      loadBalancerIPs: of('load-balancer-ip'),
      otherIPs: [...others, ...of('unknown')],
    };
  }
}
