import { chooseEndpoints } from '../cluster/endpoint-choice.ts';
import type { ServicePort, ShownPort } from '../cluster/model.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { compareAddresses, loopbackAddresses } from '../kernel/address.ts';
import type { SocketAddress } from '../kernel/socket-address.ts';
import { findLocalhostHandling } from '../kube-proxy/node-port-listeners.ts';
import type { Evaluator } from '../packet/evaluate.ts';
import { knowsEndpoints } from './service-endpoints.ts';
import type { Way } from '../packet/packet.ts';
import type { Reason } from '../packet/reason.ts';

/**
 * Evaluates packets on a node on which kube-proxy itself may listen for node ports on localhost (localnodeportproxy): of TCP, on
 * 127.0.0.1 and ::1 alone. It connects to an endpoint at random, from the node's address; for policy Local to one on the node.
 * Where there is no such endpoint it does not listen.
 */
export function withLocalhostListener(side: Snapshot, evaluate: Evaluator): Evaluator {
  const handlingOf = findLocalhostHandling(side.state);
  return (packet) => {
    const fate = evaluate(packet);
    const { destination, protocol, port: nodePort } = packet;
    const { family } = destination;
    if (fate.verdict !== 'local' || protocol !== 'tcp' || destination.text !== loopbackAddresses[family].text)
      return fate;
    if (handlingOf({ family, protocol: 'TCP', port: nodePort }) !== 'kube-proxy itself listens') return fate;
    const port = side.ports.find(
      (each) => each.family === family && each.protocol === 'TCP' && each.nodePort === nodePort,
    );
    const endpoints = port && endpointsOf(port, side)?.toSorted(compareSockets);
    if (!endpoints) return { ...fate, verdict: 'unknown', reasons: [unreadEndpoints] };
    if (endpoints.length === 0) return fate;
    const probability = 1 / endpoints.length;
    const source = 'masqueraded' as const;
    const ways = endpoints.map((endpoint): Way => {
      return { probability, verdict: 'delivered', endpoint, source, steps: fate.steps, reasons: [] };
    });
    const followed = ways.map((way) => ({ way, outcome: { kind: 'unknown', reasons: [] } as const }));
    return {
      ...fate,
      verdict: 'delivered',
      endpoints: endpoints.map((endpoint) => ({ ...endpoint, probability, source })),
      source,
      ways,
      connection: () => ({ kind: 'unknown', ways: followed }),
    };
  };
}

const unreadEndpoints: Reason = {
  kind: 'circumstance',
  of: 'listener',
  text: 'kube-proxy itself listens',
};

function compareSockets(one: SocketAddress, other: SocketAddress): number {
  return compareAddresses(one.address, other.address) || one.port - other.port;
}

/** The endpoints that kube-proxy connects to; undefined if a kernel does not show which these are. */
function endpointsOf(port: ShownPort, side: Snapshot): readonly SocketAddress[] | undefined {
  const known = side.cluster?.servicePorts.find((each) => each === port);
  if (side.kind !== 'dump' && known)
    return knowsEndpoints(side, known) ? chosenOf(known, chooseEndpoints(known, side.node)) : undefined;
  // A kernel shows the endpoints of both policies together.
  if (port.externalPolicyLocal !== false || port.internalPolicyLocal !== false) return undefined;
  const shown = port.endpoints?.map(({ address, port: number }) => {
    return address && number !== undefined ? { address, port: number } : undefined;
  });
  return shown?.every((each) => each !== undefined) ? shown : undefined;
}

function chosenOf(
  { externalPolicyLocal }: ServicePort,
  { cluster, local }: ReturnType<typeof chooseEndpoints>,
): readonly SocketAddress[] {
  return (externalPolicyLocal ? local : cluster).map(({ address, port }) => ({ address, port }));
}
