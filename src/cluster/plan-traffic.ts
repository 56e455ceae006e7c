import { type Address, contains, type Network, type Protocol } from '../kernel/address.ts';
import type { Origin, Place } from '../kernel/place.ts';
import { chooseEndpoints, isExternallyAccessible, runsOnNode, type EndpointChoice } from './endpoint-choice.ts';
import type { Endpoint, NodeIdentity, ServicePort, ShownPort } from './model.ts';

/**
 * The destinations of packets to a Service port on one node, as kube-proxy's proxiers decide them at the start of each Service port
 * (syncProxyRules). Each mode turns a plan into rules and documents its own deviations. A plan depends only on the port and the node's
 * identity, so that nodes can share it (PlanMemo).
 */
export interface TrafficPlan {
  readonly port: ServicePort;
  /** Whether any node has a usable endpoint. If not, all packets to the port are refused. */
  readonly hasEndpoints: boolean;

  readonly clusterIP: ServiceAddress;
  readonly externalIPs: readonly ServiceAddress[];
  readonly loadBalancerIPs: readonly ServiceAddress[];
  readonly nodePort: Omit<ServiceAddress, 'address'> | undefined;
  /**
   * The TCP port where kube-proxy tells load balancers whether the node has endpoints. kube-proxy listens on this port even if there are no
   * endpoints.
   */
  readonly healthCheck: Pick<ServiceAddress, 'port' | 'origin'> | undefined;

  readonly internal: TrafficPath;
  /**
   * Policy Cluster masquerades packets from outside, because an endpoint on another node would answer directly. Policy Local keeps the
   * client's address, while the node and its pods use the Cluster endpoints, as if they went through a load balancer outside.
   */
  readonly external: TrafficPath & {
    /** Whether the path exists. Even a path that refuses packets has the short cut for the node and its Pods. */
    readonly isUsed: boolean;
  };
  /** The clients that may use the load balancer IPs; undefined if everyone may. */
  readonly firewall: Firewall | undefined;

  readonly clusterEndpoints: readonly Endpoint[];
  readonly localEndpoints: readonly Endpoint[];
  readonly reachable: readonly Endpoint[];
  readonly onNode: readonly Endpoint[];
  /**
   * Reachable endpoints on the node. An endpoint's packets to itself must be masqueraded, because their source and destination would be the
   * same.
   */
  readonly hairpin: readonly Endpoint[];
  /** How many seconds a client keeps its endpoint after its last connection; undefined without session affinity. */
  readonly affinitySeconds: number | undefined;
}

export interface ServiceAddress {
  readonly address: Address;
  readonly protocol: Protocol;
  readonly port: number;
  readonly origin: Origin;
}

export interface TrafficPath {
  readonly policy: TrafficPolicy;
  /** Undefined if the node has endpoints for the packets. */
  readonly refusal: Refusal | undefined;
}

/** Cluster: endpoints on all nodes. Local: endpoints on this node (internalTrafficPolicy, externalTrafficPolicy). */
export type TrafficPolicy = 'Cluster' | 'Local';

/** The reason why packets reach no endpoint, and the answer that the sender gets. */
type Refusal =
  | { readonly reason: 'no-endpoints'; readonly answer: 'reject' }
  /** Another node may have endpoints, so the client should try again. A reject would tell the client that nothing listens. */
  | { readonly reason: 'no-local-endpoints'; readonly answer: 'drop' };

/** The source ranges of a load balancer's addresses, even if the port has no endpoints. */
export interface Firewall {
  readonly guarded: readonly ServiceAddress[];
  readonly sourceRanges: readonly { readonly network: Network; readonly origin: Origin }[];
}

export function planTraffic(port: ServicePort, node: NodeIdentity): TrafficPlan {
  const choice = chooseEndpoints(port, node);
  const loadBalancerIPs = port.loadBalancerIPs.map((address, index) =>
    serviceAddress(port, address, port.places?.ingress(index)),
  );
  const onNode = port.endpoints.filter((endpoint) => runsOnNode(endpoint, node));
  return {
    port,
    hasEndpoints: choice.hasAny,
    clusterIP: serviceAddress(port, port.clusterIP, port.places?.clusterIP),
    externalIPs: port.externalIPs.map((address, index) =>
      serviceAddress(port, address, port.places?.externalIP(index)),
    ),
    loadBalancerIPs,
    nodePort: planNodePort(port),
    healthCheck: planHealthCheck(port),
    internal: {
      policy: policyOf(port.internalPolicyLocal),
      refusal: planRefusal(choice, port.internalPolicyLocal),
    },
    external: {
      policy: policyOf(port.externalPolicyLocal),
      refusal: planRefusal(choice, port.externalPolicyLocal),
      isUsed: choice.hasAny && isExternallyAccessible(port),
    },
    firewall: planFirewall(port, loadBalancerIPs),
    clusterEndpoints: choice.cluster,
    localEndpoints: choice.local,
    reachable: choice.reachable,
    onNode,
    hairpin: choice.reachable === port.endpoints ? onNode : intersect(onNode, choice.reachable),
    affinitySeconds: port.affinitySeconds || undefined,
  };
}

/**
 * Returns the same text for nodes that are alike for a Service port. The text says for each list whether it has all endpoints, and of which
 * kinds.
 */
export function endpointClass(
  { port, clusterEndpoints, localEndpoints, onNode }: TrafficPlan,
  kindOf: (endpoint: Endpoint) => string = statusOf,
): string {
  return [clusterEndpoints, localEndpoints, onNode]
    .map((list) => [list.length === port.endpoints.length, ...[...new Set(list.map(kindOf))].toSorted()].join())
    .join(' ');
}

export function statusOf({ status: { ready, serving, terminating } }: Endpoint): string {
  return `${ready} ${serving} ${terminating}`;
}

/** Reports whether the node itself may use the guarded addresses, because a source range contains its address. */
export function admitsNode({ sourceRanges }: Firewall, nodeIP: Address): boolean {
  return sourceRanges.some(({ network }) => contains(network, nodeIP));
}

/**
 * Returns the source ranges and, if the node is admitted, the guarded addresses, because the node's own packets to a guarded address have
 * this address as their source.
 */
export function admittedSources(firewall: Firewall, nodeIsAdmitted: boolean) {
  const ranges = firewall.sourceRanges.map(({ network, origin }) => ({ source: network, origin }));
  if (!nodeIsAdmitted) return ranges;
  return [...ranges, ...firewall.guarded.map(({ address, origin }) => ({ source: address, origin }))];
}

export function originOf({ label }: Pick<ServicePort, 'label'>, place: Place | undefined): Origin {
  return { servicePort: label, place };
}

function serviceAddress(port: ServicePort, address: Address, place: Place | undefined): ServiceAddress {
  return { address, protocol: port.protocol, port: port.port, origin: originOf(port, place) };
}

function planNodePort(port: ServicePort): TrafficPlan['nodePort'] {
  if (port.nodePort === 0) return undefined;
  return { protocol: port.protocol, port: port.nodePort, origin: originOf(port, port.places?.nodePort) };
}

function planHealthCheck(port: ServicePort): TrafficPlan['healthCheck'] {
  if (port.healthCheckNodePort === 0) return undefined;
  return { port: port.healthCheckNodePort, origin: originOf(port, port.places?.port) };
}

const noEndpoints: Refusal = { reason: 'no-endpoints', answer: 'reject' };
const noLocalEndpoints: Refusal = { reason: 'no-local-endpoints', answer: 'drop' };

function policyOf(isLocalOnly: boolean): TrafficPolicy {
  return isLocalOnly ? 'Local' : 'Cluster';
}

export function internalPolicyOf({ internalPolicyLocal }: ShownPort): TrafficPolicy | undefined {
  return internalPolicyLocal === undefined ? undefined : policyOf(internalPolicyLocal);
}

/** Returns the policy for traffic from outside; undefined if unknown, or if the port gets no such traffic. */
export function externalPolicyOf(port: ShownPort): TrafficPolicy | undefined {
  const { externalPolicyLocal } = port;
  return externalPolicyLocal === undefined || !isExternallyAccessible(port) ? undefined : policyOf(externalPolicyLocal);
}

function planRefusal(choice: EndpointChoice, policyLocal: boolean): Refusal | undefined {
  if (!choice.hasAny) return noEndpoints;
  return policyLocal && choice.local.length === 0 ? noLocalEndpoints : undefined;
}

function planFirewall(port: ServicePort, guarded: readonly ServiceAddress[]): Firewall | undefined {
  if (guarded.length === 0 || port.sourceRanges.length === 0) return undefined;
  const sourceRanges = port.sourceRanges.map((network, index) => ({
    network,
    origin: originOf(port, port.places?.sourceRange(index)),
  }));
  return { guarded, sourceRanges };
}

function intersect(some: readonly Endpoint[], others: readonly Endpoint[]): readonly Endpoint[] {
  if (some.length === 0) return some;
  const wanted = new Set(others);
  return some.filter((endpoint) => wanted.has(endpoint));
}

/** Keeps the last result for each subject, together with its context. The context must be plain data. */
export class ContextMemo<Subject extends object, Made> {
  readonly #made = new WeakMap<Subject, { readonly key: string; readonly made: Made }>();
  readonly #keys = new WeakMap<object, string>();

  recall(subject: Subject, context: object, make: () => Made): Made {
    const key = this.#keyOf(context);
    const known = this.#made.get(subject);
    if (known?.key === key) return known.made;
    const made = make();
    this.#made.set(subject, { key, made });
    return made;
  }

  #keyOf(context: object): string {
    let key = this.#keys.get(context);
    if (key === undefined) this.#keys.set(context, (key = JSON.stringify(context, listSets)));
    return key;
  }
}

function listSets(_: string, value: unknown): unknown {
  return value instanceof Set ? [...(value as ReadonlySet<unknown>)] : value;
}

/** Reuses a Service port's plan for equivalent nodes, which are nearly all nodes in a large cluster. */
export class PlanMemo {
  readonly #plans = new Map<ServicePort, Map<string, TrafficPlan>>();

  recall(port: ServicePort, node: NodeIdentity): TrafficPlan {
    if (namesNode(port, node)) return planTraffic(port, node);
    const zone = namesZone(port, node) ? node.zone : '';
    let byZone = this.#plans.get(port);
    if (!byZone) this.#plans.set(port, (byZone = new Map()));
    let plan = byZone.get(zone);
    if (plan === undefined) byZone.set(zone, (plan = planTraffic(port, node)));
    return plan;
  }
}

/** Reports whether the port's endpoints name the node. If not, the node is like any other for this port. */
function namesNode(port: ServicePort, { name }: Pick<NodeIdentity, 'name'>): boolean {
  return port.endpoints.some(({ status: { nodeName, nodeHints } }) => nodeName === name || nodeHints.includes(name));
}

/** Reports whether hints name the zone. If so, all its nodes are equivalent for this port. */
function namesZone(port: ServicePort, { zone }: Pick<NodeIdentity, 'zone'>): boolean {
  return port.endpoints.some(({ status }) => status.zoneHints.includes(zone));
}
