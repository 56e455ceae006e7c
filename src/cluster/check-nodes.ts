import type { Family } from '../kernel/family.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';
import type { Diagnostic } from './diagnostic.ts';
import { nameSome } from './name-some.ts';
import { nodeAddresses } from './node-context.ts';
import type { Node, ProxySettings, Source } from './objects.ts';

/** The Nodes of the input, and where they came from. */
export interface KnownNodes {
  readonly nodes: ReadonlyMap<string, Node>;
  readonly nodeSources: ReadonlyMap<string, Source>;
}

const wordOf = { ipv4: 'IPv4', ipv6: 'IPv6' } as const satisfies Record<Family, string>;

/**
 * Checks how local traffic is told on the nodes with these names: what keeps kube-proxy from starting there is an error
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
  const error = (code: string, name: string | undefined, text: string): Diagnostic => {
    const place = name === undefined ? undefined : nodeSources.get(name)?.place(['spec', 'podCIDRs']);
    return { severity: 'error', code, text, place };
  };
  const absent = names.filter((name) => !nodes.has(name));
  const needed = 'detectLocalMode NodeCIDR needs the pod CIDRs of the Node, and kube-proxy does not start without them';
  const which = absent.includes('') ? '' : ` for ${nameSome(absent)}`;
  return [
    ...(absent.length === 0
      ? []
      : [
          error(
            'no-pod-cidr',
            undefined,
            `${needed}: give the Node object${which} with -f (kubectl get nodes -o yaml)`,
          ),
        ]),
    ...names.flatMap((name) => {
      const node = nodes.get(name);
      if (!node) return [];
      if (node.podCIDRs.length === 0) return [error('no-pod-cidr', name, `${needed}: Node ${name} has none`)];
      const primary = primaryFamily(node, settings);
      if (!areAllOfOther(node.podCIDRs, primary)) return [];
      const text = `kube-proxy does not start: the address of Node ${name} is ${wordOf[primary]}, but none of its pod CIDRs is, and detectLocalMode NodeCIDR needs one`;
      return [error('wrong-family', name, text)];
    }),
  ];
}

/** kube-proxy goes on where the node has both families, which a Node object does not tell, and does not start otherwise. */
function checkClusterCIDRs(
  names: readonly string[],
  { nodes }: KnownNodes,
  settings: Pick<ProxySettings, 'bindAddress' | 'clusterCIDRs'>,
): readonly Diagnostic[] {
  const { clusterCIDRs } = settings;
  const name = names.find((each) => areAllOfOther(clusterCIDRs, primaryFamily(nodes.get(each), settings)));
  if (name === undefined) return [];
  const family = wordOf[primaryFamily(nodes.get(name), settings)];
  const node = name === '' ? 'the node' : `node ${name}`;
  const text = `the address of ${node} is ${family}, and clusterCIDR ${clusterCIDRs.join(',')} is not: no ${family} traffic counts as local, and without both families kube-proxy does not start`;
  return [{ severity: 'warning', code: 'wrong-family', text }];
}

/** The family of the node's own address (detectNodeIPs). */
function primaryFamily(node: Node | undefined, { bindAddress }: Pick<ProxySettings, 'bindAddress'>): Family {
  return parseAddress(bindAddress)?.family ?? nodeAddresses(node)[0]?.family ?? 'ipv4';
}

function areAllOfOther(cidrs: readonly string[], family: Family): boolean {
  return cidrs.length > 0 && cidrs.every((cidr) => (parseNetwork(cidr)?.family ?? family) !== family);
}
