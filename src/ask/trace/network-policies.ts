import { serviceName } from '../../cluster/model.ts';
import { nodeAddresses } from '../../cluster/node-context.ts';
import {
  fullName,
  type ContainerPort,
  type NetworkPolicy,
  type PolicyPeer,
  type PolicyPort,
  type PolicyRule,
  type Sourced,
} from '../../cluster/objects.ts';
import { type Address, contains, type Family, isLoopback, type Network, parseNetwork } from '../../kernel/address.ts';
import type { Location } from '../../kernel/place.ts';
import { formatSocketAddress, type SocketAddress } from '../../kernel/ports-and-marks.ts';
import { all, someOf, type Maybe } from '../../packet/reason.ts';
import { isUnknownOwn, type PacketProtocol } from '../../packet/packet.ts';
import { labelsOfNamespace, selectsLabels, isLocalEndpoint, type KnownLabels, type Scene } from './scene.ts';
import type { Trace } from './question.ts';

type PolicyDirection = 'ingress' | 'egress';

export interface PolicyFinding {
  /** ingress: judged at the endpoints' Pods; egress: judged at the sender's Pod. */
  readonly direction: PolicyDirection;
  /**
   * - refused: whichever client the network plugin sees
   * - refused-node, refused-client: if the plugin sees the node's address as the client, or the client before masquerading
   * - refused-endpoint: if the plugin sees the endpoint as the destination, and not the address that the sender asked for
   * - unknown: the input lacks labels that the policies match
   */
  readonly verdict: 'refused' | 'refused-node' | 'refused-client' | 'refused-endpoint' | 'unknown';
  /** Empty if the cluster's policies, or the Pods that they select, could not be read. */
  readonly policies: readonly { readonly name: string; readonly place: Location }[];
  readonly endpoints: Map<string, SocketAddress>;
}

interface JudgedConnection {
  readonly client: Address | undefined;
  readonly server: SocketAddress;
  readonly protocol: PacketProtocol;
}

export function judgePolicies(trace: Trace, scene: Scene): readonly PolicyFinding[] {
  const { policies, unread } = scene.side.objects;
  const found = policies.length === 0 ? [] : new PolicyJudge(scene).judge(trace);
  const isUnknown = unread.has('policies') || (unread.has('pods') && policies.length > 0 && found.length === 0);
  const reached = isUnknown ? trace.fate.endpoints : [];
  const endpoints = new Map(reached.map((endpoint) => [formatSocketAddress(endpoint), endpoint]));
  // A policy that could not be read may allow what the known policies refuse.
  return reached.length === 0 ? found : [{ direction: 'ingress', verdict: 'unknown', policies: [], endpoints }];
}

/** Selects Pods by label. If `namespaces` is missing, the Pods must be in the policy's own namespace. */
type PodSelection = Omit<Extract<PolicyPeer, { readonly kind: 'pods' }>, 'kind'>;

interface Judgement {
  readonly allowed: Maybe;
  readonly policies: readonly Sourced<NetworkPolicy>[];
}

const allowed: Judgement = { allowed: true, policies: [] };

/** Returns the verdict. If the network plugin may see either the client's or the node's address as the client, both judgements count. */
function sumUpJudgements([first = allowed, asNode = first]: readonly Judgement[]): readonly [
  PolicyFinding['verdict'] | undefined,
  Judgement['policies'],
] {
  const doubtful = [first, asNode].find((each) => each.allowed === undefined);
  if (doubtful) return ['unknown', doubtful.policies];
  if (asNode.allowed === first.allowed) return [first.allowed ? undefined : 'refused', first.policies];
  return first.allowed ? ['refused-node', asNode.policies] : ['refused-client', first.policies];
}

interface KnownPod extends KnownLabels {
  readonly namespace: string | undefined;
  readonly ports: readonly ContainerPort[] | undefined;
  readonly nodeName: string;
}

const unknown: KnownPod = { namespace: undefined, labels: {}, isWhole: false, ports: undefined, nodeName: '' };

class PolicyJudge {
  readonly #scene: Scene;
  readonly #pods: ReadonlyMap<string, KnownPod>;
  readonly #policies: readonly Sourced<NetworkPolicy>[];
  readonly #networks: readonly Network[];

  constructor(scene: Scene) {
    const { nodes } = scene.side.objects;
    const own = scene.side.settings?.clusterCIDRs ?? [];
    const cidrs = [...own, ...nodes.flatMap(({ object }) => object.podCIDRs)];
    this.#scene = scene;
    this.#pods = knownPods(scene);
    this.#policies = scene.side.objects.policies;
    this.#networks = cidrs.flatMap((text) => parseNetwork(text.trim()) ?? []);
  }

  judge({ sender: { address: client }, target, fate }: Trace): readonly PolicyFinding[] {
    const findings = new Map<string, PolicyFinding>();
    const add = (
      direction: PolicyDirection,
      server: SocketAddress,
      judgements: readonly Judgement[],
      allowsAsked = false,
    ): void => {
      const [sum, policies] = sumUpJudgements(judgements);
      if (!sum) return;
      const verdict = sum === 'refused' && allowsAsked ? 'refused-endpoint' : sum;
      const named = policies.map(({ object: { metadata }, source }) => {
        return { name: fullName(metadata), place: source.place([]).locate() };
      });
      const key = [direction, verdict, ...named.map(({ name }) => name)].join(' ');
      const finding = findings.get(key) ?? { direction, verdict, policies: named, endpoints: new Map() };
      findings.set(key, finding);
      finding.endpoints.set(formatSocketAddress(server), server);
    };
    const forwarded = fate.verdict === 'forwarded' ? [{ ...target, source: fate.source }] : [];
    for (const { address, port, source } of fate.verdict === 'delivered' ? fate.endpoints : forwarded) {
      // No policy stops packets from a Pod to itself.
      if (client?.text === address.text) continue;
      const server = { address, port };
      // No specification says whether network plugins see a packet before or after kube-proxy translates it.
      const allowsAsked = (sender: Address): boolean => {
        const connection = { client: sender, server: target, protocol: target.protocol };
        const isTranslated = formatSocketAddress(server) !== formatSocketAddress(target);
        return isTranslated && this.#judgePod('egress', this.#podAt(sender), connection).allowed === true;
      };
      const judge = (direction: PolicyDirection, seen: Address | undefined, pod: KnownPod | undefined) =>
        this.#judgePod(direction, pod, { client: seen, server, protocol: target.protocol });
      if (client) add('egress', server, [judge('egress', client, this.#podAt(client))], allowsAsked(client));
      const pod = this.#podAt(address);
      // Traffic from a Pod's own node is always allowed.
      const here = this.#scene.side.node?.name;
      const isHere = pod?.nodeName ? pod.nodeName === here : isLocalEndpoint(this.#scene, server);
      const ingress = this.#clientsSeen(source, client, address.family).map((seen) =>
        (isHere ? this.#isOfNode(seen) : this.#isOfOtherNode(seen, pod?.nodeName))
          ? allowed
          : judge('ingress', seen, pod),
      );
      add('ingress', server, ingress);
    }
    return [...findings.values()];
  }

  #clientsSeen(source: Address | 'masqueraded', client: Address | undefined, family: Family) {
    if (source !== 'masqueraded') return [isUnknownOwn(source) ? undefined : source];
    const known = this.#scene.side.node?.nodeIPs[family];
    // A loopback address in `nodeIPs` means that the node's address is unknown.
    const node = known && isLoopback(known) ? undefined : known;
    return this.#isOfNode(client) ? [node] : [client, node];
  }

  #isOfOtherNode(address: Address | undefined, name: string | undefined): boolean {
    const node = this.#scene.side.objects.nodes.find(({ object }) => object.metadata.name === name);
    return node !== undefined && nodeAddresses(node.object).some(({ text }) => text === address?.text);
  }

  #isOfNode(address: Address | undefined): boolean {
    const own = this.#scene.links.flatMap(({ addresses }) => addresses);
    return address === undefined || own.some((each) => each.address.text === address.text);
  }

  /** Judges a Pod's connection. If policies select the Pod, at least one of these must allow the connection. */
  #judgePod(direction: PolicyDirection, pod: KnownPod | undefined, connection: JudgedConnection): Judgement {
    const selecting = this.#policies.flatMap((policy) => {
      const { object } = policy;
      const selects = pod !== undefined && object[direction] !== undefined && this.#selectsSubject(object, pod);
      if (selects === false) return [];
      const allows = someOf(object[direction] ?? [], (rule) => this.#matches(rule, object, direction, connection));
      return [{ policy, selects, allows }];
    });
    const isAllowed = someOf(selecting, ({ selects, allows }) => all(selects, allows));
    // A policy that allows the connection cannot cause a refusal, whether or not it selects the Pod.
    const mayRefuse = selecting.some(({ selects, allows }) => selects === true || allows !== true);
    if (isAllowed === true || !mayRefuse) return allowed;
    const isRefused = isAllowed === false && selecting.some(({ selects }) => selects);
    return { allowed: isRefused ? false : undefined, policies: selecting.map(({ policy }) => policy) };
  }

  /** Reports whether a policy selects a Pod. If the address may be any Pod's, only policies for all Pods count as selecting it. */
  #selectsSubject({ subject, metadata }: NetworkPolicy, pod: KnownPod): Maybe {
    const selects = this.#selects({ pods: subject, namespaces: undefined }, pod, metadata.namespace);
    return pod.namespace === undefined && selects === undefined ? false : selects;
  }

  #selects({ pods, namespaces }: PodSelection, pod: KnownPod, namespace: string): Maybe {
    const isInNamespace = pod.namespace === undefined ? undefined : pod.namespace === namespace;
    return all(
      namespaces ? selectsLabels(namespaces, labelsOfNamespace(pod.namespace, this.#scene)) : isInNamespace,
      selectsLabels(pods, pod),
    );
  }

  #matches(
    { peers, ports }: PolicyRule,
    { metadata }: NetworkPolicy,
    direction: PolicyDirection,
    to: JudgedConnection,
  ): Maybe {
    const peer = direction === 'ingress' ? to.client : to.server.address;
    return all(
      peers.length === 0 || someOf(peers, (each) => this.#isPeer(each, peer, metadata.namespace)),
      ports.length === 0 || someOf(ports, (each) => this.#isPort(each, to)),
    );
  }

  #isPeer(peer: PolicyPeer, address: Address | undefined, namespace: string): Maybe {
    if (!address) return undefined;
    switch (peer.kind) {
      case 'block': {
        const { network, except } = peer;
        return network !== undefined && contains(network, address) && !except.some((each) => contains(each, address));
      }
      case 'pods': {
        const pod = this.#podAt(address);
        return pod !== undefined && this.#selects(peer, pod, namespace);
      }
    }
  }

  /** Reports whether a port rule covers a connection. For pings, that depends on the network plugin. */
  #isPort(portRule: PolicyPort, { server, protocol }: JudgedConnection): Maybe {
    if (protocol === 'icmp') return undefined;
    const pod = this.#podAt(server.address);
    return allowsPort(portRule, { port: server.port, protocol }, pod ? pod.ports : []);
  }

  #podAt(address: Address): KnownPod | undefined {
    const isPods = this.#networks.some((each) => contains(each, address));
    return this.#pods.get(address.text) ?? (isPods ? unknown : undefined);
  }
}

/**
 * Reports whether a port rule covers a port of a Pod. `named`: the Pod's named ports. Undefined if the rule refers to a port by name and
 * the Pod's ports are unknown.
 */
export function allowsPort(
  { protocol, port, endPort }: PolicyPort,
  asked: { readonly port: number; readonly protocol: string },
  named: KnownPod['ports'],
): boolean | undefined {
  const isAsked = (own: string): boolean => own.toLowerCase() === asked.protocol.toLowerCase();
  if (protocol !== undefined && !isAsked(protocol)) return false;
  if (port === undefined) return true;
  if (typeof port === 'number') return port <= asked.port && asked.port <= (endPort ?? port);
  return named?.some((each) => each.name === port && isAsked(each.protocol) && each.port === asked.port);
}

/**
 * Indexes Pods by address: the input's Pods and those that kpc assumes. If the Pod of an endpoint is not in the input, the Service's
 * selector gives some of the Pod's labels. Leaves out host-network Pods, because network plugins do not treat them as Pods.
 */
function knownPods({ side: { objects, ports, pods } }: Scene): ReadonlyMap<string, KnownPod> {
  const { services, nodes } = objects;
  const known = new Map<string, KnownPod>();
  const hosts = new Set<string>();
  const selectors = new Map(services.map(({ object: { metadata, spec } }) => [fullName(metadata), spec.selector]));
  for (const port of ports) {
    const { namespace = '', endpoints = [] } = port;
    const labels = selectors.get(serviceName(port));
    if (!labels) continue;
    const pod = { ...unknown, namespace, labels };
    for (const { address } of endpoints) if (address) known.set(address.text, pod);
  }
  for (const { metadata, spec, status } of pods.values()) {
    if (!status || status.ended) continue;
    if (spec.hostNetwork) {
      for (const { text } of status.addresses) hosts.add(text);
      continue;
    }
    const { namespace, labels } = metadata;
    const pod = { namespace, labels, isWhole: true, ports: spec.ports, nodeName: spec.nodeName };
    for (const { text } of status.addresses) known.set(text, pod);
  }
  for (const { object } of nodes) for (const { text } of nodeAddresses(object)) hosts.add(text);
  for (const address of hosts) known.delete(address);
  return known;
}
