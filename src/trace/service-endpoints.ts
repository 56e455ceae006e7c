import { portAddresses, type ServicePort, type ShownPort } from '../cluster/model.ts';
import type { Side, SideServices } from '../dumps/side.ts';
import { formatSocketAddress } from '../kernel/socket-address.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import type { Evaluator } from '../packet/evaluate.ts';
import type { Step } from '../packet/step.ts';
import { circumstance, lacks } from '../packet/reason.ts';

type Named = Pick<ShownPort, 'namespace' | 'service'>;

/** Whether the input shows the endpoints of a Service: its EndpointSlices, Endpoints or Pods. */
export function knowsEndpoints({ cluster }: SideServices, { namespace, service }: Named): boolean {
  const info = cluster.services.find((each) => each.namespace === namespace && each.name === service);
  return info?.endpointsGiven !== false;
}

/**
 * Evaluates packets to Services whose endpoints the input lacks: what the rules refuse for want of an endpoint, the node may deliver. A
 * Service with a selector has an EndpointSlice in every cluster, if an empty one.
 */
export function withUngivenEndpoints({ services }: Side, evaluate: Evaluator): Evaluator {
  if (services?.cluster.services.every(({ endpointsGiven }) => endpointsGiven !== false) !== false) return evaluate;
  const names = services.cluster.services
    .filter(({ endpointsGiven }) => endpointsGiven === false)
    .map(({ namespace, name }) => `${namespace}/${name}`);
  const ungiven = new Set(names);
  // By the places that packets are sent to, and by the names that rules have.
  const owners = new Map(
    services.cluster.servicePorts.flatMap((port) => {
      const service = `${port.namespace}/${port.service}`;
      return ungiven.has(service) ? [...socketsOf(port), port.label].map((socket) => [socket, service] as const) : [];
    }),
  );
  return (packet) => {
    const fate = evaluate(packet);
    if (fate.verdict !== 'refused' && fate.verdict !== 'dropped') return fate;
    const { destination, protocol, port } = packet;
    const service =
      owners.get(`${protocol} ${destination.text} ${port}`) ??
      owners.get(`${protocol} ${destination.family} ${port}`) ??
      owners.get(ownerOf(fate.steps.at(-1)) ?? '');
    return service === undefined
      ? fate
      : { ...fate, verdict: 'unknown', reasons: [lacks({ kind: 'endpoint-slices', service })] };
  };
}

/** The Service port that a step is there for. */
function ownerOf(step: Step | undefined): string | undefined {
  switch (step?.kind) {
    case 'rule':
      return step.origin?.servicePort;
    case 'virtual-server':
    case 'proxy-port':
      return step.server.origin?.servicePort;
    case 'policy':
    case 'route':
    case undefined:
      return undefined;
  }
}

/** "tcp 10.96.0.1 80" for each address of a Service port, and "tcp ipv4 30080" for its node port. */
function socketsOf(port: ServicePort): readonly string[] {
  const protocol = port.protocol.toLowerCase();
  const own = portAddresses(port).map(({ address }) => `${protocol} ${address.text} ${port.port}`);
  return port.nodePort > 0 ? [...own, `${protocol} ${port.family} ${port.nodePort}`] : own;
}

/**
 * Evaluates packets to endpoints that are themselves the cluster IP of a Service. Rules translate a packet once, so it leaves the node for
 * an address that no pod has; in a mode that gives the node these addresses, a program of the node may answer.
 */
export function withServicesBehindServices(
  ports: readonly ShownPort[],
  mode: ProxyMode | undefined,
  evaluate: Evaluator,
): Evaluator {
  const addresses = new Map(
    ports.flatMap((port) => (port.clusterIP ? [[port.clusterIP.text, port.label] as const] : [])),
  );
  const isOfService = ports.some(({ endpoints }) =>
    endpoints?.some(({ address }) => address && addresses.has(address.text)),
  );
  if (!isOfService || !mode) return evaluate;
  const becomes = modeFacts[mode].kinds.has('links')
    ? 'this node holds that address itself, and a program on it may answer'
    : 'rules translate a packet once, so it leaves the node for an address that no pod has';
  return (packet) => {
    const fate = evaluate(packet);
    const end = fate.endpoints.find(({ address }) => addresses.has(address.text));
    if (fate.verdict !== 'delivered' || !end) return fate;
    const label = addresses.get(end.address.text);
    const text = `endpoint ${formatSocketAddress(end)} is the cluster IP of ${label}: ${becomes}`;
    const endpoints = fate.endpoints.filter(({ address }) => !addresses.has(address.text));
    return { ...fate, verdict: 'unknown', endpoints, reasons: [circumstance('service-address', text)] };
  };
}
