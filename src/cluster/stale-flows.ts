import { joinHostPort } from '../kernel/address.ts';
import type { TrackedFlow } from '../kernel/conntrack.ts';
import { formatSocketAddress } from '../kernel/ports-and-marks.ts';
import type { Behaviours } from '../kube-proxy/releases.ts';
import { portAddresses, type ShownPort } from './model.ts';

/** A flow whose destination is not a serving endpoint of its Service port, or whose Service port is gone. */
export interface StaleFlow {
  readonly flow: TrackedFlow;
  readonly port: ShownPort;
}

export interface PresentPorts {
  readonly ports: readonly ShownPort[];
  readonly gone?: readonly ShownPort[];
}

export interface StaleFlowRules {
  /** Whether flows to a Service without serving endpoints are also stale. A flow to its node port is stale only if `isOwn`. */
  readonly withoutEndpoints: boolean;
  /** Which flows to a removed UDP port are stale: none, flows to addresses without a UDP port now, or all flows to the cluster IP. */
  readonly ofGone: 'none' | 'to-addresses' | 'to-cluster-ip';
  readonly isToNode: (flow: TrackedFlow) => boolean;
  /** Whether the flow goes to a known address of the node, which matters for a node port without endpoints. */
  readonly isOwn?: (flow: TrackedFlow) => boolean;
}

export function forgottenFlows(behaviours: Behaviours): Pick<StaleFlowRules, 'withoutEndpoints' | 'ofGone'> {
  if (!behaviours.has('reconciled-flows')) return { withoutEndpoints: true, ofGone: 'to-cluster-ip' };
  return {
    withoutEndpoints: behaviours.has('forgotten-flows'),
    ofGone: behaviours.has('flows-of-gone-ports') ? 'to-addresses' : 'none',
  };
}

/**
 * Finds ports whose name, protocol and family are gone, because the Service was deleted or made headless or ExternalName, or the port was
 * renamed (ServicePortMap.Update in servicechangetracker.go). A port with only a new number or address is not gone.
 */
export function findGonePorts(before: readonly ShownPort[], after: readonly ShownPort[]): readonly ShownPort[] {
  const staying = new Set(after.map(servicePortKey));
  return before.filter((port) => !staying.has(servicePortKey(port)));
}

function servicePortKey({ namespace, service, portName, protocol, family }: ShownPort): string {
  return [namespace, service, portName, protocol, family].join(' ');
}

/**
 * Finds UDP flows to Service ports that do not reach a serving endpoint, like kube-proxy after a sync (CleanStaleEntries in
 * conntrack/cleanup.go). Without this cleanup, a client that keeps sending would never leave a dead endpoint. An endpoint of unknown status
 * counts as serving. Skips a port whose endpoints are unknown, so none of its flows counts as stale.
 */
export function findStaleFlows(
  flows: readonly TrackedFlow[],
  served: PresentPorts,
  rules: StaleFlowRules,
): readonly StaleFlow[] {
  const find = staleFlowFinder(served, rules);
  return flows.flatMap((flow) => find(flow) ?? []);
}

/** Like findStaleFlows, but for one flow at a time, because all flows may not fit in memory. */
export function staleFlowFinder(
  { ports, gone = [] }: PresentPorts,
  { withoutEndpoints, ofGone, isToNode, isOwn = () => false }: StaleFlowRules,
): (flow: TrackedFlow) => StaleFlow | undefined {
  const fronts = indexFronts(ports, withoutEndpoints);
  if (ofGone === 'to-addresses') addGone(gone, new Set(ports.filter(isUdp).flatMap(frontSockets)), fronts);
  const goneIPs = new Map(
    ofGone === 'to-cluster-ip' ? gone.filter(isUdp).map((port) => [port.clusterIP?.text, port]) : [],
  );
  return (flow) => {
    const { destination, answers, protocol, family } = flow;
    if (protocol !== 'udp') return undefined;
    const formerly = goneIPs.get(destination.address.text);
    if (formerly) return { flow, port: formerly };
    const endpoint = formatSocketAddress(answers);
    const isStale = (front: FrontEnd | undefined): front is FrontEnd =>
      front !== undefined && !front.endpoints.has(endpoint);
    const byAddress = fronts.get(formatSocketAddress(destination));
    const byNodePort = fronts.get(`${family} ${destination.port}`);
    if (isStale(byAddress)) return { flow, port: byAddress.port };
    // Without endpoints, every flow to this port number would be stale, even flows to other hosts.
    const isMeant = byNodePort?.endpoints.size === 0 ? isOwn : isToNode;
    return isStale(byNodePort) && isMeant(flow) ? { flow, port: byNodePort.port } : undefined;
  };
}

function isUdp({ protocol }: ShownPort): boolean {
  return protocol === 'UDP';
}

interface FrontEnd {
  readonly port: ShownPort;
  readonly endpoints: ReadonlySet<string>;
}

function indexFronts(ports: readonly ShownPort[], withoutEndpoints: boolean): Map<string, FrontEnd> {
  const fronts = new Map<string, FrontEnd>();
  for (const port of ports) {
    if (!isUdp(port) || !port.endpoints) continue;
    const serving = port.endpoints.filter(({ status }) => status === undefined || status.serving);
    const front = { port, endpoints: new Set(serving.map(({ label }) => label)) };
    if (serving.length === 0 && !withoutEndpoints) continue;
    for (const at of frontSockets(port)) fronts.set(at, front);
    if (port.nodePort) fronts.set(`${port.family} ${port.nodePort}`, front);
  }
  return fronts;
}

function frontSockets(port: ShownPort): readonly string[] {
  const { port: number } = port;
  return number === undefined ? [] : portAddresses(port).map(({ address }) => joinHostPort(address.text, number));
}

function addGone(gone: readonly ShownPort[], live: ReadonlySet<string>, fronts: Map<string, FrontEnd>): void {
  for (const port of gone.filter(isUdp)) {
    for (const at of frontSockets(port)) if (!live.has(at)) fronts.set(at, { port, endpoints: new Set() });
  }
}

/** Returns conntrack's arguments to delete flows between the same two ends (filterForIPPortNAT in conntrack/cleanup.go of 1.31). */
export function deleteArguments({ family, destination: to, answers }: TrackedFlow): readonly string[] {
  const original = ['--orig-dst', to.address.text, '--orig-port-dst', String(to.port)];
  const reply = ['--reply-src', answers.address.text, '--reply-port-src', String(answers.port)];
  return ['-D', '-f', family, '-p', 'udp', ...original, ...reply];
}
