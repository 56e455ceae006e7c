import type {
  FieldPath,
  LabelSelector,
  NetworkPolicy,
  PodSelection,
  PolicyPeer,
  PolicyPort,
  PolicyRule,
} from '../../cluster/objects.ts';
import { checkNetwork, type CommonNames, readMetadata } from './check-values.ts';
import type { Report } from './report.ts';
import type {
  RawClusterPeer,
  RawClusterPolicy,
  RawClusterRule,
  RawNetworkPolicy,
  RawPolicyRule,
  RawSelector,
} from './shapes/traffic.ts';

/** Reads a NetworkPolicy, with the API server's defaults (SetDefaults_NetworkPolicy in pkg/apis/networking/v1). */
export function readNetworkPolicy(raw: RawNetworkPolicy, report: Report, names: CommonNames): NetworkPolicy {
  const spec = raw.spec ?? {};
  const given = spec.policyTypes ?? [];
  const types = given.length > 0 ? given : ['Ingress', ...((spec.egress ?? []).length > 0 ? ['Egress'] : [])];
  const rulesOf = (direction: 'ingress' | 'egress'): readonly PolicyRule[] =>
    (spec[direction] ?? []).map((rule, i) => readRule(rule, ['spec', direction, i], report));
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report, names),
    tier: 'namespace',
    priority: 0,
    subject: { pods: readSelector(spec.podSelector), namespaces: undefined },
    ingress: types.includes('Ingress') ? rulesOf('ingress') : undefined,
    egress: types.includes('Egress') ? rulesOf('egress') : undefined,
  };
}

function readRule(rule: RawPolicyRule, path: FieldPath, report: Report): PolicyRule {
  const direction = rule.from ? 'from' : 'to';
  return {
    action: 'accept',
    peers: (rule[direction] ?? []).map(({ podSelector, namespaceSelector, ipBlock }, i): PolicyPeer => {
      const at = [...path, direction, i, 'ipBlock'];
      if (!ipBlock) {
        return {
          kind: 'pods',
          pods: readSelector(podSelector),
          namespaces: namespaceSelector ? readSelector(namespaceSelector) : undefined,
        };
      }
      return {
        kind: 'block',
        network: checkNetwork(ipBlock.cidr ?? '', [...at, 'cidr'], report),
        except: (ipBlock.except ?? []).flatMap((text, n) => checkNetwork(text, [...at, 'except', n], report) ?? []),
      };
    }),
    ports: (rule.ports ?? []).map(({ protocol, port, endPort }) => portOf(protocol || 'TCP', port, endPort)),
  };
}

function portOf(
  protocol: PolicyPort['protocol'],
  port: number | string | null | undefined,
  endPort?: number | null,
): PolicyPort {
  return { protocol, port: port ?? undefined, endPort: endPort ?? undefined };
}

/**
 * Reads a policy of the whole cluster. Its kind says the tier, or a ClusterNetworkPolicy itself. The baseline tier of
 * BaselineAdminNetworkPolicies has one policy, without a priority.
 */
export function readClusterPolicy(
  given: 'admin' | 'baseline' | undefined,
  raw: RawClusterPolicy,
  report: Report,
  names: CommonNames,
): NetworkPolicy {
  const { tier, subject, ingress, egress } = raw.spec ?? {};
  const priority = given === 'baseline' ? 0 : raw.spec?.priority;
  if (!given && !tier) report.addMissing(['spec', 'tier'], 'a ClusterNetworkPolicy', 'Admin or Baseline');
  const pods = subject && readPods(subject);
  if (typeof priority !== 'number') report.addMissing(['spec', 'priority'], 'the policy', 'a number from 0 to 1000');
  if (!pods) report.addMissing(['spec', 'subject'], 'the policy', 'namespaces or pods');
  const rulesOf = (direction: 'ingress' | 'egress', rules: readonly RawClusterRule[]) =>
    rules.flatMap((rule, i) => readClusterRule(rule, ['spec', direction, i], report));
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report, names),
    tier: given ?? (tier === 'Baseline' ? 'baseline' : 'admin'),
    priority: priority ?? 0,
    subject: pods ?? { pods: [], namespaces: [] },
    ingress: rulesOf('ingress', ingress ?? []),
    egress: rulesOf('egress', egress ?? []),
  };
}

/** The Pods of a subject or of a peer; undefined if it names none. */
function readPods({ namespaces, pods }: RawClusterPeer): PodSelection | undefined {
  if (pods) return { pods: readSelector(pods.podSelector), namespaces: readSelector(pods.namespaceSelector) };
  return namespaces ? { pods: [], namespaces: readSelector(namespaces) } : undefined;
}

const actions = { Accept: 'accept', Allow: 'accept', Deny: 'deny', Pass: 'pass' } as const;

/**
 * Reads a rule. One with a peer or a protocol of a later API fails closed, as that API asks plugins to do: it accepts
 * nothing, or denies everything (ClusterNetworkPolicyIngressPeer in apis/v1alpha2).
 */
function readClusterRule(rule: RawClusterRule, path: FieldPath, report: Report): readonly PolicyRule[] {
  const side = rule.from ? 'from' : 'to';
  const written = rule[side] ?? [];
  if (!rule.action) report.addMissing([...path, 'action'], 'a rule of a policy', 'Accept, Deny or Pass');
  if (written.length === 0) {
    report.addMissing([...path, path[1] === 'ingress' ? 'from' : 'to'], 'a rule of a policy', 'a list of peers');
  }
  const action = actions[rule.action || 'Deny'];
  const peers = written.map((peer, i) => readPeers(peer, [...path, side, i], report));
  const ports = readClusterPorts(rule);
  if (peers.some((each) => each.length === 0) || ports.some((each) => each.length === 0)) {
    return action === 'accept' ? [] : [{ action: 'deny', peers: [], ports: [] }];
  }
  return [{ action, peers: peers.flat(), ports: ports.flat() }];
}

/** What a peer of a cluster's policy selects; empty for a kind of peer that is not known. */
function readPeers(peer: RawClusterPeer, path: FieldPath, report: Report): readonly PolicyPeer[] {
  const pods = readPods(peer);
  if (pods) return [{ kind: 'pods', ...pods }];
  if (peer.nodes) return [{ kind: 'nodes', nodes: readSelector(peer.nodes) }];
  if (peer.networks) {
    return peer.networks.map((text, i) => {
      return { kind: 'block', network: checkNetwork(text, [...path, 'networks', i], report), except: [] };
    });
  }
  return peer.domainNames ? [{ kind: 'domain-names' }] : [];
}

/** The ports of each item; empty for a kind of item that is not known. */
function readClusterPorts({ ports, protocols }: RawClusterRule): readonly (readonly PolicyPort[])[] {
  const ofAdmin = (ports ?? []).map(({ portNumber, namedPort, portRange: range }) => {
    if (range) return [portOf(range.protocol || 'TCP', range.start, range.end)];
    if (portNumber) return [portOf(portNumber.protocol || 'TCP', portNumber.port)];
    return namedPort ? [portOf(undefined, namedPort)] : [];
  });
  const ofCluster = (protocols ?? []).map(({ destinationNamedPort, ...named }) => {
    if (destinationNamedPort) return [portOf(undefined, destinationNamedPort)];
    return (['TCP', 'UDP', 'SCTP'] as const).flatMap((protocol) => {
      const match = named[protocol.toLowerCase() as 'tcp' | 'udp' | 'sctp'];
      const { number, range } = match?.destinationPort ?? {};
      return match ? [portOf(protocol, range?.start ?? number, range?.end)] : [];
    });
  });
  return [...ofAdmin, ...ofCluster];
}

/** Reads a label selector. Without requirements, it selects everything. */
export function readSelector(raw: RawSelector | null | undefined): LabelSelector {
  const labels = Object.entries(raw?.matchLabels ?? {});
  return [
    ...labels.map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    ...(raw?.matchExpressions ?? []).map(({ key, operator, values }) => ({
      key: key ?? '',
      operator: operator ?? '',
      values: values ?? [],
    })),
  ];
}
