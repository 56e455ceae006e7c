import { nodeAddresses } from '../../cluster/node-context.ts';
import type {
  ContainerPort,
  LabelSelector,
  NetworkPolicy,
  PolicyPeer,
  PolicyPort,
  Sourced,
} from '../../cluster/objects.ts';
import { contains, isLoopback, parseNetwork, type Address, type Network } from '../../kernel/address.ts';
import type { Location } from '../../kernel/place.ts';
import { formatSocketAddress, parseSocketAddress, type SocketAddress } from '../../kernel/socket-address.ts';
import { all, anyOf, allOf, type Maybe } from '../maybe.ts';
import type { PacketProtocol } from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import type { Trace } from './question.ts';
import { isLocalEndpoint, serviceOf, type Scene } from './scene.ts';

/** Policies that may or do refuse what kube-proxy delivers. */
export interface PolicyFinding {
  /** ingress: at the endpoints' Pods; egress: at the sender's. */
  readonly direction: 'ingress' | 'egress';
  /**
   * - refused: whatever the network plugin sees as the client
   * - refused-node, refused-client: if it sees the node's address as the client, or the client before masquerading
   * - unknown: the input does not hold all labels that they ask for
   */
  readonly verdict: 'refused' | 'refused-node' | 'refused-client' | 'unknown';
  readonly policies: readonly { readonly name: string; readonly place: Location }[];
  /** By "ip:port". */
  readonly endpoints: Map<string, SocketAddress>;
}

interface Connection {
  readonly client: Address | undefined;
  readonly server: SocketAddress;
  readonly protocol: PacketProtocol;
}

/** What the input's NetworkPolicies make of a packet that gets to Pods: nothing if they allow it. */
export function judgePolicies({ sender, target, fate }: Trace, scene: Scene): readonly PolicyFinding[] {
  if (scene.objects.policies.length === 0) return [];
  const known = knownPods(scene);
  const client = sender.address;
  const findings = new Map<string, PolicyFinding>();
  const add = (
    direction: PolicyFinding['direction'],
    server: SocketAddress,
    judgements: readonly Judgement[],
  ): void => {
    const [verdict, policies] = sumUp(judgements);
    if (!verdict) return;
    const named = policies.map(({ object: { metadata }, source }) => {
      return { name: `${metadata.namespace}/${metadata.name}`, place: source.place([]).locate() };
    });
    const key = [direction, verdict, ...named.map(({ name }) => name)].join(' ');
    const finding = findings.get(key) ?? { direction, verdict, policies: named, endpoints: new Map() };
    findings.set(key, finding);
    finding.endpoints.set(formatSocketAddress(server), server);
  };
  const forwarded = fate.verdict === 'forwarded' ? [{ ...target, source: fate.source }] : [];
  for (const { address, port, source } of fate.verdict === 'delivered' ? fate.endpoints : forwarded) {
    // No policy keeps a Pod from itself.
    if (client?.text === address.text) continue;
    const server = { address, port };
    const judge = (direction: PolicyFinding['direction'], seen: Address | undefined, pod: KnownPod | undefined) =>
      judgePod(direction, pod, { client: seen, server, protocol: target.protocol }, scene, known);
    if (client) add('egress', server, [judge('egress', client, podAt(client, known))]);
    const pod = podAt(address, known);
    // What comes from a Pod's own node always gets there.
    const isHere = pod?.nodeName ? pod.nodeName === scene.side.services?.node.name : isLocalEndpoint(scene, server);
    const ingress = clientsSeen(source, client, server, scene).map((seen) =>
      isHere && isOfNode(seen, scene) ? allowed : judge('ingress', seen, pod),
    );
    add('ingress', server, ingress);
  }
  return [...findings.values()];
}

interface Judgement {
  readonly allowed: Maybe;
  readonly policies: readonly Sourced<NetworkPolicy>[];
}

const allowed: Judgement = { allowed: true, policies: [] };

/** Whom the plugin may see as the client: itself, or the node where kube-proxy masquerades. */
function clientsSeen(
  source: Address | 'masqueraded',
  client: Address | undefined,
  { address }: SocketAddress,
  scene: Scene,
): readonly (Address | undefined)[] {
  if (source !== 'masqueraded') return [isUnknownOwn(source) ? undefined : source];
  const known = scene.side.services?.node.nodeIPs[address.family];
  // One that is not known is a loopback address there.
  const node = known && isLoopback(known) ? undefined : known;
  return isOfNode(client, scene) ? [node] : [client, node];
}

function isOfNode(address: Address | undefined, { links }: Scene): boolean {
  return address === undefined || links.some((link) => link.addresses.some((own) => own.address.text === address.text));
}

/** What comes out for one client that the plugin may see, or two: the client, and the node. */
function sumUp([first = allowed, asNode = first]: readonly Judgement[]): readonly [
  PolicyFinding['verdict'] | undefined,
  Judgement['policies'],
] {
  const doubtful = [first, asNode].find((each) => each.allowed === undefined);
  if (doubtful) return ['unknown', doubtful.policies];
  if (asNode.allowed === first.allowed) return [first.allowed ? undefined : 'refused', first.policies];
  return first.allowed ? ['refused-node', asNode.policies] : ['refused-client', first.policies];
}

/** A Pod that a policy selects has only the connections that one of the policies that select it allows. */
function judgePod(
  direction: 'ingress' | 'egress',
  pod: KnownPod | undefined,
  connection: Connection,
  scene: Scene,
  known: KnownPods,
): Judgement {
  if (pod?.namespace === undefined) return allowed;
  const selecting = scene.objects.policies
    .filter(({ object }) => object.metadata.namespace === pod.namespace && object[direction] !== undefined)
    .map((policy) => ({
      policy,
      selects: matches(policy.object.podSelector, pod),
      allows: allows(policy.object, direction, connection, known),
    }))
    .filter(({ selects }) => selects !== false);
  if (selecting.every((each) => each.selects === undefined && each.allows === true)) return allowed;
  const isAllowed = anyOf(selecting, (each) => all(each.selects, each.allows));
  if (isAllowed) return allowed;
  const isIsolated = selecting.some(({ selects }) => selects);
  return { allowed: isIsolated ? isAllowed : undefined, policies: selecting.map(({ policy }) => policy) };
}

function allows(
  policy: NetworkPolicy,
  direction: 'ingress' | 'egress',
  connection: Connection,
  known: KnownPods,
): Maybe {
  const peer = direction === 'ingress' ? connection.client : connection.server.address;
  return anyOf(policy[direction] ?? [], ({ peers, ports }) =>
    all(
      peers.length === 0 || anyOf(peers, (each) => isPeer(each, peer, policy.metadata.namespace, known)),
      ports.length === 0 || anyOf(ports, (each) => isPort(each, connection, known)),
    ),
  );
}

function isPeer(peer: PolicyPeer, address: Address | undefined, namespace: string, known: KnownPods): Maybe {
  if (!address) return undefined;
  if (peer.kind === 'block') {
    const { network, except } = peer;
    return network !== undefined && contains(network, address) && !except.some((each) => contains(each, address));
  }
  const pod = podAt(address, known);
  if (!pod) return false;
  const own = pod.namespace;
  const isInNamespace = own === undefined ? undefined : own === namespace;
  return all(
    peer.namespaces ? matches(peer.namespaces, known.labelsOfNamespace(own)) : isInNamespace,
    matches(peer.pods, pod),
  );
}

/** A rule about ports says nothing of pings, which plugins treat each in their own way. */
function isPort({ protocol, port, endPort }: PolicyPort, connection: Connection, known: KnownPods): Maybe {
  const { server } = connection;
  if (connection.protocol === 'icmp') return undefined;
  if (protocol.toLowerCase() !== connection.protocol) return false;
  if (port === undefined) return true;
  if (typeof port === 'number') return port <= server.port && server.port <= (endPort ?? port);
  const pod = podAt(server.address, known);
  if (!pod) return false;
  return pod.ports?.some((each) => each.name === port && each.protocol === protocol && each.port === server.port);
}

/** Labels as far as they are known. */
interface KnownLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** Whether there are no others. */
  readonly isWhole: boolean;
}

function matches(selector: LabelSelector, { labels, isWhole }: KnownLabels): Maybe {
  return allOf(selector, ({ key, operator, values }) => {
    const isThere = Object.hasOwn(labels, key);
    if (!isThere && !isWhole) return undefined;
    const isListed = isThere && values.includes(labels[key] ?? '');
    const results = new Map([
      ['In', isListed],
      ['NotIn', !isListed],
      ['Exists', isThere],
      ['DoesNotExist', !isThere],
    ]);
    return results.get(operator);
  });
}

/** What is known of a Pod, or of what may be one. */
interface KnownPod extends KnownLabels {
  /** Undefined if it is not known. */
  readonly namespace: string | undefined;
  /** Its named ports; undefined if they are not known. */
  readonly ports: readonly ContainerPort[] | undefined;
  readonly nodeName: string;
}

/** What policies are about. */
interface KnownPods {
  readonly byAddress: ReadonlyMap<string, KnownPod>;
  /** Whose addresses are Pods'. */
  readonly networks: readonly Network[];
  readonly labelsOfNamespace: (name: string | undefined) => KnownLabels;
}

const unknown: KnownPod = { namespace: undefined, labels: {}, isWhole: false, ports: undefined, nodeName: '' };

/** What is at an address: a Pod of the input, one that is not known, or undefined for what is no Pod. */
function podAt(address: Address, { byAddress, networks }: KnownPods): KnownPod | undefined {
  return byAddress.get(address.text) ?? (networks.some((each) => contains(each, address)) ? unknown : undefined);
}

/**
 * The Pods of the input. Of an endpoint whose Pod is not among them, its Service's selector says some of the labels. What
 * runs in a host's network is no Pod to network plugins.
 */
function knownPods({ objects: { pods, services, nodes, namespaces }, ports, side }: Scene): KnownPods {
  const known = new Map<string, KnownPod>();
  const selectors = new Map(
    services.map(({ object: { metadata, spec } }) => [`${metadata.namespace}/${metadata.name}`, spec.selector]),
  );
  for (const { name, endpoints = [] } of ports) {
    const service = serviceOf(name);
    const labels = selectors.get(service);
    if (!labels) continue;
    const pod = { ...unknown, namespace: service.replace(/\/.*/, ''), labels };
    for (const { endpoint } of endpoints) known.set(parseSocketAddress(endpoint)?.address.text ?? '', pod);
  }
  for (const { object } of pods) {
    const { metadata, spec, status } = object;
    if (spec.hostNetwork || !status || status.ended) continue;
    const { namespace, labels } = metadata;
    const pod = { namespace, labels, isWhole: true, ports: spec.ports, nodeName: spec.nodeName };
    for (const { text } of status.addresses) known.set(text, pod);
  }
  for (const { object } of nodes) for (const { text } of nodeAddresses(object)) known.delete(text);
  const cidrs = [...(side.services?.settings.clusterCIDRs ?? []), ...nodes.flatMap(({ object }) => object.podCIDRs)];
  return {
    byAddress: known,
    networks: cidrs.flatMap((text) => parseNetwork(text.trim()) ?? []),
    labelsOfNamespace: (name) => {
      if (name === undefined) return unknown;
      const own = namespaces.find(({ object }) => object.metadata.name === name);
      // kube-apiserver puts its name on every Namespace.
      const labels = { ...own?.object.metadata.labels, 'kubernetes.io/metadata.name': name };
      return { labels, isWhole: own !== undefined };
    },
  };
}
