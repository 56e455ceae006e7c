import { groupBy } from '../cluster/grouping.ts';
import type { PortAddress, ServicePort, ShownPort } from '../cluster/model.ts';
import type { LocalTraffic, MasqueradedClients } from '../cluster/plan-masquerade.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import { formatSocketAddress, parseSocketAddress, type SocketAddress } from '../kernel/ports-and-marks.ts';
import { type Address, type Family, hostNetwork, type Protocol } from '../kernel/address.ts';
import type { Match } from '../kernel/nftables/table.ts';

export interface DecompiledPort extends ShownPort {
  /** The endpoints. Undefined if nothing shows them, for example because the dump has only sets. */
  readonly endpoints: readonly DecompiledEndpoint[] | undefined;
  readonly fallback: 'no-endpoints' | 'local-drops' | 'local-to-all' | undefined;
  readonly masquerade: Masquerade | undefined;
  /** Chains that packets reach but that no longer lead to an endpoint. */
  readonly endless: readonly EndlessChain[];
  readonly proxyPort: number | undefined;
}

/** A rule for session affinity. It sends the clients in a list to the chain of the endpoint that they used before. */
interface Lookup {
  readonly chain: string;
  readonly list: string;
  readonly seconds: number;
}

interface EndlessChain {
  readonly chain: string;
  readonly lacks: string | undefined;
}

/** Which clients' packets are masqueraded. Endpoints then see the node's address as the source. */
export interface Masquerade {
  clusterIP?: MasqueradedClients;
  external?: MasqueradedClients;
}

type DecompiledEndpoint = NonNullable<ShownPort['endpoints']>[number] & {
  readonly takes: readonly TrafficPolicy[];
  /** Set for a real server with weight 0, which gets no new connections. */
  readonly draining?: true | undefined;
  /** In IPVS mode: the addresses of the virtual servers that have this real server. `nodePortPlace` stands for those on the node port. */
  readonly at?: readonly string[] | undefined;
};

/** A range that limits clients. Only its text is known if a tool printed the range in another form than a network. */
export type SourceRange = NonNullable<ShownPort['sourceRanges']>[number];

/** Stands for the node port in a list of listening addresses. */
export const nodePortPlace = 'node';

/** Returns the clients whose packets a rule with these conditions marks. Undefined for a single client, as in an endpoint's chain. */
export function markedClients(conditions: Conditions): MasqueradedClients | undefined {
  const sender = sendersAsked(conditions)[0];
  if (!sender) return { kind: 'all' };
  if (sender.who === 'node') return { kind: 'node' };
  return sender.isExcluded ? { kind: 'all-but-pods', pods: sender.who } : undefined;
}

type Conditions = readonly (Match | { readonly kind: string })[];

/** Returns the senders that a rule matches or excludes: one client, the node's pods, or the node. */
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

/** Reads the names in a kube-proxy label. Some tools print it without the namespace. A label that is an address has no names. */
function readLabel(label: string): Pick<ShownPort, 'namespace' | 'service' | 'portName'> {
  const [, namespace, service, portName = ''] = serviceLabel.exec(label) ?? [];
  return { namespace, service, portName: service === undefined ? undefined : portName };
}

export type DraftEndpoint = Pick<DecompiledEndpoint, 'label' | 'address' | 'port'>;

export function endpointAt(socket: SocketAddress): DraftEndpoint {
  return { label: formatSocketAddress(socket), ...socket };
}

export function endpointOn(address: Address): DraftEndpoint {
  return { label: address.text, address, port: undefined };
}

/** Parses "ip:port". If someone replaced the address by a name before pasting, returns only the label. */
export function endpointNamed(label: string): DraftEndpoint {
  return { label, ...(parseSocketAddress(label) ?? { address: undefined, port: undefined }) };
}

export class PortDraft {
  readonly label: string;
  readonly family: Family;
  protocol: Protocol;
  port: number | undefined;
  nodePort: number | undefined;
  internalPolicyLocal: boolean | undefined;
  externalPolicyLocal: boolean | undefined;
  affinitySeconds: number | undefined;
  hidesAffinity = false;
  /** The health check node port. Undefined in nftables mode, which has no rule for it. */
  healthCheckNodePort: number | undefined;
  scheduler: string | undefined;
  readonly addresses = new Map<string, PortAddress>();
  /** Whether packets from outside the source ranges are dropped. This may be known even if the ranges are not shown. */
  hasFirewall = false;
  /** Whether the dump would show rules that drop packets. If it shows none, the source ranges restrict nothing. */
  showsFirewall = false;
  readonly sourceRanges = new Map<string, SourceRange>();
  readonly refusals = new Set<'reject' | 'drop'>();
  goesToAll = false;
  readonly masquerade: Masquerade = {};
  readonly endpoints = new Map<
    string,
    DraftEndpoint & Pick<DecompiledEndpoint, 'draining' | 'at'> & { readonly takes: Set<TrafficPolicy> }
  >();
  showsEndpoints = false;
  readonly endless = new Map<string, string | undefined>();
  hidesAddresses = false;
  proxyPort: number | undefined;

  constructor(label: string, family: Family, protocol: Protocol) {
    this.label = label;
    this.family = family;
    this.protocol = protocol;
  }

  /** Adds an address. If an earlier rule showed what kind of address it is, that kind stays. */
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

  /**
   * Notes how long a chain keeps session affinity, in seconds. The time is 0 unless each endpoint's clients are both written to a list and
   * looked up in that list. Keeps the shortest time, because a port has affinity only if all its chains give it. `drawn`: the endpoints'
   * chains that the chain chooses from at random. `writes`: whether a chain adds clients to a list, as far as the dump shows.
   */
  noteAffinity(
    drawn: readonly string[],
    lookups: readonly Lookup[],
    writes: (chain: string, list: string) => boolean,
  ): void {
    const byChain = groupBy(lookups, ({ chain }) => chain);
    const kept = drawn.map((name) => byChain.get(name)?.find(({ list }) => writes(name, list))?.seconds ?? 0);
    const seconds = kept.length === 0 ? 0 : kept.reduce((least, each) => Math.min(least, each));
    this.affinitySeconds = Math.min(this.affinitySeconds ?? seconds, seconds);
  }

  /**
   * Records that a chain for external clients does not lead to the chain for policy Local. On a node without endpoints this is normal,
   * because kube-proxy drops the clients' packets there.
   */
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
    // kube-proxy drops packets for lack of a local endpoint only if other nodes have endpoints. No rule shows those.
    const areShown =
      this.endpoints.size > 0 || refusal === undefined ? this.showsEndpoints : refusal === 'no-endpoints';
    const endpoints = areShown
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
      // Rules show session affinity only if they lead to endpoints.
      affinitySeconds:
        this.affinitySeconds ?? (endpoints && endpoints.length > 0 && !this.hidesAffinity ? 0 : undefined),
      healthCheckNodePort: this.healthCheckNodePort,
      scheduler: this.scheduler,
      forwarding: undefined,
      endpoints,
      endless: Array.from(this.endless, ([chain, lacks]) => ({ chain, lacks })),
      proxyPort: this.proxyPort,
      fallback: this.goesToAll ? 'local-to-all' : refusal,
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
    // Anonymised Services with the same name look like one Service with several cluster IPs.
    const [clusterIP, ...others] = of('cluster-ip');
    return {
      clusterIP,
      externalIPs: of('external-ip'),
      loadBalancerIPs: of('load-balancer-ip'),
      otherIPs: [...others, ...of('unknown')],
    };
  }
}
