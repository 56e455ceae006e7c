import { makeRandom } from '../../support/random.ts';

/** The objects of a cluster with policies, and connections to ask about. */
export interface PolicySet {
  readonly namespaces: readonly object[];
  readonly pods: readonly object[];
  readonly policies: readonly object[];
  /** From, to, protocol and port. */
  readonly questions: readonly (readonly [string, string, string, string])[];
}

/** Two namespaces have a team in common, and no two Pods the same labels. */
const names = ['red', 'green', 'blue'] as const;
const teams = { red: 'one', green: 'one', blue: 'two' } as const;
const apps = ['web', 'api'] as const;
const tiers = { web: 'front', api: 'back' } as const;
const ports = [
  { name: 'http', containerPort: 80, protocol: 'TCP' },
  { name: 'dns', containerPort: 53, protocol: 'UDP' },
] as const;

/** The address of a Pod in every set. */
export function addressOf(pod: string): string {
  const [namespace = '', app = ''] = pod.split('/');
  return `10.1.2.${10 * (names.findIndex((name) => name === namespace) + 1) + apps.findIndex((name) => name === app)}`;
}

const namespaces = names.map((name) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { team: teams[name], 'kubernetes.io/metadata.name': name } },
}));

const pods = names.flatMap((namespace) =>
  apps.map((app) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: app, namespace, labels: { app, tier: tiers[app], home: namespace } },
    spec: { nodeName: 'node2', containers: [{ name: 'c', image: 'c', ports }] },
    status: {
      phase: 'Running',
      hostIP: '192.168.0.2',
      podIP: addressOf(`${namespace}/${app}`),
      podIPs: [{ ip: addressOf(`${namespace}/${app}`) }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  })),
);

/** Makes the policy set of a seed: up to five NetworkPolicies. */
export function makePolicySet(seed: number): PolicySet {
  const random = makeRandom(seed);
  const chance = (share: number): boolean => random() < share;
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const several = <T>(most: number, make: () => T): readonly T[] =>
    Array.from({ length: 1 + Math.floor(random() * most) }, make);

  const selector = (key: string, values: readonly string[]): object => {
    if (chance(0.2)) return {};
    if (chance(0.5)) return { matchLabels: { [key]: pick(values) } };
    const operator = pick(['In', 'NotIn', 'Exists', 'DoesNotExist']);
    return { matchExpressions: [{ key, operator, ...(operator.endsWith('In') ? { values: [pick(values)] } : {}) }] };
  };
  const podSelector = () => (chance(0.5) ? selector('app', apps) : selector('home', names));
  const namespaceSelector = () => selector('team', ['one', 'two']);
  // netpol-analyzer holds that a network in a policy never means a Pod.
  const network = () => pick(['203.0.113.0/24', '198.51.100.0/25']);
  const number = () => pick([53, 80, 8080]);
  const protocol = () => pick(['TCP', 'UDP', 'SCTP']);

  const peer = (): object => {
    if (chance(0.2)) return { ipBlock: { cidr: network() } };
    const own = chance(0.5) ? { podSelector: podSelector() } : {};
    return chance(0.6) || !('podSelector' in own) ? { ...own, namespaceSelector: namespaceSelector() } : own;
  };
  const port = (): object => {
    if (chance(0.2)) return { port: 'http', protocol: 'TCP' };
    // All have a number: without one, netpol-analyzer's evaluator forgets the protocol (ruleConnsContain).
    return { port: number(), protocol: protocol(), ...(chance(0.2) && { endPort: 8080 }) };
  };
  const rule = (peers: 'from' | 'to'): object => ({
    ...(chance(0.8) && { [peers]: several(2, peer) }),
    ...(chance(0.5) && { ports: several(2, port) }),
  });
  const networkPolicy = (name: string): object => {
    const types = pick([['Ingress'], ['Egress'], ['Ingress', 'Egress']]);
    return {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name, namespace: pick(names) },
      spec: {
        podSelector: podSelector(),
        policyTypes: types,
        ...(types.includes('Ingress') && { ingress: chance(0.2) ? [] : several(2, () => rule('from')) }),
        ...(types.includes('Egress') && { egress: chance(0.2) ? [] : several(2, () => rule('to')) }),
      },
    };
  };

  const policies = Array.from({ length: Math.floor(random() * 6) }, (_, i) => networkPolicy(`policy-${i}`));
  const all = names.flatMap((namespace) => apps.map((app) => `${namespace}/${app}`));
  const questions = Array.from({ length: 24 }, () => {
    const from = pick(all);
    const to = pick(all.filter((each) => each !== from));
    return [from, to, protocol(), String(number())] as const;
  });
  return { namespaces, pods, policies, questions };
}
