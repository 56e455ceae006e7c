import type { Family, Protocol } from '../kernel/family.ts';
import type { TrafficPolicy } from '../cluster/plan-traffic.ts';
import type { PortAddress, PortFacts } from '../diff/port-facts.ts';

/** A Service port as a node's kernel shows it. What nothing in the kernel tells is left out. */
export interface DecompiledPort extends Omit<PortFacts, 'type' | 'endpoints'> {
  /** "namespace/name:port" where comments tell it, else "10.96.0.1:80/TCP" or "node port 30080/TCP". */
  readonly name: string;
  /** Undefined where nothing tells them, as in sets alone. */
  readonly endpoints: readonly DecompiledEndpoint[] | undefined;
  /** What becomes of traffic that no endpoint is chosen for. */
  readonly fallback?: 'no-endpoints' | 'local-drops' | 'local-to-all';
  readonly masquerade?: Masquerade;
}

/** Whose packets leave the node with the node's address for their source. */
export interface Masquerade {
  /** Of those to the cluster IP. */
  clusterIP?: MasqueradedClients;
  /** Of those to external addresses and the node port. */
  external?: MasqueradedClients;
}

export type MasqueradedClients =
  | { readonly kind: 'all' }
  /** `clients` is what pods are told by: a network, or "interface cni0". */
  | { readonly kind: 'all-but'; readonly clients: string }
  /** The node's own. */
  | { readonly kind: 'node' };

interface DecompiledEndpoint {
  /** "ip:port". */
  readonly endpoint: string;
  /** The policies whose traffic it takes, as far as the state tells them apart. */
  readonly takes: readonly TrafficPolicy[];
  /** Set of a real server of weight 0: it takes no new connections. */
  readonly draining?: true;
}

/** A Service port while the rules that tell of it are read. */
export interface PortDraft {
  name: string;
  readonly family: Family;
  protocol: Protocol;
  port: number | undefined;
  readonly addresses: Map<string, PortAddress>;
  nodePort: number | undefined;
  internalTrafficPolicy: TrafficPolicy | undefined;
  externalTrafficPolicy: TrafficPolicy | undefined;
  affinitySeconds: number | undefined;
  /** Whether packets from outside of the source ranges are dropped, though the ranges may not be shown. */
  hasFirewall: boolean;
  readonly sourceRanges: Set<string>;
  /** Nothing in nftables tells it. */
  healthCheckNodePort: number | undefined;
  /** What becomes of packets that no endpoint takes. */
  readonly refusals: Set<Refusal>;
  readonly masquerade: { [Path in keyof Masquerade]: MasqueradedClients };
  /** The policies whose traffic an endpoint takes, by "ip:port". */
  readonly endpoints: Map<string, Set<TrafficPolicy>>;
}

type Refusal = 'reject' | 'drop';

/** A draft of which nothing is known yet but its name. */
export function startDraft(name: string, family: Family, protocol: Protocol): PortDraft {
  return {
    name,
    family,
    protocol,
    port: undefined,
    addresses: new Map(),
    nodePort: undefined,
    internalTrafficPolicy: undefined,
    externalTrafficPolicy: undefined,
    affinitySeconds: undefined,
    hasFirewall: false,
    sourceRanges: new Set(),
    healthCheckNodePort: undefined,
    refusals: new Set(),
    masquerade: {},
    endpoints: new Map(),
  };
}

/** Adds an address; what one rule tells of its kind is kept where another does not tell it. */
export function addAddress({ addresses }: PortDraft, kind: PortAddress['kind'], address: string): void {
  const known = addresses.get(address);
  if (!known || known.kind === 'unknown') addresses.set(address, { kind, address });
}

/** Adds an endpoint that takes the traffic of a policy. */
export function addEndpoint({ endpoints }: PortDraft, endpoint: string, policy: TrafficPolicy): void {
  const takes = endpoints.get(endpoint);
  if (takes) takes.add(policy);
  else endpoints.set(endpoint, new Set([policy]));
}

/** What was read, as it is handed on. */
export function finishDraft(draft: PortDraft): DecompiledPort {
  const { addresses, endpoints, hasFirewall, sourceRanges, refusals, masquerade, ...rest } = draft;
  const fallback = refusals.has('drop') ? 'local-drops' : refusals.has('reject') ? 'no-endpoints' : undefined;
  return {
    ...rest,
    addresses: [...addresses.values()],
    sourceRanges: [...sourceRanges],
    ...(hasFirewall && sourceRanges.size === 0 ? { hidesSourceRanges: true } : {}),
    ...(fallback === undefined ? {} : { fallback }),
    ...(masquerade.clusterIP || masquerade.external ? { masquerade: sortPaths(masquerade) } : {}),
    scheduler: undefined,
    endpoints: [...endpoints].map(([endpoint, takes]): DecompiledEndpoint => ({ endpoint, takes: [...takes] })),
  };
}

/** The same however the rules are ordered. */
function sortPaths({ clusterIP, external }: Masquerade): Masquerade {
  return { ...(clusterIP ? { clusterIP } : {}), ...(external ? { external } : {}) };
}
