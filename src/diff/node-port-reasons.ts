import { familyNames } from '../kernel/family.ts';
import {
  describeListeners,
  describeLocalhostHandling,
  findLocalhostHandling,
  findNodePortListeners,
  type NodePort,
} from '../kube-proxy/node-port-listeners.ts';
import { isKubeProxyTable } from '../kube-proxy/nftables.ts';
import { findDumpListeners } from '../dumps/dump-listeners.ts';
import type { PortFacts } from './port-facts.ts';
import { field, type ServiceReason } from './service-changes.ts';
import type { Side } from './compared-side.ts';

/**
 * What becomes of node ports that both sides have where they listen for them on other addresses, as those of two modes do:
 * a number is the same in the manifests, and stops to answer on some addresses of the node.
 */
export function findNodePortReasons(
  from: Side,
  to: Side,
): (before: readonly PortFacts[] | undefined, after: readonly PortFacts[] | undefined) => readonly ServiceReason[] {
  const [listenersBefore, listenersAfter] = [listenersOf(from), listenersOf(to)];
  const [localhostBefore, localhostAfter] = [localhostOf(from), localhostOf(to)];
  return (before, after) => {
    const old = new Set(nodePortsOf(before).map(({ family, protocol, port }) => `${family} ${protocol} ${port}`));
    const kept = nodePortsOf(after).filter(({ family, protocol, port }) => old.has(`${family} ${protocol} ${port}`));
    const isDual = new Set(kept.map(({ family }) => family)).size > 1;
    const reasons = kept.flatMap((nodePort) => {
      const name = `${isDual ? `${familyNames[nodePort.family]} ` : ''}node port ${nodePort.port}`;
      const differing = (what: string, one: string | undefined, other: string | undefined) =>
        one === undefined || other === undefined ? [] : field(`${name} ${what}`, one, other);
      return [
        ...differing('listens on', listenersBefore(nodePort), listenersAfter(nodePort)),
        ...differing('on localhost:', localhostBefore(nodePort), localhostAfter(nodePort)),
      ];
    });
    return [...new Map(reasons.map((reason) => [JSON.stringify(reason), reason])).values()];
  };
}

function nodePortsOf(families: readonly PortFacts[] = []): readonly NodePort[] {
  return families.flatMap(({ family, protocol, nodePort: port }) =>
    port === undefined ? [] : [{ family, protocol, port }],
  );
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
