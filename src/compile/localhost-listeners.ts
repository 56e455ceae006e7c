import type { BundleContent } from '../bundle/make-bundle.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { Cluster, ServicePort } from '../cluster/model.ts';
import { nodePortNetworks } from '../cluster/node-port-addresses.ts';
import { planTraffic } from '../cluster/plan-traffic.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { loopbackAddresses } from '../kernel/address.ts';
import { families, type Family } from '../kernel/family.ts';
import { findLocalhostHandling } from '../kube-proxy/node-port-listeners.ts';
import { behavioursOf, concernsMode } from '../kube-proxy/releases.ts';
import type { Prepared } from './compile-node.ts';

/** The node ports of a node that kube-proxy itself listens for on localhost. No rule does that: a bundle serves none of them. */
export function describeLocalhostListeners({
  state,
  cluster,
}: Pick<BundleContent, 'state' | 'cluster'>): readonly Diagnostic[] {
  const handlingOf = findLocalhostHandling(state);
  const listens = ({ family, protocol, nodePort: port }: ServicePort) =>
    port !== 0 && handlingOf({ family, protocol, port }) === 'kube-proxy';
  return describe(cluster, listens, false);
}

/** The same of many nodes: on each that has endpoints for the node port. */
export function describeListenersOfNodes({ cluster, settings, gates }: Prepared): readonly Diagnostic[] {
  const name = 'localhost-node-ports';
  if (!concernsMode(name, settings.mode) || !behavioursOf(settings.release, gates).has(name)) return [];
  const named = new Set(
    families.filter((family) => nodePortNetworks(settings, { nodeIPs: loopbackAddresses }, family).namesLoopback),
  );
  const listens = (port: ServicePort) =>
    named.has(port.family) &&
    port.protocol === 'TCP' &&
    port.nodePort !== 0 &&
    planTraffic(port, { name: '', zone: '' }).hasEndpoints;
  return describe(cluster, listens, true);
}

function describe(cluster: Cluster, listens: (port: ServicePort) => boolean, ofNodes: boolean): readonly Diagnostic[] {
  const byPort = groupBy(cluster.servicePorts.filter(listens), ({ label, nodePort }) => `${label} ${nodePort}`);
  return [...byPort.values()].flatMap((ports) => {
    const [first] = ports;
    if (!first) return [];
    const listening: readonly Family[] = families.filter((family) => ports.some((port) => port.family === family));
    const details = { servicePort: first.label, nodePort: first.nodePort, families: listening, ofNodes };
    return [diagnose('localhost-node-port', details, first.places?.nodePort)];
  });
}
