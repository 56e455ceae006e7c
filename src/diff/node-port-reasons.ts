import type { Family } from '../kernel/family.ts';
import type { NodePort } from '../kube-proxy/node-port-listeners.ts';
import { describeListeners, findNodePortListeners } from '../kube-proxy/node-port-listeners.ts';
import type { ServiceReason } from './service-changes.ts';
import type { Side } from './side.ts';

/**
 * What becomes of node ports where the two sides listen for them on other addresses, as those of two modes do: a number is the same
 * in the manifests, and stops to answer on some addresses of the node.
 */
export function findNodePortReasons(
  from: Side,
  to: Side,
): (nodePorts: readonly NodePort[]) => readonly ServiceReason[] {
  const [listenersBefore, listenersAfter] = [listenersOf(from), listenersOf(to)];
  return (nodePorts) => {
    const reasons = new Map<string, ServiceReason>();
    const isDual = new Set(nodePorts.map(({ family }) => family)).size > 1;
    for (const nodePort of nodePorts) {
      const [before, after] = [listenersBefore(nodePort), listenersAfter(nodePort)];
      if (before === undefined || after === undefined || before === after) continue;
      const field = `${isDual ? `${familyNames[nodePort.family]} ` : ''}node port ${nodePort.port} listens on`;
      reasons.set(field, { kind: 'field', field, from: before, to: after });
    }
    return [...reasons.values()];
  };
}

const familyNames: { readonly [F in Family]: string } = { ipv4: 'IPv4', ipv6: 'IPv6' };

/** In words; undefined where the side does not tell. A part of a list does not tell where nothing listens. */
function listenersOf({ kind, state, coverage }: Side): (nodePort: NodePort) => string | undefined {
  const find = findNodePortListeners(coverage.virtualServers ? state : { ...state, virtualServers: [] });
  return (nodePort) => {
    const listeners = find(nodePort);
    if (listeners.kind === 'untold') return undefined;
    if (kind === 'dump' && listeners.kind === 'listed' && listeners.addresses.size === 0) return undefined;
    return describeListeners(listeners);
  };
}
