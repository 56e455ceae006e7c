import type { Family } from '../kernel/family.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { nodeAddresses } from './node-context.ts';
import type { Node, ProxySettings, Source } from './objects.ts';

/** The Nodes of the input, and where they came from. */
export interface KnownNodes {
  readonly nodes: ReadonlyMap<string, Node>;
  readonly nodeSources: ReadonlyMap<string, Source>;
}

/**
 * Checks how these nodes detect local traffic: what keeps kube-proxy from starting there is an error
 * (NewNodeManager and checkBadIPConfig in cmd/kube-proxy/app/server.go), what it complains of a warning.
 */
export function checkLocalDetection(
  names: readonly string[],
  known: KnownNodes,
  settings: Pick<ProxySettings, 'bindAddress' | 'detectLocal' | 'clusterCIDRs'>,
): readonly Diagnostic[] {
  switch (settings.detectLocal.mode) {
    case 'NodeCIDR':
      return checkNodeCIDRs(names, known, settings);
    case 'ClusterCIDR':
      return checkClusterCIDRs(names, known, settings);
    case 'BridgeInterface':
    case 'InterfaceNamePrefix':
      return [];
  }
}

function checkNodeCIDRs(
  names: readonly string[],
  { nodes, nodeSources }: KnownNodes,
  settings: Pick<ProxySettings, 'bindAddress'>,
): readonly Diagnostic[] {
  const placeOf = (name: string) => nodeSources.get(name)?.place(['spec', 'podCIDRs']);
  const absent = names.filter((name) => !nodes.has(name));
  const named = absent.includes('') ? [] : absent;
  return [
    ...(absent.length === 0 ? [] : [diagnose('no-pod-cidr', { problem: 'no-node-object', names: named })]),
    ...names.flatMap((name) => {
      const node = nodes.get(name);
      if (!node) return [];
      if (node.podCIDRs.length === 0) {
        return [diagnose('no-pod-cidr', { problem: 'none-of-node', name }, placeOf(name))];
      }
      const family = primaryFamily(node, settings);
      if (!areAllOfOther(node.podCIDRs, family)) return [];
      return [diagnose('wrong-family', { of: 'pod-cidrs', node: name, family }, placeOf(name))];
    }),
  ];
}

/** kube-proxy starts only if the node has both families, which a Node object does not show. */
function checkClusterCIDRs(
  names: readonly string[],
  { nodes }: KnownNodes,
  settings: Pick<ProxySettings, 'bindAddress' | 'clusterCIDRs'>,
): readonly Diagnostic[] {
  const { clusterCIDRs } = settings;
  const name = names.find((each) => areAllOfOther(clusterCIDRs, primaryFamily(nodes.get(each), settings)));
  if (name === undefined) return [];
  const family = primaryFamily(nodes.get(name), settings);
  return [diagnose('wrong-family', { of: 'cluster-cidrs', node: name, family, clusterCIDRs })];
}

/** The family of the node's own address (detectNodeIPs). */
function primaryFamily(node: Node | undefined, { bindAddress }: Pick<ProxySettings, 'bindAddress'>): Family {
  return parseAddress(bindAddress)?.family ?? nodeAddresses(node)[0]?.family ?? 'ipv4';
}

function areAllOfOther(cidrs: readonly string[], family: Family): boolean {
  return cidrs.length > 0 && cidrs.every((cidr) => (parseNetwork(cidr)?.family ?? family) !== family);
}
