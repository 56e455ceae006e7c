import { joinHostPort } from '../kernel/address.ts';
import type { TrackedFlow } from '../kernel/conntrack.ts';
import { formatSocketAddress } from '../kernel/socket-address.ts';
import { portAddresses, type ShownPort } from './model.ts';

/** A flow that keeps going where no serving endpoint of its Service port is. */
export interface StaleFlow {
  readonly flow: TrackedFlow;
  readonly port: ShownPort;
}

/** How stale flows are told from others. */
export interface StaleFlowRules {
  /** Whether flows to a Service without any serving endpoint are stale, too; not those to its node port. */
  readonly withoutEndpoints: boolean;
  /** Whether a flow to the number of a node port is to the node. */
  readonly isToNode: (flow: TrackedFlow) => boolean;
}

/**
 * Finds the UDP flows to Service ports that do not go to an endpoint of them that serves, as kube-proxy does after each sync
 * (CleanStaleEntries in conntrack/cleanup.go): a client that keeps sending is sent there for ever. An endpoint whose status nothing
 * shows serves. Ports whose endpoints are not known have no stale flows.
 */
export function findStaleFlows(
  flows: readonly TrackedFlow[],
  ports: readonly ShownPort[],
  rules: StaleFlowRules,
): readonly StaleFlow[] {
  const find = staleFlowFinder(ports, rules);
  return flows.flatMap((flow) => find(flow) ?? []);
}

/** As findStaleFlows, for one flow after another: all of them may be too many to hold. */
export function staleFlowFinder(
  ports: readonly ShownPort[],
  { withoutEndpoints, isToNode }: StaleFlowRules,
): (flow: TrackedFlow) => StaleFlow | undefined {
  const fronts = indexFronts(ports, withoutEndpoints);
  return (flow) => {
    const { destination, answers, protocol, family } = flow;
    if (protocol !== 'udp') return undefined;
    const endpoint = formatSocketAddress(answers);
    const isStale = (front: FrontEnd | undefined): front is FrontEnd =>
      front !== undefined && !front.endpoints.has(endpoint);
    const byAddress = fronts.get(formatSocketAddress(destination));
    const byNodePort = fronts.get(`${family} ${destination.port}`);
    if (isStale(byAddress)) return { flow, port: byAddress.port };
    return isStale(byNodePort) && isToNode(flow) ? { flow, port: byNodePort.port } : undefined;
  };
}

/** Where clients send to: an address and port, or a node port, of a Service port. */
interface FrontEnd {
  readonly port: ShownPort;
  readonly endpoints: ReadonlySet<string>;
}

/** By "address:port", and by family and node port. */
function indexFronts(ports: readonly ShownPort[], withoutEndpoints: boolean): ReadonlyMap<string, FrontEnd> {
  const fronts = new Map<string, FrontEnd>();
  for (const port of ports) {
    if (port.protocol !== 'UDP' || !port.endpoints) continue;
    const serving = port.endpoints.filter(({ status }) => status === undefined || status.serving);
    const front = { port, endpoints: new Set(serving.map(({ label }) => label)) };
    if (serving.length === 0 && !withoutEndpoints) continue;
    for (const { address } of portAddresses(port)) {
      if (port.port !== undefined) fronts.set(joinHostPort(address.text, port.port), front);
    }
    // Without endpoints, each flow to that number would be stale, to other hosts too.
    if (port.nodePort && serving.length > 0) fronts.set(`${port.family} ${port.nodePort}`, front);
  }
  return fronts;
}

/** The words by which conntrack deletes the flows of the same two ends (filterForIPPortNAT in conntrack/cleanup.go of 1.31). */
export function deleteArguments({ family, destination: to, answers }: TrackedFlow): readonly string[] {
  const original = ['--orig-dst', to.address.text, '--orig-port-dst', String(to.port)];
  const reply = ['--reply-src', answers.address.text, '--reply-port-src', String(answers.port)];
  return ['-D', '-f', family, '-p', 'udp', ...original, ...reply];
}
