import { chooseEndpoints } from '../cluster/endpoint-choice.ts';
import type { ServicePort, ShownPort } from '../cluster/model.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { compareAddresses, loopbackAddresses } from '../kernel/address.ts';
import type { SocketAddress } from '../kernel/socket-address.ts';
import { findLocalhostHandling } from '../kube-proxy/node-port-listeners.ts';
import type { Listener } from '../packet/step.ts';
import { knowsEndpoints } from './doubted-ends.ts';

/**
 * Where kube-proxy itself listens for node ports on localhost (localnodeportproxy): of TCP, on 127.0.0.1 and ::1 alone. It connects to an
 * endpoint at random, from the node's address; for policy Local to one on the node. Where there is no such endpoint it does not listen.
 */
export function localhostListeners(side: Snapshot): readonly Listener[] {
  const handlingOf = findLocalhostHandling(side.state);
  return side.ports.flatMap((shown): readonly Listener[] => {
    const { family, protocol, nodePort: port, label } = shown;
    if (protocol !== 'TCP' || port === undefined) return [];
    if (handlingOf({ family, protocol, port }) !== 'kube-proxy itself listens') return [];
    const endpoints = endpointsOf(shown, side)?.toSorted(compareSockets);
    if (endpoints?.length === 0) return [];
    const origin = { servicePort: label, place: undefined };
    return [{ program: 'kube-proxy', protocol, address: loopbackAddresses[family], port, endpoints, origin }];
  });
}

function compareSockets(one: SocketAddress, other: SocketAddress): number {
  return compareAddresses(one.address, other.address) || one.port - other.port;
}

/** The endpoints that kube-proxy connects to; undefined if the input does not show which these are. */
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
