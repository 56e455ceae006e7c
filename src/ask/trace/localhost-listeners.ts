import { chooseEndpoints } from '../../cluster/endpoint-choice.ts';
import { serviceName, type ServicePort, type ShownPort } from '../../cluster/model.ts';
import type { CompiledSnapshot, Snapshot } from '../../snapshot/snapshot.ts';
import { compareAddresses, loopbackAddresses } from '../../kernel/address.ts';
import type { SocketAddress } from '../../kernel/ports-and-marks.ts';
import { findLocalhostHandling } from '../../kube-proxy/node-port-listeners.ts';
import type { Listener } from '../../packet/step.ts';
import { servicesWithoutEndpoints } from './doubted-ends.ts';

/**
 * Where kube-proxy itself listens for TCP node ports on localhost (localnodeportproxy): only on 127.0.0.1 and ::1. It connects to
 * a random endpoint from the node's address; with policy Local, to one on the node. Without such an endpoint it does not listen.
 */
export function localhostListeners(side: Snapshot): readonly Listener[] {
  const handlingOf = findLocalhostHandling(side.state);
  const taken = side.ports.flatMap((shown) => {
    const { family, protocol, nodePort: port } = shown;
    if (protocol !== 'TCP' || port === undefined) return [];
    return handlingOf({ family, protocol, port }) === 'kube-proxy itself listens' ? [{ shown, protocol, port }] : [];
  });
  // Few nodes have any, and few commands ask.
  if (taken.length === 0) return [];
  const endpointsOf = side.kind === 'dump' ? shownEndpoints : chosenEndpoints(side);
  return taken.flatMap(({ shown, protocol, port }): readonly Listener[] => {
    const { family, label } = shown;
    const endpoints = endpointsOf(shown)?.toSorted(compareSockets);
    if (endpoints?.length === 0) return [];
    const origin = { servicePort: label, place: undefined };
    return [{ program: 'kube-proxy', protocol, address: loopbackAddresses[family], port, endpoints, origin }];
  });
}

function compareSockets(one: SocketAddress, other: SocketAddress): number {
  return compareAddresses(one.address, other.address) || one.port - other.port;
}

/** Looks up the endpoints that kube-proxy connects to; undefined for a Service without any in the input. */
function chosenEndpoints(side: CompiledSnapshot): (port: ShownPort) => readonly SocketAddress[] | undefined {
  const known = new Map<ShownPort, ServicePort>(side.cluster.servicePorts.map((port) => [port, port]));
  const ungiven = servicesWithoutEndpoints(side);
  return (shown) => {
    const port = known.get(shown);
    if (!port) return shownEndpoints(shown);
    if (ungiven.has(serviceName(port))) return undefined;
    const { cluster, local } = chooseEndpoints(port, side.node);
    return (port.externalPolicyLocal ? local : cluster).map(({ address, port: number }) => ({ address, port: number }));
  };
}

/** A kernel shows the endpoints of both policies together: undefined if the policies may differ. */
function shownEndpoints(port: ShownPort): readonly SocketAddress[] | undefined {
  if (port.externalPolicyLocal !== false || port.internalPolicyLocal !== false) return undefined;
  const shown = port.endpoints?.map(({ address, port: number }) => {
    return address && number !== undefined ? { address, port: number } : undefined;
  });
  return shown?.every((each) => each !== undefined) ? shown : undefined;
}
