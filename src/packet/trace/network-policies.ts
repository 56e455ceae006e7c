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
import type { Family } from '../../kernel/family.ts';
import type { Location } from '../../kernel/place.ts';
import { formatSocketAddress, parseSocketAddress, type SocketAddress } from '../../kernel/socket-address.ts';
import { all, anyOf, allOf, type Maybe } from '../maybe.ts';
import type { PacketProtocol } from '../packet.ts';
import { isUnknownOwn } from '../routing.ts';
import type { Trace } from './question.ts';
import { isLocalEndpoint, serviceOf, type Scene } from './scene.ts';

type Direction = 'ingress' | 'egress';

/** Policies that may or do refuse what kube-proxy delivers. */
export interface PolicyFinding {
  /** ingress: at the endpoints' Pods; egress: at the sender's. */
  readonly direction: Direction;
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
export function judgePolicies(trace: Trace, scene: Scene): readonly PolicyFinding[] {
  return scene.objects.policies.length === 0 ? [] : new PolicyJudge(scene).judge(trace);
}

interface Judgement {
  readonly allowed: Maybe;
  readonly policies: readonly Sourced<NetworkPolicy>[];
}

const allowed: Judgement = { allowed: true, policies: [] };

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

const unknown: KnownPod = { namespace: undefined, labels: {}, isWhole: false, ports: undefined, nodeName: '' };

/** Judges packets by the policies of a scene. */
class PolicyJudge {
  readonly #scene: Scene;
  readonly #pods: ReadonlyMap<string, KnownPod>;
  /** Networks whose addresses are Pods'. */
  readonly #networks: readonly Network[];

  constructor(scene: Scene) {
    const { nodes } = scene.objects;
    const own = scene.side.services?.settings.clusterCIDRs ?? [];
    const cidrs = [...own, ...nodes.flatMap(({ object }) => object.podCIDRs)];
    this.#scene = scene;
    this.#pods = knownPods(scene);
    this.#networks = cidrs.flatMap((text) => parseNetwork(text.trim()) ?? []);
  }

  judge({ sender: { address: client }, target, fate }: Trace): readonly PolicyFinding[] {
    const findings = new Map<string, PolicyFinding>();
    const add = (direction: Direction, server: SocketAddress, judgements: readonly Judgement[]): void => {
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
      const judge = (direction: Direction, seen: Address | undefined, pod: KnownPod | undefined) =>
        this.#judgePod(direction, pod, { client: seen, server, protocol: target.protocol });
      if (client) add('egress', server, [judge('egress', client, this.#podAt(client))]);
      const pod = this.#podAt(address);
      // What comes from a Pod's own node always gets there.
      const here = this.#scene.side.services?.node.name;
      const isHere = pod?.nodeName ? pod.nodeName === here : isLocalEndpoint(this.#scene, server);
      const ingress = this.#clientsSeen(source, client, address.family).map((seen) =>
        isHere && this.#isOfNode(seen) ? allowed : judge('ingress', seen, pod),
      );
      add('ingress', server, ingress);
    }
    return [...findings.values()];
  }

  /** Whom the plugin may see as the client: itself, or the node where kube-proxy masquerades. */
  #clientsSeen(source: Address | 'masqueraded', client: Address | undefined, family: Family) {
    if (source !== 'masqueraded') return [isUnknownOwn(source) ? undefined : source];
    const known = this.#scene.side.services?.node.nodeIPs[family];
    // One that is not known is a loopback address there.
    const node = known && isLoopback(known) ? undefined : known;
    return this.#isOfNode(client) ? [node] : [client, node];
  }

  #isOfNode(address: Address | undefined): boolean {
    const own = this.#scene.links.flatMap(({ addresses }) => addresses);
    return address === undefined || own.some((each) => each.address.text === address.text);
  }

  /** A Pod that a policy selects has only the connections that one of the policies that select it allows. */
  #judgePod(direction: Direction, pod: KnownPod | undefined, connection: Connection): Judgement {
    if (pod?.namespace === undefined) return allowed;
    const selecting = this.#scene.objects.policies
      .filter(({ object }) => object.metadata.namespace === pod.namespace && object[direction] !== undefined)
      .map((policy) => ({
        policy,
        selects: matches(policy.object.podSelector, pod),
        allows: this.#allows(policy.object, direction, connection),
      }))
      .filter(({ selects }) => selects !== false);
    if (selecting.every((each) => each.selects === undefined && each.allows === true)) return allowed;
    const isAllowed = anyOf(selecting, (each) => all(each.selects, each.allows));
    if (isAllowed) return allowed;
    const isIsolated = selecting.some(({ selects }) => selects);
    return { allowed: isIsolated ? isAllowed : undefined, policies: selecting.map(({ policy }) => policy) };
  }

  #allows(policy: NetworkPolicy, direction: Direction, connection: Connection): Maybe {
    const peer = direction === 'ingress' ? connection.client : connection.server.address;
    return anyOf(policy[direction] ?? [], ({ peers, ports }) =>
      all(
        peers.length === 0 || anyOf(peers, (each) => this.#isPeer(each, peer, policy.metadata.namespace)),
        ports.length === 0 || anyOf(ports, (each) => this.#isPort(each, connection)),
      ),
    );
  }

  #isPeer(peer: PolicyPeer, address: Address | undefined, namespace: string): Maybe {
    if (!address) return undefined;
    if (peer.kind === 'block') {
      const { network, except } = peer;
      return network !== undefined && contains(network, address) && !except.some((each) => contains(each, address));
    }
    const pod = this.#podAt(address);
    if (!pod) return false;
    const own = pod.namespace;
    const isInNamespace = own === undefined ? undefined : own === namespace;
    return all(
      peer.namespaces ? matches(peer.namespaces, this.#labelsOf(own)) : isInNamespace,
      matches(peer.pods, pod),
    );
  }

  /** A rule about ports says nothing of pings, which plugins treat each in their own way. */
  #isPort({ protocol, port, endPort }: PolicyPort, { server, protocol: asked }: Connection): Maybe {
    if (asked === 'icmp') return undefined;
    if (protocol.toLowerCase() !== asked) return false;
    if (port === undefined) return true;
    if (typeof port === 'number') return port <= server.port && server.port <= (endPort ?? port);
    const pod = this.#podAt(server.address);
    if (!pod) return false;
    return pod.ports?.some((each) => each.name === port && each.protocol === protocol && each.port === server.port);
  }

  /** What is at an address: a Pod of the input, one that is not known, or undefined for what is no Pod. */
  #podAt(address: Address): KnownPod | undefined {
    const isPods = this.#networks.some((each) => contains(each, address));
    return this.#pods.get(address.text) ?? (isPods ? unknown : undefined);
  }

  /** kube-apiserver puts its name on every Namespace. */
  #labelsOf(namespace: string | undefined): KnownLabels {
    if (namespace === undefined) return unknown;
    const own = this.#scene.objects.namespaces.find(({ object }) => object.metadata.name === namespace);
    const labels = { ...own?.object.metadata.labels, 'kubernetes.io/metadata.name': namespace };
    return { labels, isWhole: own !== undefined };
  }
}

/**
 * The Pods of the input by address. Of an endpoint whose Pod is not among them, its Service's selector says some of the
 * labels. What runs in a host's network is no Pod to network plugins.
 */
function knownPods({ objects: { pods, services, nodes }, ports }: Scene): ReadonlyMap<string, KnownPod> {
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
  return known;
}
