import { groupBy } from '../../cluster/group-by.ts';
import type { LabelSelector, NetworkPolicy, PolicyPeer, PolicyPort, Sourced } from '../../cluster/objects.ts';
import { compareAddresses, contains, isLoopback, type Address } from '../../kernel/address.ts';
import type { Location } from '../../kernel/place.ts';
import { formatSocketAddress, type SocketAddress } from '../../kernel/socket-address.ts';
import { all, anyOf, allOf, type Maybe } from '../maybe.ts';
import type { PacketProtocol } from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import type { Trace } from './question.ts';
import type { KnownLabels, KnownPod, Scene } from './scene.ts';

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
  readonly endpoints: readonly SocketAddress[];
}

interface Connection {
  readonly client: Address | undefined;
  readonly server: SocketAddress;
  readonly protocol: PacketProtocol;
}

/** What the input's NetworkPolicies make of a packet that gets to Pods: nothing if they allow it. */
export function judgePolicies({ sender, target, fate }: Trace, scene: Scene): readonly PolicyFinding[] {
  if (scene.objects.policies.length === 0) return [];
  const { protocol } = target;
  const client = sender.address;
  const forwarded = fate.verdict === 'forwarded' ? [{ ...target, source: fate.source }] : [];
  const found = (fate.verdict === 'delivered' ? fate.endpoints : forwarded).flatMap((end) => {
    const { address, port, source } = end;
    // No policy keeps a Pod from itself.
    if (client?.text === address.text) return [];
    const server = { address, port };
    const egress = client && judge('egress', podAt(client, scene), { client, server, protocol }, scene);
    const ingress = clientsSeen(source, client, server, scene).map((seen) =>
      isOnThisNode(server, scene) && isOfNode(seen, scene)
        ? allowed
        : judge('ingress', podAt(address, scene), { client: seen, server, protocol }, scene),
    );
    return [...(egress ? finding('egress', [egress], server) : []), ...finding('ingress', ingress, server)];
  });
  // One finding for all endpoints that it is the same for.
  const groups = groupBy(found, (each) =>
    [each.direction, each.verdict, ...each.policies.map(({ name }) => name)].join(' '),
  );
  return [...groups.values()].map((group): PolicyFinding => {
    const ends = new Map(group.flatMap(({ endpoints }) => endpoints).map((end) => [formatSocketAddress(end), end]));
    const endpoints = [...ends.values()].sort((a, b) => compareAddresses(a.address, b.address) || a.port - b.port);
    return { ...(group[0] as PolicyFinding), endpoints };
  });
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

/** What comes from a Pod's own node always gets there. */
function isOnThisNode({ address }: SocketAddress, { ports, policed, side }: Scene): boolean {
  const nodeName = policed.pods.get(address.text)?.nodeName;
  if (nodeName) return nodeName === side.services?.node.name;
  const endpoints = ports.flatMap((port) => port.endpoints);
  return endpoints.some((each) => each.isLocal === true && each.address.text === address.text);
}

function finding(
  direction: PolicyFinding['direction'],
  [first = allowed, asNode = first]: readonly Judgement[],
  server: SocketAddress,
): readonly PolicyFinding[] {
  const of = (verdict: PolicyFinding['verdict'], { policies }: Judgement): readonly PolicyFinding[] => {
    const named = policies.map(({ object: { metadata }, source }) => {
      return { name: `${metadata.namespace}/${metadata.name}`, place: source.place([]).locate() };
    });
    return [{ direction, verdict, policies: named, endpoints: [server] }];
  };
  if (first.allowed === undefined) return of('unknown', first);
  if (asNode.allowed === undefined) return of('unknown', asNode);
  if (asNode.allowed === first.allowed) return first.allowed ? [] : of('refused', first);
  return first.allowed ? of('refused-node', asNode) : of('refused-client', first);
}

/** A Pod that a policy selects has only the connections that one of the policies that select it allows. */
function judge(
  direction: 'ingress' | 'egress',
  pod: KnownPod | undefined,
  connection: Connection,
  scene: Scene,
): Judgement {
  if (pod?.namespace === undefined) return allowed;
  const selecting = scene.objects.policies
    .filter(({ object }) => object.metadata.namespace === pod.namespace && object[direction] !== undefined)
    .map((policy) => ({
      policy,
      selects: matches(policy.object.podSelector, pod.labels),
      allows: allows(policy.object, direction, connection, scene),
    }))
    .filter(({ selects }) => selects !== false);
  if (selecting.every((each) => each.selects === undefined && each.allows === true)) return allowed;
  const isAllowed = anyOf(selecting, (each) => all(each.selects, each.allows));
  if (isAllowed) return allowed;
  const isIsolated = selecting.some(({ selects }) => selects);
  return { allowed: isIsolated ? isAllowed : undefined, policies: selecting.map(({ policy }) => policy) };
}

function allows(policy: NetworkPolicy, direction: 'ingress' | 'egress', connection: Connection, scene: Scene): Maybe {
  const peer = direction === 'ingress' ? connection.client : connection.server.address;
  return anyOf(policy[direction] ?? [], ({ peers, ports }) =>
    all(
      peers.length === 0 || anyOf(peers, (each) => isPeer(each, peer, policy.metadata.namespace, scene)),
      ports.length === 0 || anyOf(ports, (each) => isPort(each, connection, scene)),
    ),
  );
}

function isPeer(peer: PolicyPeer, address: Address | undefined, namespace: string, scene: Scene): Maybe {
  if (!address) return undefined;
  if (peer.kind === 'block') {
    const { network, except } = peer;
    return network !== undefined && contains(network, address) && !except.some((each) => contains(each, address));
  }
  const pod = podAt(address, scene);
  if (!pod) return false;
  const isInNamespace = pod.namespace === undefined ? undefined : pod.namespace === namespace;
  return all(
    peer.namespaces ? matches(peer.namespaces, labelsOfNamespace(pod.namespace, scene)) : isInNamespace,
    matches(peer.pods, pod.labels),
  );
}

/** kube-apiserver puts its name on every Namespace. */
function labelsOfNamespace(name: string | undefined, { objects }: Scene): KnownLabels {
  if (name === undefined) return { labels: {}, isWhole: false };
  const known = objects.namespaces.find(({ object }) => object.metadata.name === name);
  return {
    labels: { ...known?.object.metadata.labels, 'kubernetes.io/metadata.name': name },
    isWhole: known !== undefined,
  };
}

/** A rule about ports says nothing of pings, which plugins treat each in their own way. */
function isPort({ protocol, port, endPort }: PolicyPort, connection: Connection, scene: Scene): Maybe {
  const { server } = connection;
  if (connection.protocol === 'icmp') return undefined;
  if (protocol.toLowerCase() !== connection.protocol) return false;
  if (port === undefined) return true;
  if (typeof port === 'number') return port <= server.port && server.port <= (endPort ?? port);
  const pod = podAt(server.address, scene);
  if (!pod) return false;
  return pod.ports?.some((each) => each.name === port && each.protocol === protocol && each.port === server.port);
}

/** What is at an address: a Pod of the input, one that is not known, or undefined for what is no Pod. */
function podAt(address: Address, { policed: { pods, networks } }: Scene): KnownPod | undefined {
  const pod = pods.get(address.text);
  if (pod || !networks.some((network) => contains(network, address))) return pod;
  return { namespace: undefined, labels: { labels: {}, isWhole: false }, ports: undefined, nodeName: '' };
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
