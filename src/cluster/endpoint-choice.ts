import type { Endpoint, NodeContext, NodeIdentity, ServicePort, ShownPort } from './model.ts';

/** The endpoints of a Service port to which a node sends traffic. Lists keep the order of the port's endpoints. */
export interface EndpointChoice {
  /** For traffic under policy Cluster; empty if the port has none. */
  readonly cluster: readonly Endpoint[];
  /** For traffic under policy Local; empty if the port has none. */
  readonly local: readonly Endpoint[];
  /** The endpoints of both lists, without duplicates. The port's rules use no others. */
  readonly reachable: readonly Endpoint[];
  /** Whether any node has a usable endpoint. */
  readonly hasAny: boolean;
}

const nothing: EndpointChoice = { cluster: [], local: [], reachable: [], hasAny: false };

/**
 * Chooses endpoints like kube-proxy's CategorizeEndpoints (pkg/proxy/topology.go): ready ones that hints assign to this node, else all
 * ready ones, else terminating ones that still serve. Under policy Local, makes the same choice among the node's own endpoints, without
 * hints.
 */
export function chooseEndpoints(port: ServicePort, node: NodeIdentity): EndpointChoice {
  if (port.endpoints.length === 0) return nothing;
  const topology = usesClusterEndpoints(port) ? chooseTopology(port.endpoints, node) : 'everywhere';
  const cluster = usesClusterEndpoints(port) ? clusterEndpoints(port.endpoints, topology, node) : [];
  if (!usesLocalEndpoints(port)) return { cluster, local: [], reachable: cluster, hasAny: cluster.length > 0 };

  const usable = port.endpoints.filter((endpoint) => isReadyEndpoint(endpoint) || servesWhileTerminating(endpoint));
  const hasAny = usable.length > 0;
  const onNode = usable.filter((endpoint) => runsOnNode(endpoint, node));
  const ready = onNode.filter(isReadyEndpoint);
  const local = ready.length > 0 ? ready : onNode;
  if (!usesClusterEndpoints(port)) return { cluster, local, reachable: local, hasAny };

  return { cluster, local, reachable: union(port.endpoints, cluster, local), hasAny };
}

/** Reports whether an endpoint is on the node. False for every endpoint if the node has no name. */
export function runsOnNode(endpoint: Endpoint, node: Pick<NodeContext, 'name'>): boolean {
  return isLocalNode(endpoint.status.nodeName, node);
}

export function isLocalNode(nodeName: string | undefined, node: Pick<NodeContext, 'name'>): boolean {
  return node.name !== '' && nodeName === node.name;
}

export function isExternallyAccessible(port: ShownPort): boolean {
  return (
    port.nodePort !== 0 ||
    port.loadBalancerIPs.length > 0 ||
    port.externalIPs.length > 0 ||
    port.hasIgnoredExternalIPs === true
  );
}

/**
 * Reports whether traffic may go to all nodes. External traffic always may, because policy Local does not apply to pods and the node
 * itself.
 */
function usesClusterEndpoints(port: ServicePort): boolean {
  return !port.internalPolicyLocal || isExternallyAccessible(port);
}

/** Reports whether some traffic to the port must stay on the node. */
export function usesLocalEndpoints(port: ServicePort): boolean {
  return port.internalPolicyLocal || (port.externalPolicyLocal && isExternallyAccessible(port));
}

type Topology = 'same-node' | 'same-zone' | 'everywhere';

/**
 * Node hints apply if all ready endpoints have node hints and one names this node. Otherwise zone hints apply by the same rule
 * (topologyModeFromHints).
 */
function chooseTopology(endpoints: readonly Endpoint[], node: NodeIdentity): Topology {
  if (endpoints.every(({ status: { ready, nodeHints } }) => !ready || nodeHints.length > 0)) {
    if (endpoints.some(({ status: { ready, nodeHints } }) => ready && nodeHints.includes(node.name)))
      return 'same-node';
  }
  if (endpoints.every(({ status: { ready, zoneHints } }) => !ready || zoneHints.length > 0)) {
    if (endpoints.some(({ status: { ready, zoneHints } }) => ready && zoneHints.includes(node.zone)))
      return 'same-zone';
  }
  return 'everywhere';
}

export type UnboundHints =
  | { readonly kind: 'endpoint-without-hint'; readonly endpoint: string }
  | { readonly kind: 'node-without-zone' }
  | { readonly kind: 'none-for-zone'; readonly zone: string };

export function explainUnboundHints(port: ServicePort, node: NodeIdentity): UnboundHints | undefined {
  const ready = port.endpoints.filter(isReadyEndpoint);
  if (!usesClusterEndpoints(port) || ready.every(({ status }) => status.zoneHints.length === 0)) return undefined;
  if (chooseTopology(port.endpoints, node) !== 'everywhere') return undefined;
  const bare = ready.find(({ status }) => status.zoneHints.length === 0);
  if (bare) return { kind: 'endpoint-without-hint', endpoint: bare.label };
  return node.zone === '' ? { kind: 'node-without-zone' } : { kind: 'none-for-zone', zone: node.zone };
}

function clusterEndpoints(endpoints: readonly Endpoint[], topology: Topology, node: NodeIdentity): readonly Endpoint[] {
  const isUsable =
    topology === 'everywhere'
      ? isReadyEndpoint
      : (endpoint: Endpoint) => isReadyEndpoint(endpoint) && isNear(endpoint, topology, node);
  if (endpoints.every(isUsable)) return endpoints;
  const ready = endpoints.filter(isUsable);
  return ready.length > 0 ? ready : endpoints.filter(servesWhileTerminating);
}

function isReadyEndpoint({ status }: Endpoint): boolean {
  return status.ready;
}

function isNear(endpoint: Endpoint, topology: Exclude<Topology, 'everywhere'>, node: NodeIdentity): boolean {
  switch (topology) {
    case 'same-node':
      return endpoint.status.nodeHints.includes(node.name);
    case 'same-zone':
      return endpoint.status.zoneHints.includes(node.zone);
  }
}

function servesWhileTerminating({ status }: Endpoint): boolean {
  return status.serving && status.terminating;
}

function union(
  all: readonly Endpoint[],
  cluster: readonly Endpoint[],
  local: readonly Endpoint[],
): readonly Endpoint[] {
  const inCluster = new Set(cluster);
  if (local.every((endpoint) => inCluster.has(endpoint))) return cluster;
  const either = new Set([...cluster, ...local]);
  return all.filter((endpoint) => either.has(endpoint));
}

export type EndpointReason =
  | { readonly kind: 'ready' }
  /** Used, because no endpoint is ready and this one still serves while terminating. */
  | { readonly kind: 'last-resort' }
  | { readonly kind: 'not-ready' }
  /** Not used, because it is terminating and others are ready. */
  | { readonly kind: 'terminating' }
  | { readonly kind: 'other-node-hinted' | 'other-zone-hinted' }
  | { readonly kind: 'other-node' };

/** How a node uses an endpoint under each policy; undefined for a policy that the port does not use. */
export interface EndpointUse {
  readonly endpoint: Endpoint;
  readonly cluster: EndpointReason | undefined;
  readonly local: EndpointReason | undefined;
}

export function isUsedFor(reason: EndpointReason | undefined): boolean {
  return reason?.kind === 'ready' || reason?.kind === 'last-resort';
}

export function explainEndpoints(port: ServicePort, node: NodeIdentity): readonly EndpointUse[] {
  const choice = chooseEndpoints(port, node);
  const cluster = usesClusterEndpoints(port) ? new Set(choice.cluster) : undefined;
  const local = usesLocalEndpoints(port) ? new Set(choice.local) : undefined;
  const topology = cluster ? chooseTopology(port.endpoints, node) : 'everywhere';
  return port.endpoints.map((endpoint) => ({
    endpoint,
    cluster: cluster && explainCluster(endpoint, cluster.has(endpoint), topology),
    local: local && explainLocal(endpoint, local.has(endpoint), node),
  }));
}

function explainCluster(endpoint: Endpoint, used: boolean, topology: Topology): EndpointReason {
  if (used) return { kind: endpoint.status.ready ? 'ready' : 'last-resort' };
  if (!endpoint.status.ready) return { kind: servesWhileTerminating(endpoint) ? 'terminating' : 'not-ready' };
  return { kind: topology === 'same-node' ? 'other-node-hinted' : 'other-zone-hinted' };
}

function explainLocal(endpoint: Endpoint, used: boolean, node: NodeIdentity): EndpointReason {
  if (used) return { kind: endpoint.status.ready ? 'ready' : 'last-resort' };
  if (!endpoint.status.ready && !servesWhileTerminating(endpoint)) return { kind: 'not-ready' };
  return { kind: runsOnNode(endpoint, node) ? 'terminating' : 'other-node' };
}
