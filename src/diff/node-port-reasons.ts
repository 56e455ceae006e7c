import { familyNames } from '../kernel/family.ts';
import {
  describeListeners,
  describeLocalhostHandling,
  findLocalhostHandling,
  findNodePortListeners,
  type NodePort,
} from '../kube-proxy/node-port-listeners.ts';
import { isKubeProxyTable } from '../kube-proxy/nftables.ts';
import { findDumpListeners } from '../dumps/coverage.ts';
import type { ServiceReason } from './service-changes.ts';
import type { Side } from './compared-side.ts';

/**
 * What becomes of node ports where the two sides listen for them on other addresses, as those of two modes do: a number is the same
 * in the manifests, and stops to answer on some addresses of the node.
 */
export function findNodePortReasons(
  from: Side,
  to: Side,
): (nodePorts: readonly NodePort[]) => readonly ServiceReason[] {
  const [listenersBefore, listenersAfter] = [listenersOf(from), listenersOf(to)];
  const [localhostBefore, localhostAfter] = [localhostOf(from), localhostOf(to)];
  return (nodePorts) => {
    const reasons = new Map<string, ServiceReason>();
    const isDual = new Set(nodePorts.map(({ family }) => family)).size > 1;
    for (const nodePort of nodePorts) {
      const name = `${isDual ? `${familyNames[nodePort.family]} ` : ''}node port ${nodePort.port}`;
      const add = (field: string, before: string | undefined, after: string | undefined): void => {
        if (before === undefined || after === undefined || before === after) return;
        reasons.set(field, { kind: 'field', field, from: before, to: after });
      };
      add(`${name} listens on`, listenersBefore(nodePort), listenersAfter(nodePort));
      add(`${name} on localhost:`, localhostBefore(nodePort), localhostAfter(nodePort));
    }
    return [...reasons.values()];
  };
}

/** What becomes of connections to a node port on localhost, in words; undefined where the side has no rules of nftables mode. */
function localhostOf({ state }: Side): (nodePort: NodePort) => string | undefined {
  if (!state.nftables.some(({ name }) => isKubeProxyTable(name))) return () => undefined;
  const find = findLocalhostHandling(state);
  return (nodePort) => describeLocalhostHandling(find(nodePort));
}

/** In words; undefined where the side does not tell. */
function listenersOf({ kind, state, coverage }: Side): (nodePort: NodePort) => string | undefined {
  const find = kind === 'dump' ? findDumpListeners(state, coverage) : findNodePortListeners(state);
  return (nodePort) => {
    const listeners = find(nodePort);
    return listeners.kind === 'unknown' ? undefined : describeListeners(listeners);
  };
}
