import type { LabelSelector, NetworkPolicy, PolicyPeer, PolicyPort, Sourced } from '../../cluster/objects.ts';
import { compareAddresses, contains, isLoopback, type Address } from '../../kernel/address.ts';
import type { Location } from '../../kernel/place.ts';
import { type SocketAddress, formatSocketAddress } from '../../kernel/socket-address.ts';
import type { PacketProtocol } from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import type { Trace } from './question.ts';
import type { Scene, KnownLabels, KnownPod } from './scene.ts';
import { allOf, anyOf, type Maybe } from '../maybe.ts';

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

/** What the input's NetworkPolicies make of a packet that gets to Pods: nothing where they allow it. */
export function judgePolicies({ sender, target, fate }: Trace, scene: Scene): readonly PolicyFinding[] {
  if (scene.policing.policies.length === 0) return [];
  const { protocol } = target;
  const ends =
    fate.verdict === 'delivered'
      ? fate.endpoints
      : fate.verdict === 'forwarded'
        ? [{ address: target.address, port: target.port, source: fate.source }]
        : [];
  const found = ends.flatMap((end): readonly PolicyFinding[] => {
    const at = (client: Address | undefined): Connection => ({ client, server: end, protocol });
    const own = sender.address;
    // No policy keeps a Pod from itself.
    if (own?.text === end.address.text) return [];
    return [
      ...(own ? finding('egress', [judge('egress', podAt(own, scene), at(own), scene)], end) : []),
      ...finding('ingress', judgeArrival(end, own, at, scene), end),
    ];
  });
  return group(found);
}

interface Judgement {
  readonly allowed: Maybe;
  readonly policies: readonly Sourced<NetworkPolicy>[];
}

const allowed: Judgement = { allowed: true, policies: [] };

/** As the plugin may see the client: itself, or as the node's address. What comes from a Pod's own node always gets there. */
function judgeArrival(
  end: SocketAddress & { readonly source: Address | 'masqueraded' },
  client: Address | undefined,
  at: (client: Address | undefined) => Connection,
  scene: Scene,
): readonly [Judgement, Judgement?] {
  const pod = podAt(end.address, scene);
  const isHere = isOnThisNode(end, scene);
  const seen = (address: Address | undefined): Judgement =>
    isHere && isOfNode(address, scene) ? allowed : judge('ingress', pod, at(address), scene);
  if (end.source !== 'masqueraded') return [seen(isUnknownOwn(end.source) ? undefined : end.source)];
  const known = scene.side.services?.node.nodeIPs[end.address.family];
  // One that is not known is a loopback address there.
  const node = known && isLoopback(known) ? undefined : known;
  return client && !isOfNode(client, scene) ? [seen(client), seen(node)] : [seen(node)];
}

function isOfNode(address: Address | undefined, { links }: Scene): boolean {
  return address === undefined || links.some((link) => link.addresses.some((own) => own.address.text === address.text));
}

function isOnThisNode({ address }: SocketAddress, { ports, policing, side }: Scene): boolean {
  const nodeName = policing.pods.get(address.text)?.nodeName;
  if (nodeName) return nodeName === side.services?.node.name;
  return ports.some(({ endpoints }) =>
    endpoints.some((each) => each.isLocal === true && each.address.text === address.text),
  );
}

function finding(
  direction: PolicyFinding['direction'],
  [first, asNode]: readonly [Judgement, Judgement?],
  { address, port }: SocketAddress,
): readonly PolicyFinding[] {
  const of = (verdict: PolicyFinding['verdict'], { policies }: Judgement): readonly PolicyFinding[] => [
    {
      direction,
      verdict,
      policies: policies.map(({ object, source }) => ({ name: nameOf(object), place: source.place([]).locate() })),
      endpoints: [{ address, port }],
    },
  ];
  if (first.allowed === undefined) return of('unknown', first);
  if (!asNode || asNode.allowed === first.allowed) return first.allowed ? [] : of('refused', first);
  if (asNode.allowed === undefined) return of('unknown', asNode);
  return first.allowed ? of('refused-node', asNode) : of('refused-client', first);
}

function nameOf({ metadata }: NetworkPolicy): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** One finding for all endpoints that it is the same for. */
function group(found: readonly PolicyFinding[]): readonly PolicyFinding[] {
  const groups = new Map<string, PolicyFinding>();
  for (const each of found) {
    const key = [each.direction, each.verdict, ...each.policies.map(({ name }) => name)].join(' ');
    const endpoints = [...(groups.get(key)?.endpoints ?? []), ...each.endpoints];
    const texts = new Map(endpoints.map((end) => [formatSocketAddress(end), end]));
    groups.set(key, {
      ...each,
      endpoints: [...texts.values()].sort((a, b) => compareAddresses(a.address, b.address) || a.port - b.port),
    });
  }
  return [...groups.values()];
}

/** A Pod that a policy selects has only the connections that one of the policies that select it allows. */
function judge(
  direction: 'ingress' | 'egress',
  pod: KnownPod | undefined,
  connection: Connection,
  scene: Scene,
): Judgement {
  if (pod?.namespace === undefined) return allowed;
  const selecting = scene.policing.policies
    .filter(({ object }) => object.metadata.namespace === pod.namespace && object[direction] !== undefined)
    .map((policy) => ({
      policy,
      selects: matches(policy.object.podSelector, pod.labels),
      allows: allows(policy.object, direction, connection, scene),
    }))
    .filter(({ selects }) => selects !== false);
  const policies = selecting.map(({ policy }) => policy);
  if (selecting.every(({ selects, allows: lets }) => selects === undefined && lets === true)) return allowed;
  const isAllowed = anyOf(selecting, ({ selects, allows: lets }) => allOf([selects, lets], (each) => each));
  if (isAllowed) return allowed;
  const isIsolated = selecting.some(({ selects }) => selects);
  return { allowed: isIsolated ? isAllowed : undefined, policies };
}

function allows(policy: NetworkPolicy, direction: 'ingress' | 'egress', connection: Connection, scene: Scene): Maybe {
  const { client, server } = connection;
  const peer = direction === 'ingress' ? client : server.address;
  return anyOf(policy[direction] ?? [], ({ peers, ports }) =>
    allOf(
      [
        peers.length === 0 || anyOf(peers, (each) => isPeer(each, peer, policy.metadata.namespace, scene)),
        ports.length === 0 || anyOf(ports, (each) => isPort(each, connection, scene)),
      ],
      (each) => each,
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
  const inNamespace = peer.namespaces
    ? matches(peer.namespaces, labelsOfNamespace(pod.namespace, scene))
    : pod.namespace === undefined
      ? undefined
      : pod.namespace === namespace;
  return allOf([inNamespace, matches(peer.pods, pod.labels)], (each) => each);
}

/** kube-apiserver puts its name on every Namespace. */
function labelsOfNamespace(name: string | undefined, { policing }: Scene): KnownLabels {
  if (name === undefined) return { labels: {}, isWhole: false };
  const known = policing.namespaces.find(({ object }) => object.metadata.name === name);
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
function podAt(address: Address, { policing: { pods, networks } }: Scene): KnownPod | undefined {
  const pod = pods.get(address.text);
  if (pod || !networks.some((network) => contains(network, address))) return pod;
  return { namespace: undefined, labels: { labels: {}, isWhole: false }, ports: undefined, nodeName: '' };
}

function matches(selector: LabelSelector, { labels, isWhole }: KnownLabels): Maybe {
  return allOf(selector, ({ key, operator, values }) => {
    const isThere = Object.hasOwn(labels, key);
    if (!isThere && !isWhole) return undefined;
    switch (operator) {
      case 'In':
        return isThere && values.includes(labels[key] ?? '');
      case 'NotIn':
        return !isThere || !values.includes(labels[key] ?? '');
      case 'Exists':
        return isThere;
      case 'DoesNotExist':
        return !isThere;
      default:
        return undefined;
    }
  });
}
