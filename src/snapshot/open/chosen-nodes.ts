import { type Finding, diagnose, wrongValue } from '../../base/findings/finding.ts';
import { isName } from '../../base/names.ts';
import type { Prepared } from './compile-node.ts';
import type { LoadedInputs } from './load-texts.ts';
import {
  type Address,
  families,
  type Family,
  isLoopback,
  loopbackAddresses,
  parseAddress,
  parseNetwork,
} from '../../kernel/address.ts';
import type { Node, ProxySettings } from '../../cluster/objects.ts';
import type { Place } from '../../kernel/place.ts';
import {
  nodeAddresses,
  describeNode,
  addressesIn,
  namesLocalhost,
  nodePortNetworks,
  type NodePortNetworks,
} from '../../cluster/node-context.ts';
import type { NodeContext, ServicePort } from '../../cluster/model.ts';
import type { CompiledSnapshot } from '../snapshot.ts';
import { findLocalhostHandling } from '../../kube-proxy/node-port-listeners.ts';
import { isNodePortWord, modeFacts } from '../../kube-proxy/modes.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { planTraffic } from '../../cluster/plan-traffic.ts';
import { behavioursOf, concernsMode } from '../../kube-proxy/releases.ts';
import { gatesOfSettings } from '../../settings/feature-gates.ts';

export interface CheckedNodes {
  readonly names: readonly string[];
  readonly flag: readonly string[] | undefined;
}

type KnownCluster = Pick<Prepared, 'nodes' | 'windowsNodes' | 'nodeSources' | 'settings' | 'cluster'>;

type ListedAddresses = Pick<LoadedInputs, 'hosts' | 'hostAddresses'>;

/** Checks the chosen names. If the input has Nodes, each name must be that of a Node, and kube-proxy must be able to start on that Node. */
export function checkNodes({ names, flag }: CheckedNodes, known: KnownCluster & ListedAddresses): readonly Finding[] {
  const unknown = findUnknown(flag, known);
  if (unknown.length > 0) return unknown;
  return [...checkLocalDetection(names, known), ...findTakenAddresses(known), ...findForeignAddresses(names, known)];
}

/** Finds lists of --host-addresses that contain none of their Node's InternalIPs. */
function findForeignAddresses(
  names: readonly string[],
  { nodes, hosts, hostAddresses: ofOne }: KnownCluster & ListedAddresses,
): readonly Finding[] {
  return names.flatMap((name) => {
    const listed = new Set((hosts?.get(name) ?? ofOne ?? []).map(({ text }) => text));
    const { addresses = [], assumedAs } = nodes.get(name) ?? {};
    const own = addresses.flatMap(({ type, address }) => (type === 'InternalIP' ? (parseAddress(address) ?? []) : []));
    const isOther = listed.size > 0 && own.length > 0 && !own.some(({ text }) => listed.has(text));
    const texts = own.map(({ text }) => text);
    return isOther && assumedAs === undefined
      ? [diagnose('bad-host-addresses', { problem: 'other-node', node: name, addresses: texts })]
      : [];
  });
}

/**
 * Finds addresses of Nodes that Services have too. IPVS mode puts Services' addresses on every node's kube-ipvs0, so each other node treats
 * such an address as its own.
 */
function findTakenAddresses({ nodes, cluster, settings }: KnownCluster): readonly Finding[] {
  if (!modeFacts[settings.mode].kinds.has('links')) return [];
  const owners = new Map(
    [...nodes].flatMap(([name, node]) =>
      node.assumedAs === undefined ? nodeAddresses(node).map(({ text }) => [text, name] as const) : [],
    ),
  );
  const found = new Map<string, Finding>();
  for (const { namespace, service, clusterIP, externalIPs, loadBalancerIPs, places } of cluster.servicePorts) {
    const report = ({ text: address }: Address, place: Place | undefined): void => {
      const node = owners.get(address);
      const key = `${namespace}/${service} ${address}`;
      if (node === undefined || found.has(key)) return;
      found.set(key, diagnose('node-address', { service: `${namespace}/${service}`, address, node }, place));
    };
    report(clusterIP, places?.clusterIP);
    for (const [i, address] of externalIPs.entries()) report(address, places?.externalIP(i));
    for (const [i, address] of loadBalancerIPs.entries()) report(address, places?.ingress(i));
  }
  return [...found.values()];
}

function findUnknown(
  flag: readonly string[] | undefined,
  { nodes, windowsNodes, settings }: KnownCluster,
): readonly Finding[] {
  const own = settings.hostnameOverride === '' ? [] : [settings.hostnameOverride];
  const windows = windowsNodes.filter((name) => (flag ?? own).includes(name));
  if (windows.length > 0) return [diagnose('no-node', { problem: 'named-windows', names: windows })];
  if (nodes.size === 0) return [];
  const unknown = [...new Set(flag ?? own)].filter((name) => !nodes.has(name) && isName(name, 'subdomain'));
  if (unknown.length === 0) return [];
  const by = flag ? '--node' : 'hostnameOverride';
  return [diagnose('unknown-node', { flag: by, names: unknown, known: [...nodes.keys()].sort() })];
}

/**
 * Returns an error if kube-proxy would not start (NewNodeManager, checkBadIPConfig in cmd/kube-proxy/app/server.go). Returns warnings about
 * other faults.
 */
function checkLocalDetection(names: readonly string[], known: KnownCluster): readonly Finding[] {
  const { mode } = known.settings.detectLocal;
  if (mode === 'NodeCIDR') return checkNodeCIDRs(names, known);
  return mode === 'ClusterCIDR' ? checkClusterCIDRs(names, known) : [];
}

function checkNodeCIDRs(names: readonly string[], { nodes, nodeSources, settings }: KnownCluster): readonly Finding[] {
  const absent = names.filter((name) => !nodes.has(name));
  const named = absent.includes('') ? [] : absent;
  return [
    ...(absent.length === 0 ? [] : [diagnose('no-pod-cidr', { names: named })]),
    ...names.flatMap((name) => {
      const node = nodes.get(name);
      if (!node) return [];
      const place = nodeSources.get(name)?.place(['spec', 'podCIDRs']);
      if (node.podCIDRs.length === 0) return [diagnose('no-pod-cidr', { names: [name] }, place)];
      const family = primaryFamily(node, settings);
      if (!areAllOfOther(node.podCIDRs, family)) return [];
      return [diagnose('wrong-family', { of: 'podCIDRs', node: name, family, cidrs: node.podCIDRs }, place)];
    }),
  ];
}

/** Warns if all CIDRs have the other family. kube-proxy then starts only on a dual-stack node, which a Node object does not show. */
function checkClusterCIDRs(names: readonly string[], { nodes, settings }: KnownCluster): readonly Finding[] {
  const { clusterCIDRs } = settings;
  for (const node of names) {
    const family = primaryFamily(nodes.get(node), settings);
    if (!areAllOfOther(clusterCIDRs, family)) continue;
    return [diagnose('wrong-family', { of: 'clusterCIDR', node, family, cidrs: clusterCIDRs })];
  }
  return [];
}

function primaryFamily(node: Node | undefined, { bindAddress }: ProxySettings): Family {
  return parseAddress(bindAddress)?.family ?? nodeAddresses(node)[0]?.family ?? 'ipv4';
}

function areAllOfOther(cidrs: readonly string[], family: Family): boolean {
  return cidrs.length > 0 && cidrs.every((cidr) => (parseNetwork(cidr)?.family ?? family) !== family);
}

export function describeNodeGaps(nodeName: string, prepared: Prepared): readonly Finding[] {
  const { nodes, settings, hostAddresses } = prepared;
  if (nodes.has(nodeName)) return [];
  const node = describeNode(nodeName, undefined, hostAddresses, settings);
  const lacksAddresses = hostAddresses === undefined && needsAddresses(settings, node);
  const listensOnAll = !lacksAddresses && lacksPrimary(settings, node);
  const gaps = { lacksAddresses, listensOnAll };
  if (node.name !== '') return [diagnose('no-node-object', { names: [node.name], ...gaps })];
  return [diagnose('no-node', { problem: 'compiled-for-any', nodes: nodes.size, mode: settings.mode, ...gaps })];
}

/** Returns a warning for each family if node ports listen on no address. The warning names all nodes with this fault. */
export function findUnreachableNodePorts(
  names: readonly string[],
  { cluster, nodes, settings }: Prepared,
  preparedFor: (node: string) => Prepared,
): readonly Finding[] {
  return families.flatMap((family) => {
    if (!cluster.servicePorts.some((port) => port.family === family && port.nodePort > 0)) return [];
    const found = names.flatMap((name) => {
      const { hostAddresses } = preparedFor(name);
      const known = nodes.get(name);
      const node = known && describeNode(name, known, hostAddresses, settings);
      return node && listensNowhere(node, settings, family) ? [{ node, isTold: hostAddresses !== undefined }] : [];
    });
    if (found.length === 0) return [];
    const picked = settings.nodePortAddresses.filter(
      (text) => isNodePortWord(text) || parseNetwork(text)?.family === family,
    );
    const own = found.flatMap(({ node }) => node.hostAddresses.filter((address) => address.family === family));
    const addresses = [...new Set(own.map(({ text }) => text))];
    const areAll = found.every(({ isTold }) => isTold);
    return [diagnose('no-node-port-address', { nodes: found.map(({ node }) => node.name), picked, addresses, areAll })];
  });
}

function listensNowhere(node: NodeContext, settings: ProxySettings, family: Family): boolean {
  const networks = nodePortNetworks(settings, node, family);
  if (networks.matchesAll || node.hostAddresses.every((address) => address.family !== family)) return false;
  const isServed = (address: Address) => !isLoopback(address) || servesLoopback(settings, family);
  return !addressesIn(networks, node).some(isServed) && !listensOnLocalhost(settings, networks);
}

function servesLoopback({ mode, localhostNodePorts }: ProxySettings, family: Family): boolean {
  return modeFacts[mode].loopbackNodePorts.includes(family) && localhostNodePorts;
}

function listensOnLocalhost(settings: ProxySettings, networks: NodePortNetworks): boolean {
  const name = 'localhost-node-ports';
  const behaviours = behavioursOf(settings.release, gatesOfSettings(settings));
  return concernsMode(name, settings.mode) && behaviours.has(name) && namesLocalhost(networks, behaviours);
}

/** Reports whether node ports should listen only on the node's own addresses, but listen on all because these are unknown. */
function lacksPrimary({ nodePortAddresses }: ProxySettings, { nodeIPs }: NodeContext): boolean {
  return nodePortAddresses.join() === 'primary' && families.every((family) => isLoopback(nodeIPs[family]));
}

function needsAddresses(settings: ProxySettings, node: NodeContext): boolean {
  const { nodePorts } = modeFacts[settings.mode];
  switch (nodePorts) {
    case 'known-addresses':
      return true;
    case 'any-local-address':
      return families.some((family) => !nodePortNetworks(settings, node, family).matchesAll);
  }
}

/** Warns about node ports on localhost. A bundle does not serve these, because no rule makes kube-proxy listen there. */
export function describeLocalhostListeners({ state, cluster }: CompiledSnapshot): readonly Finding[] {
  const handlingOf = findLocalhostHandling(state);
  const ports = cluster.servicePorts.filter(
    ({ family, protocol, nodePort: port }) => port !== 0 && handlingOf({ family, protocol, port }) === 'listens',
  );
  return diagnoseLoopbackPorts(ports, false);
}

/** Returns one warning for all nodes about node ports on localhost. Includes only Services that have endpoints. */
export function describeListenersOfNodes({ cluster, settings }: Prepared): readonly Finding[] {
  const named = new Set(
    families.filter((family) =>
      listensOnLocalhost(settings, nodePortNetworks(settings, { nodeIPs: loopbackAddresses }, family)),
    ),
  );
  const ports = cluster.servicePorts.filter(
    (port) =>
      named.has(port.family) &&
      port.protocol === 'TCP' &&
      port.nodePort !== 0 &&
      planTraffic(port, { name: '', zone: '' }).hasEndpoints,
  );
  return diagnoseLoopbackPorts(ports, true);
}

function diagnoseLoopbackPorts(listening: readonly ServicePort[], ofNodes: boolean): readonly Finding[] {
  const byPort = groupBy(listening, ({ label, nodePort }) => `${label} ${nodePort}`);
  return [...byPort.values()].flatMap((ports) => {
    const [first] = ports;
    if (!first) return [];
    const its = families.filter((family) => ports.some((port) => port.family === family));
    const details = { servicePort: first.label, nodePort: first.nodePort, families: its, ofNodes };
    return [diagnose('localhost-node-port', details, first.places?.nodePort)];
  });
}

export function checkNodeName(name: string): Finding | undefined {
  return isName(name, 'subdomain') ? undefined : wrongValue('--node', name, 'subdomain');
}
