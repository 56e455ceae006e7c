import type {
  FieldPath,
  LabelSelector,
  NetworkPolicy,
  PolicyPeer,
  PolicyPort,
  PolicyRule,
} from '../../cluster/objects.ts';
import { checkNetwork, type CommonNames, readMetadata } from './check-values.ts';
import type { Report } from './report.ts';
import type { RawNetworkPolicy, RawPolicyRule, RawSelector } from './shapes/traffic.ts';

/** Reads a NetworkPolicy, with the API server's defaults (SetDefaults_NetworkPolicy in pkg/apis/networking/v1). */
export function readNetworkPolicy(raw: RawNetworkPolicy, report: Report, names: CommonNames): NetworkPolicy {
  const spec = raw.spec ?? {};
  const given = spec.policyTypes ?? [];
  const types = given.length > 0 ? given : ['Ingress', ...((spec.egress ?? []).length > 0 ? ['Egress'] : [])];
  const rulesOf = (direction: 'ingress' | 'egress'): readonly PolicyRule[] =>
    (spec[direction] ?? []).map((rule, i) => readPolicyRule(rule, ['spec', direction, i], report));
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report, names),
    subject: readSelector(spec.podSelector),
    ingress: types.includes('Ingress') ? rulesOf('ingress') : undefined,
    egress: types.includes('Egress') ? rulesOf('egress') : undefined,
  };
}

function readPolicyRule(rule: RawPolicyRule, path: FieldPath, report: Report): PolicyRule {
  const direction = rule.from ? 'from' : 'to';
  return {
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
