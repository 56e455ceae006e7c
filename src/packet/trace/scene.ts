import { groupBy } from '../../cluster/group-by.ts';
import type { ServicePort } from '../../cluster/model.ts';
import { nodeAddresses } from '../../cluster/node-context.ts';
import type { ContainerPort, Ingress, Namespace, NetworkPolicy, Pod, Sourced } from '../../cluster/objects.ts';
import type { ShownPort } from '../../describe/shown-port.ts';
import type { AddressObjects } from '../../describe/describe-services.ts';
import type { Owners } from '../../diff/changes/owners.ts';
import type { Side } from '../../diff/compared-side.ts';
import type { PortAddress } from '../../diff/port-facts.ts';
import {
  addressBits,
  loopbackAddresses,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { Link } from '../../kernel/link/link.ts';
import { formatSocketAddress, parseSocketAddress, type SocketAddress } from '../../kernel/socket-address.ts';
import type { KernelState } from '../../kernel/state.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import { prepare, type Evaluator } from '../evaluate.ts';

/** Where packets are traced: one node with its state, and the Services that it serves. */
export interface Scene {
  readonly side: Side;
  readonly owners: Owners;
  /** The node's own, without those that kube-proxy makes. */
  readonly links: readonly Link[];
  readonly evaluate: Evaluator;
  readonly mode: ProxyMode | undefined;
  readonly ports: readonly KnownPort[];
  readonly objects: SceneObjects;
  /** Pods by "namespace/name". */
  readonly pods: ReadonlyMap<string, Pod>;
  /** What NetworkPolicies are about: Pods by address, and networks whose addresses are Pods'. */
  readonly policed: { readonly pods: ReadonlyMap<string, KnownPod>; readonly networks: readonly Network[] };
}

/** The objects of manifests that packets are traced among. */
export interface SceneObjects extends AddressObjects {
  readonly pods: readonly Sourced<Pod>[];
  readonly policies: readonly Sourced<NetworkPolicy>[];
  readonly ingresses: readonly Sourced<Ingress>[];
  readonly namespaces: readonly Sourced<Namespace>[];
}

const noObjects: SceneObjects = { services: [], nodes: [], pods: [], policies: [], ingresses: [], namespaces: [] };

/** A Service port, as manifests, a bundle or a dump shows it. */
export interface KnownPort extends Pick<ServicePort, 'family' | 'protocol' | 'affinitySeconds'> {
  /** "namespace/name" or "namespace/name:port"; of dumps without names, its address. */
  readonly label: string;
  readonly port: number | undefined;
  readonly addresses: readonly { readonly kind: PortAddress['kind']; readonly address: Address }[];
  readonly nodePort: number | undefined;
  /** Undefined for a dump, which does not show them. */
  readonly policies:
    { readonly externalLocal: boolean; readonly internalLocal: boolean; readonly hasSourceRanges: boolean } | undefined;
  /** Whether each is on this node; undefined if not known. */
  readonly endpoints: readonly (SocketAddress & { readonly isLocal: boolean | undefined })[];
}

/** Sets up a side. `decompiled` are the ports that a dump shows; a side that was compiled knows its own. */
export function sceneOf(
  side: Side,
  owners: Owners,
  mode: ProxyMode | undefined,
  decompiled: readonly ShownPort[],
  objects: SceneObjects = noObjects,
): Scene {
  const links = linksOfSide(side);
  const ports = side.services ? portsOfCluster(side.services) : decompiled.map(portOfDump);
  return {
    side,
    owners,
    links,
    evaluate: evaluatorOf(side, links, mode),
    mode,
    ports,
    objects,
    pods: new Map(objects.pods.map(({ object }) => [`${object.metadata.namespace}/${object.metadata.name}`, object])),
    policed: policedBy(objects, side.services?.settings.clusterCIDRs ?? [], ports),
  };
}

/** The "namespace/name" of the Service that a port is of. */
export function serviceOf({ label }: Pick<KnownPort, 'label'>): string {
  return label.replace(/:[^:/]*$/, '');
}

/** Whether an endpoint of some Service ports is on this node; undefined if not known. */
export function isLocalEndpoint(ports: readonly KnownPort[], endpoint: SocketAddress): boolean | undefined {
  const text = formatSocketAddress(endpoint);
  return ports.flatMap(({ endpoints }) => endpoints).find((each) => formatSocketAddress(each) === text)?.isLocal;
}

function otherTables({ doubts }: Side) {
  return doubts.flatMap((doubt) => (doubt.kind === 'other-table' ? [doubt] : []));
}

/** A side's state with the tables of other programs. */
export function wholeState(side: Side): KernelState {
  const others = otherTables(side).flatMap(({ tables = [] }) => tables);
  const tables = new Map(others.map((table) => [`${table.family} ${table.name}`, table]));
  return { ...side.state, nftables: [...side.state.nftables, ...tables.values()] };
}

/**
 * The rules of other programs take part. What a table does that kpc could not read as a whole is unknown, and the verdict
 * with it.
 */
function evaluatorOf(side: Side, links: readonly Link[], mode: ProxyMode | undefined): Evaluator {
  const evaluate = prepare(wholeState(side), links);
  const isKnown = otherTables(side).every(({ tables }) => tables);
  const decided = new Set(families.filter((family) => isKnown && listMissing(side, mode, family).length === 0));
  return (packet) => {
    const fate = evaluate(packet);
    return decided.has(packet.destination.family) ? fate : { ...fate, verdict: 'unknown', endpoints: [] };
  };
}

/** What a dump lacks of all that decides about a packet of a family, each as the command that prints it. */
export function listMissing({ coverage }: Side, mode: ProxyMode | undefined, family: Family): readonly string[] {
  const hasRules = coverage.iptables[family].includes('nat');
  const hasTables = coverage.nftables.includes(family);
  // Without a mode, either tool may have all the rules.
  if (!mode && (hasRules || hasTables)) return [];
  const kinds: ReadonlySet<string> = mode ? modeFacts[mode].kinds : new Set(['iptables', 'nftables']);
  const commands = [
    ['iptables', family === 'ipv4' ? 'iptables-save' : 'ip6tables-save', hasRules],
    ['nftables', 'nft list ruleset', hasTables],
    ['sets', 'ipset save', coverage.sets],
    ['virtualServers', 'ipvsadm -Sn', coverage.virtualServers],
    ['links', 'ip addr', coverage.links],
  ] as const;
  return commands.flatMap(([kind, command, isThere]) => (kinds.has(kind) && !isThere ? [command] : []));
}

/** Parts of a state that a dump may leave out, and that are then taken to be as on the other side. */
export const partsOfDump = ['sets', 'virtualServers', 'links', 'sysctls'] as const;

/** Two sides of one node: what one of them does not know, the node's own addresses first of all, it takes from the other. */
export function onOneNode(from: Scene, to: Scene): readonly [Scene, Scene] {
  return [complete(from, to), complete(to, from)];
}

function complete(scene: Scene, other: Scene): Scene {
  const { side } = scene;
  const missing = partsOfDump.filter((part) => !side.coverage[part] && other.side.coverage[part]);
  const knowsAddresses = scene.links.some(({ addresses }) => addresses.length > 0);
  if (missing.length === 0 && knowsAddresses) return scene;
  const taken = Object.fromEntries(missing.map((part) => [part, other.side.state[part]]));
  const shown = Object.fromEntries(missing.map((part) => [part, true]));
  const state: KernelState = { ...side.state, ...taken };
  const completed: Side = { ...side, state, coverage: { ...side.coverage, ...shown } };
  const links = knowsAddresses ? scene.links : other.links;
  return { ...scene, side: completed, links, evaluate: evaluatorOf(completed, links, scene.mode) };
}

/** The node's own links, as far as a side shows them: only a dump says which link has which address. */
export function linksOfSide({ state, services }: Side): readonly Link[] {
  if (!services) return state.links.filter(({ name }) => name !== serviceLink);
  const { hostAddresses, nodeIPs } = services.node;
  const own = hostAddresses.length > 0 ? hostAddresses : families.map((family) => nodeIPs[family]);
  const all = [...own, ...families.map((family) => loopbackAddresses[family])];
  const addresses = [...new Map(all.map((address) => [address.text, address])).values()];
  return [
    {
      name: 'node',
      addresses: addresses.map((address) => {
        return { family: address.family, address, prefixLength: addressBits[address.family] };
      }),
    },
  ];
}

function portsOfCluster({ cluster, node }: NonNullable<Side['services']>): readonly KnownPort[] {
  return cluster.servicePorts.map((port) => ({
    label: port.label,
    family: port.family,
    protocol: port.protocol,
    port: port.port,
    addresses: [
      { kind: 'cluster-ip', address: port.clusterIP },
      ...port.externalIPs.map((address) => ({ kind: 'external-ip', address }) as const),
      ...port.loadBalancerIPs.map((address) => ({ kind: 'load-balancer-ip', address }) as const),
    ],
    nodePort: port.nodePort || undefined,
    affinitySeconds: port.affinitySeconds,
    policies: {
      externalLocal: port.externalPolicyLocal,
      internalLocal: port.internalPolicyLocal,
      hasSourceRanges: port.sourceRanges.length > 0,
    },
    endpoints: port.endpoints.map(({ address, port: number, status }) => {
      return { address, port: number, isLocal: node.name === '' ? undefined : status.nodeName === node.name };
    }),
  }));
}

function portOfDump({ name, addresses, endpoints = [], ...port }: ShownPort): KnownPort {
  return {
    ...port,
    label: name,
    addresses: addresses.flatMap(({ kind, address: text }) => {
      const address = parseAddress(text);
      return address ? [{ kind, address }] : [];
    }),
    policies: undefined,
    endpoints: endpoints.flatMap(({ endpoint }) => {
      const socket = parseSocketAddress(endpoint);
      return socket ? [{ ...socket, isLocal: undefined }] : [];
    }),
  };
}

/** What is known of a Pod, or of what may be one. */
export interface KnownPod {
  /** Undefined if it is not known. */
  readonly namespace: string | undefined;
  readonly labels: KnownLabels;
  /** Its named ports; undefined if they are not known. */
  readonly ports: readonly ContainerPort[] | undefined;
  readonly nodeName: string;
}

/** Labels of a Pod, as far as they are known. */
export interface KnownLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** Whether there are no others. */
  readonly isWhole: boolean;
}

/**
 * What policies are about. Of an endpoint whose Pod is not in the input, its Service's selector says some of the labels.
 * What runs in a host's network is no Pod to network plugins.
 */
function policedBy(
  { policies, pods, services, nodes }: SceneObjects,
  clusterCIDRs: readonly string[],
  ports: readonly KnownPort[],
): Scene['policed'] {
  const known = new Map<string, KnownPod>();
  if (policies.length === 0) return { pods: known, networks: [] };
  const ofServices = groupBy(ports, serviceOf);
  for (const { object } of services) {
    const { namespace, name } = object.metadata;
    if (!object.spec.selector) continue;
    const labels = { labels: object.spec.selector, isWhole: false };
    for (const { address } of ofServices.get(`${namespace}/${name}`)?.flatMap(({ endpoints }) => endpoints) ?? [])
      known.set(address.text, { namespace, labels, ports: undefined, nodeName: '' });
  }
  for (const { object } of pods) {
    const { metadata, spec, status } = object;
    if (spec.hostNetwork || !status || status.ended) continue;
    const labels = { labels: metadata.labels, isWhole: true };
    const pod = { namespace: metadata.namespace, labels, ports: spec.ports, nodeName: spec.nodeName };
    for (const { text } of status.addresses) known.set(text, pod);
  }
  for (const { object } of nodes) for (const { text } of nodeAddresses(object)) known.delete(text);
  const networks = [...clusterCIDRs, ...nodes.flatMap(({ object }) => object.podCIDRs)];
  return { pods: known, networks: networks.flatMap((text) => parseNetwork(text.trim()) ?? []) };
}
