import type { Owners } from '../../diff/changes/owners.ts';
import type { ServiceHealthCheck } from '../../cluster/model.ts';
import { nodeAddresses } from '../../cluster/node-context.ts';
import type {
  Ingress,
  Namespace,
  NetworkPolicy,
  Node,
  Pod,
  Service,
  Sourced,
  ContainerPort,
} from '../../cluster/objects.ts';
import type { ShownPort } from '../../describe/shown-port.ts';
import type { AddressObjects } from '../../describe/find-ports.ts';
import type { Side } from '../../diff/compared-side.ts';
import {
  addressBits,
  loopbackAddresses,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import { families, type Family, type Protocol } from '../../kernel/family.ts';
import type { Link } from '../../kernel/link/link.ts';
import type { KernelState } from '../../kernel/state.ts';
import { parseSocketAddress, type SocketAddress } from '../../kernel/socket-address.ts';
import { serviceLink } from '../../kube-proxy/service-link.ts';
import { modeFacts, type ProxyMode } from '../../kube-proxy/modes.ts';
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
  /** Pods by "namespace/name". */
  readonly pods: ReadonlyMap<string, Pod>;
  readonly ingresses: readonly Sourced<Ingress>[];
  readonly objects: AddressObjects;
  readonly policing: Policing;
  readonly healthChecks: readonly ServiceHealthCheck[];
}

/** What NetworkPolicies are evaluated with. */
interface Policing {
  readonly policies: readonly Sourced<NetworkPolicy>[];
  readonly namespaces: readonly Sourced<Namespace>[];
  /** By address. */
  readonly pods: ReadonlyMap<string, KnownPod>;
  /** Networks whose addresses are Pods'. */
  readonly networks: readonly Network[];
}

/** The objects of manifests that packets are traced among. */
export interface SceneObjects {
  readonly services: readonly Sourced<Service>[];
  readonly nodes: readonly Sourced<Node>[];
  readonly pods: readonly Sourced<Pod>[];
  readonly policies: readonly Sourced<NetworkPolicy>[];
  readonly ingresses: readonly Sourced<Ingress>[];
  readonly namespaces: readonly Sourced<Namespace>[];
}

const noObjects: SceneObjects = {
  services: [],
  nodes: [],
  pods: [],
  policies: [],
  ingresses: [],
  namespaces: [],
};

/** A Service port, as manifests, a bundle or a dump shows it. */
export interface KnownPort {
  /** "namespace/name" or "namespace/name:port"; of dumps without names, its address. */
  readonly label: string;
  readonly family: Family;
  readonly protocol: Protocol;
  readonly port: number | undefined;
  readonly addresses: readonly KnownAddress[];
  readonly nodePort: number | undefined;
  readonly healthCheckNodePort: number | undefined;
  /** Seconds of session affinity by client address. */
  readonly affinitySeconds: number | undefined;
  /** Undefined of a dump, which does not show them. */
  readonly policies: Policies | undefined;
  readonly endpoints: readonly KnownEndpoint[];
}

/** What a Service port says of traffic. */
interface Policies {
  readonly externalLocal: boolean;
  readonly internalLocal: boolean;
  readonly hasSourceRanges: boolean;
}

interface KnownAddress {
  readonly kind: 'cluster-ip' | 'external-ip' | 'load-balancer-ip' | 'unknown';
  readonly address: Address;
}

interface KnownEndpoint extends SocketAddress {
  /** Undefined if not known. */
  readonly isLocal: boolean | undefined;
}

/** Sets up a side. `ports` are those that a dump shows; a side that was compiled knows its own. */
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
    pods: new Map(objects.pods.map(({ object }) => [`${object.metadata.namespace}/${object.metadata.name}`, object])),
    ingresses: objects.ingresses,
    objects,
    policing: policingOf(side, objects, ports),
    healthChecks: side.services?.cluster.healthChecks ?? [],
  };
}

function otherTables({ doubts }: Side) {
  return doubts.flatMap((doubt) => (doubt.kind === 'other-table' ? [doubt] : []));
}

/** A side's state with the tables of other programs. */
export function wholeState(side: Side): KernelState {
  const tables = new Map(
    otherTables(side)
      .flatMap(({ tables: own = [] }) => own)
      .map((table) => [`${table.family} ${table.name}`, table]),
  );
  return { ...side.state, nftables: [...side.state.nftables, ...tables.values()] };
}

/**
 * The rules of other programs take part. What a table does that kpc could not read as a whole is unknown, and the verdict
 * with it.
 */
function evaluatorOf(side: Side, links: readonly Link[], mode: ProxyMode | undefined): Evaluator {
  const others = otherTables(side);
  const evaluate = prepare(wholeState(side), links);
  const isKnown = others.every(({ tables: own }) => own);
  const decided = new Set(families.filter((family) => isKnown && listMissing(side, mode, family).length === 0));
  return (packet) => {
    const fate = evaluate(packet);
    return decided.has(packet.destination.family) ? fate : { ...fate, verdict: 'unknown', endpoints: [] };
  };
}

/** What a dump lacks of all that decides about a packet of a family, each as the command that prints it. */
export function listMissing({ coverage }: Side, mode: ProxyMode | undefined, family: Family): readonly string[] {
  const rules = coverage.iptables[family].includes('nat')
    ? []
    : [family === 'ipv4' ? 'iptables-save' : 'ip6tables-save'];
  const tables = coverage.nftables.includes(family) ? [] : ['nft list ruleset'];
  if (!mode) return rules.length > 0 && tables.length > 0 ? [...rules, ...tables] : [];
  const { kinds } = modeFacts[mode];
  return [
    ...(kinds.has('iptables') ? rules : []),
    ...(kinds.has('nftables') ? tables : []),
    ...(kinds.has('sets') && !coverage.sets ? ['ipset save'] : []),
    ...(kinds.has('virtualServers') && !coverage.virtualServers ? ['ipvsadm -Sn'] : []),
    ...(kinds.has('links') && !coverage.links ? ['ip addr'] : []),
  ];
}

function policingOf(
  { services: compiled }: Side,
  { policies, namespaces, pods, services, nodes }: SceneObjects,
  ports: readonly KnownPort[],
): Policing {
  if (policies.length === 0) return { policies, namespaces, pods: new Map(), networks: [] };
  const endpoints = new Map<string, KnownEndpoint[]>();
  for (const port of ports) {
    const name = serviceOf(port);
    endpoints.set(name, [...(endpoints.get(name) ?? []), ...port.endpoints]);
  }
  const hosts = new Set(nodes.flatMap(({ object }) => nodeAddresses(object).map(({ text }) => text)));
  const networks = [
    ...(compiled?.settings.clusterCIDRs ?? []),
    ...nodes.flatMap(({ object }) => object.podCIDRs),
  ].flatMap((text) => parseNetwork(text.trim()) ?? []);
  return { policies, namespaces, pods: indexPods(pods, services, endpoints, hosts), networks };
}

/** The "namespace/name" of the Service that a port is of. */
export function serviceOf({ label }: Pick<KnownPort, 'label'>): string {
  return label.replace(/:[^:/]*$/, '');
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
  const state: KernelState = { ...side.state, ...taken };
  const told = Object.fromEntries(missing.map((part) => [part, true]));
  const completed: Side = { ...side, state, coverage: { ...side.coverage, ...told } };
  const links = knowsAddresses ? scene.links : other.links;
  return { ...scene, side: completed, links, evaluate: evaluatorOf(completed, links, scene.mode) };
}

/** The node's own links, as far as a side shows them: only a dump says which link has which address. */
export function linksOfSide({ state, services }: Side): readonly Link[] {
  return services ? [nodeLink(services.node)] : state.links.filter(({ name }) => name !== serviceLink);
}

function nodeLink({ hostAddresses, nodeIPs }: NonNullable<Side['services']>['node']): Link {
  const own = hostAddresses.length > 0 ? hostAddresses : families.map((family) => nodeIPs[family]);
  const all = [...own, ...families.map((family) => loopbackAddresses[family])];
  return {
    name: 'node',
    addresses: [...new Map(all.map((address) => [address.text, address])).values()].map((address) => ({
      family: address.family,
      address,
      prefixLength: addressBits[address.family],
    })),
  };
}

function portsOfCluster({ cluster, node }: NonNullable<Side['services']>): readonly KnownPort[] {
  return cluster.servicePorts.map((port) => {
    const at = (kind: KnownAddress['kind']) => (address: Address) => ({ kind, address });
    return {
      label: port.label,
      family: port.family,
      protocol: port.protocol,
      port: port.port,
      addresses: [
        { kind: 'cluster-ip', address: port.clusterIP },
        ...port.externalIPs.map(at('external-ip')),
        ...port.loadBalancerIPs.map(at('load-balancer-ip')),
      ],
      nodePort: port.nodePort || undefined,
      healthCheckNodePort: port.healthCheckNodePort || undefined,
      affinitySeconds: port.affinitySeconds,
      policies: {
        externalLocal: port.externalPolicyLocal,
        internalLocal: port.internalPolicyLocal,
        hasSourceRanges: port.sourceRanges.length > 0,
      },
      endpoints: port.endpoints.map(({ address, port: number, status }) => ({
        address,
        port: number,
        isLocal: node.name === '' ? undefined : status.nodeName === node.name,
      })),
    };
  });
}

function portOfDump(port: ShownPort): KnownPort {
  return {
    label: port.name,
    family: port.family,
    protocol: port.protocol,
    port: port.port,
    addresses: port.addresses.flatMap(({ kind, address: text }) => {
      const address = parseAddress(text);
      return address ? [{ kind, address }] : [];
    }),
    nodePort: port.nodePort,
    healthCheckNodePort: port.healthCheckNodePort,
    affinitySeconds: port.affinitySeconds,
    policies: undefined,
    endpoints: (port.endpoints ?? []).flatMap(({ endpoint }) => {
      const socket = parseSocketAddress(endpoint);
      return socket ? [{ ...socket, isLocal: undefined }] : [];
    }),
  };
}

/** What is known of a Pod, or of what may be one. */
export interface KnownPod {
  /** Undefined where it is not known. */
  readonly namespace: string | undefined;
  readonly labels: KnownLabels;
  /** Its named ports; undefined where they are not known. */
  readonly ports: readonly ContainerPort[] | undefined;
  readonly nodeName: string;
}

export interface KnownLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** Whether there are no others. */
  readonly isWhole: boolean;
}

/**
 * The Pods by their addresses. Of an endpoint whose Pod is not in the input, its Service's selector says some of the
 * labels. What runs in a host's network is no Pod to network plugins.
 */
function indexPods(
  pods: readonly Sourced<Pod>[],
  services: readonly Sourced<Service>[],
  /** Service, as "namespace/name" → its endpoints. */
  endpoints: ReadonlyMap<string, readonly SocketAddress[]>,
  hosts: ReadonlySet<string>,
): ReadonlyMap<string, KnownPod> {
  const known = new Map<string, KnownPod>();
  for (const { object } of services) {
    const { metadata, spec } = object;
    if (!spec.selector) continue;
    const labels = { labels: spec.selector, isWhole: false };
    for (const { address } of endpoints.get(`${metadata.namespace}/${metadata.name}`) ?? []) {
      known.set(address.text, { namespace: metadata.namespace, labels, ports: undefined, nodeName: '' });
    }
  }
  for (const { object } of pods) {
    const { metadata, spec, status } = object;
    if (spec.hostNetwork || !status || status.ended) continue;
    const labels = { labels: metadata.labels, isWhole: true };
    const pod = { namespace: metadata.namespace, labels, ports: spec.ports, nodeName: spec.nodeName };
    for (const { text } of status.addresses) known.set(text, pod);
  }
  for (const host of hosts) known.delete(host);
  return known;
}
