// Policies of the whole cluster. The cases are those of the network-policy-api's conformance tests (kubernetes-sigs), restated.
import { describe, expect, test } from 'vitest';
import { findPolicies, sceneOfManifests, type Connection } from '../support/manifest-scene.ts';

type Protocol = Connection['protocol'];

/** A house and its pods, as the conformance tests have them; all run on node2. */
const houses = { gryffindor: 'harry', ravenclaw: 'luna', hufflepuff: 'cedric', slytherin: 'draco' } as const;
const addresses: ReadonlyMap<string, string> = new Map(
  Object.entries(houses).flatMap(([house, pod], i) =>
    [0, 1].map((number) => [`${house}/${pod}-${number}`, `10.1.2.${10 * (i + 1) + number}`] as const),
  ),
);

const labelled = (house: string) => ({ matchLabels: { 'conformance-house': house } });
const ofHouse = (house: string) => ({ namespaces: labelled(house) });
const podsOf = (house: string) => ({ pods: { namespaceSelector: labelled(house), podSelector: labelled(house) } });

const cluster: readonly object[] = [
  ...[1, 2].map((number) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `node${number}`, labels: { 'kubernetes.io/os': 'linux' } },
    spec: { podCIDRs: [`10.1.${number}.0/24`] },
    status: { addresses: [{ type: 'InternalIP', address: `192.168.0.${number}` }] },
  })),
  ...Object.keys(houses).map((house) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: house, labels: { 'conformance-house': house } },
  })),
  ...[...addresses].map(([name, ip]) => {
    const [namespace = '', pod = ''] = name.split('/');
    const ports = [
      { name: 'web', containerPort: 80, protocol: 'TCP' },
      { name: 'dns', containerPort: 53, protocol: 'UDP' },
    ];
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: pod, namespace, labels: { 'conformance-house': namespace } },
      spec: { nodeName: 'node2', containers: [{ name: 'c', ports }] },
      status: { phase: 'Running', podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] },
    };
  }),
];

interface Rule {
  readonly action: 'Accept' | 'Deny' | 'Pass';
  readonly peers: readonly object[];
  readonly protocols?: readonly object[];
}

interface Written {
  readonly tier?: 'Admin' | 'Baseline';
  readonly name?: string;
  readonly priority?: number;
  readonly subject?: object;
  readonly ingress?: readonly Rule[];
  readonly egress?: readonly Rule[];
}

const clusterPolicy = ({ tier = 'Admin', name = 'policy', priority = 10, subject, ingress, egress }: Written) => {
  const rules = (side: 'from' | 'to', all: readonly Rule[] = []) =>
    all.map(({ action, peers, protocols }) => ({ action, [side]: peers, ...(protocols && { protocols }) }));
  return {
    apiVersion: 'policy.networking.k8s.io/v1alpha2',
    kind: 'ClusterNetworkPolicy',
    metadata: { name },
    spec: {
      tier,
      priority,
      subject: subject ?? ofHouse('gryffindor'),
      ingress: rules('from', ingress),
      egress: rules('to', egress),
    },
  };
};

const sceneWith = (...policies: readonly object[]) =>
  sceneOfManifests(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...cluster, ...policies] }), 'node1');

type Scene = ReturnType<typeof sceneWith>;

/** The findings on a connection from a pod to an address or a pod: "ingress refused policy". */
function findingsOf(scene: Scene, from: string, to: string, protocol: Protocol, port: number): readonly string[] {
  const address = addresses.get(to) ?? to;
  const found = findPolicies(scene, { from, to: protocol === 'icmp' ? address : `${address}:${port}`, protocol });
  return found.map(({ direction, verdict, policies }) =>
    [direction, verdict, ...policies.map(({ name }) => name)].join(' '),
  );
}

const isAllowed = (scene: Scene, ...connection: readonly [string, string, Protocol, number]): boolean =>
  findingsOf(scene, ...connection).length === 0;

const port = (protocol: Protocol, number: number) => ({ [protocol]: { destinationPort: { number } } });

/** The rules of gress-rules: three of one match, of which the first counts, and some of ports. */
function gressRules(accepted: readonly object[]): readonly Rule[] {
  const closed = [port('tcp', 80), port('udp', 53), port('sctp', 9003)];
  return [
    { action: 'Accept', peers: [ofHouse('ravenclaw')] },
    { action: 'Deny', peers: [ofHouse('ravenclaw')] },
    { action: 'Pass', peers: [ofHouse('ravenclaw')] },
    { action: 'Deny', peers: [ofHouse('slytherin')], protocols: closed },
    { action: 'Pass', peers: [ofHouse('slytherin')], protocols: closed },
    { action: 'Accept', peers: [ofHouse('hufflepuff')], protocols: accepted },
    { action: 'Deny', peers: [ofHouse('hufflepuff')] },
  ];
}

const ingressAccepted = [port('tcp', 80), port('udp', 5353), port('sctp', 9003)];
const egressAccepted = [port('tcp', 8080), port('udp', 5353), port('sctp', 9003)];

/** The rules with two of them exchanged. */
function swap(rules: readonly Rule[], [a, b]: readonly [number, number]): readonly Rule[] {
  return rules.map((rule, i) => (i === a ? rules[b] : i === b ? rules[a] : rule) ?? rule);
}

describe.each(['Admin', 'Baseline'] as const)('rules of tier %s', (tier) => {
  // A baseline rule has no tier to pass to: it allows what none decides.
  test.each([
    ['in their order', [0, 0], 'ravenclaw/luna-0', true, 'slytherin/draco-0', false],
    ['the first denies', [0, 1], 'ravenclaw/luna-1', false, 'slytherin/draco-0', false],
    ['the first passes', [0, 2], 'ravenclaw/luna-1', true, 'slytherin/draco-1', false],
    ['the one of ports passes', [3, 4], 'ravenclaw/luna-0', true, 'slytherin/draco-0', true],
  ] as const)('%s', (_, swapped, open, isOpen, closed, isClosedOpen) => {
    const scene = sceneWith(
      clusterPolicy({
        tier,
        ingress: swap(gressRules(ingressAccepted), swapped),
        egress: swap(gressRules(egressAccepted), swapped),
      }),
    );
    for (const [protocol, number, other] of [
      ['tcp', 80, 8080],
      ['udp', 53, 5353],
      ['sctp', 9003, 9005],
    ] as const) {
      const ask = (from: string, to: string, at: number) => isAllowed(scene, from, to, protocol, at);
      expect(ask('gryffindor/harry-0', open, number)).toBe(isOpen);
      expect(ask(open, 'gryffindor/harry-1', number)).toBe(isOpen);
      expect(ask('gryffindor/harry-0', closed, number)).toBe(isClosedOpen);
      expect(ask(closed, 'gryffindor/harry-1', number)).toBe(isClosedOpen);
      // What no rule matches is allowed.
      expect(ask('gryffindor/harry-0', closed, other)).toBe(true);
      expect(ask(closed, 'gryffindor/harry-1', other)).toBe(true);
      expect(ask('slytherin/draco-0', 'ravenclaw/luna-0', number)).toBe(true);
    }
  });

  test.each([
    ['tcp', 8080, 80],
    ['udp', 5353, 53],
    ['sctp', 9003, 9005],
  ] as const)('some ports of %s, and a rule that denies the others', (protocol, open, closed) => {
    const scene = sceneWith(
      clusterPolicy({ tier, ingress: gressRules(egressAccepted), egress: gressRules(egressAccepted) }),
    );
    const at = (number: number) => [
      isAllowed(scene, 'gryffindor/harry-0', 'hufflepuff/cedric-1', protocol, number),
      isAllowed(scene, 'hufflepuff/cedric-0', 'gryffindor/harry-1', protocol, number),
    ];
    expect(at(open)).toEqual([true, true]);
    expect(at(closed)).toEqual([false, false]);
  });

  test('networks', () => {
    const rules: readonly Rule[] = [
      { action: 'Accept', peers: [podsOf('slytherin')] },
      { action: 'Deny', peers: [{ networks: ['0.0.0.0/0', '::/0'] }] },
    ];
    const [luna, cedric] = ['ravenclaw/luna-0', 'hufflepuff/cedric-0'] as const;
    const networks = [luna, cedric].map((pod) => `${addresses.get(pod)}/32`);
    const subject = podsOf('gryffindor');
    const scene = sceneWith(clusterPolicy({ tier, subject, egress: rules }));
    const more = sceneWith(
      clusterPolicy({ tier, subject, egress: [{ action: 'Accept', peers: [{ networks }] }, ...rules] }),
    );
    for (const [protocol, number] of [
      ['tcp', 80],
      ['udp', 53],
      ['sctp', 9003],
    ] as const) {
      const ask = (asked: Scene, to: string) => isAllowed(asked, 'gryffindor/harry-1', to, protocol, number);
      expect([luna, cedric, 'slytherin/draco-0'].map((to) => ask(scene, to))).toEqual([false, false, true]);
      expect([luna, cedric, 'ravenclaw/luna-1'].map((to) => ask(more, to))).toEqual([true, true, false]);
    }
  });

  test('nodes, and what runs in the network of one', () => {
    const nodes = { nodes: { matchLabels: { 'kubernetes.io/os': 'linux' } } };
    const scene = sceneWith(
      clusterPolicy({
        tier,
        egress: [
          { action: 'Accept', peers: [nodes], protocols: [port('tcp', 36363)] },
          { action: 'Deny', peers: [nodes, { networks: ['0.0.0.0/0'] }] },
        ],
      }),
    );
    expect(isAllowed(scene, 'gryffindor/harry-1', '192.168.0.2', 'tcp', 36363)).toBe(true);
    expect(isAllowed(scene, 'gryffindor/harry-1', '192.168.0.2', 'tcp', 34345)).toBe(false);
    expect(isAllowed(scene, 'gryffindor/harry-1', 'slytherin/draco-0', 'tcp', 36363)).toBe(false);
  });

  test('named ports', () => {
    const peers = [ofHouse('slytherin')];
    const scene = sceneWith(
      clusterPolicy({
        tier,
        egress: [
          { action: 'Accept', peers, protocols: [{ destinationNamedPort: 'web' }] },
          { action: 'Deny', peers },
        ],
      }),
    );
    const ask = (protocol: Protocol, number: number) =>
      isAllowed(scene, 'gryffindor/harry-0', 'slytherin/draco-0', protocol, number);
    expect([ask('tcp', 80), ask('udp', 53), ask('tcp', 8080), ask('udp', 80)]).toEqual([true, false, false, false]);
  });
});

describe('the order of tiers and priorities', () => {
  const both = (action: Rule['action']) => {
    const rules: readonly Rule[] = [{ action, peers: [podsOf('slytherin')] }];
    return { subject: podsOf('gryffindor'), ingress: rules, egress: rules };
  };
  const ways = (scene: Scene) =>
    [80, 8080].flatMap((number) => [
      isAllowed(scene, 'slytherin/draco-0', 'gryffindor/harry-0', 'tcp', number),
      isAllowed(scene, 'gryffindor/harry-1', 'slytherin/draco-1', 'tcp', number),
    ]);
  const no = [false, false, false, false];
  const yes = [true, true, true, true];

  test.each([
    [60, no],
    [40, yes],
  ] as const)('a policy that passes, of priority %i, beside one of 50 that denies', (priority, expected) => {
    const scene = sceneWith(
      clusterPolicy({ name: 'fifty', priority: 50, ...both('Deny') }),
      clusterPolicy({ name: 'moved', priority, ...both('Pass') }),
      clusterPolicy({ name: 'default', tier: 'Baseline', ...both('Accept') }),
    );
    expect(ways(scene)).toEqual(expected);
  });

  const networkPolicy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'allow', namespace: 'gryffindor' },
    spec: {
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [{ namespaceSelector: labelled('slytherin') }] }],
      egress: [{ to: [{ namespaceSelector: labelled('slytherin') }] }],
    },
  };

  test.each([
    ['Deny', [networkPolicy], no],
    ['Pass', [networkPolicy], yes],
    ['Pass', [], no],
  ] as const)(
    'an Admin tier that says %s, NetworkPolicies %j, and a Baseline that denies',
    (action, more, expected) => {
      const scene = sceneWith(
        clusterPolicy({ ...both(action) }),
        clusterPolicy({ name: 'default', tier: 'Baseline', ...both('Deny') }),
        ...more,
      );
      expect(ways(scene)).toEqual(expected);
    },
  );

  test('an Admin tier that accepts overrules NetworkPolicies that allow nothing', () => {
    const closed = { ...networkPolicy, spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] } };
    expect(ways(sceneWith(closed))).toEqual(no);
    expect(ways(sceneWith(closed, clusterPolicy(both('Accept'))))).toEqual(yes);
  });

  test('policies of one priority that differ decide nothing, and those that agree do', () => {
    const [denies, accepts] = [both('Deny'), both('Accept')].map((rules, i) =>
      clusterPolicy({ name: `policy-${i}`, ...rules }),
    );
    const ask = (...policies: readonly object[]) =>
      findingsOf(sceneWith(...policies), 'gryffindor/harry-0', 'slytherin/draco-0', 'tcp', 80);
    expect(ask(denies ?? {}, accepts ?? {})).toEqual(['egress ambiguous policy-0 policy-1']);
    expect(ask(denies ?? {}, clusterPolicy({ name: 'other', ...both('Deny') }))).toEqual([
      'egress refused policy-0 other',
    ]);
  });
});

describe('older kinds, and what the input does not say', () => {
  const older = (kind: string, name: string, spec: object) => ({
    apiVersion: 'policy.networking.k8s.io/v1alpha1',
    kind,
    metadata: { name },
    spec: { subject: ofHouse('gryffindor'), ...spec },
  });
  const ask = (policies: readonly object[], to = 'slytherin/draco-0', protocol: Protocol = 'tcp', number = 80) =>
    findingsOf(sceneWith(...policies), 'gryffindor/harry-0', to, protocol, number);
  const to = [ofHouse('slytherin')];

  test('AdminNetworkPolicies and the BaselineAdminNetworkPolicy', () => {
    const denies = older('BaselineAdminNetworkPolicy', 'default', { egress: [{ action: 'Deny', to }] });
    const egress = [
      { action: 'Allow', to, ports: [{ portNumber: { port: 80 } }] },
      { action: 'Pass', to, ports: [{ portRange: { protocol: 'UDP', start: 50, end: 60 } }, { namedPort: 'dns' }] },
    ];
    const admin = older('AdminNetworkPolicy', 'admin', { priority: 3, egress });
    expect(ask([denies])).toEqual(['egress refused default']);
    expect(ask([denies, admin])).toEqual([]);
    expect(ask([denies, admin], 'slytherin/draco-0', 'udp', 53)).toEqual(['egress refused default']);
    expect(ask([denies, admin], 'slytherin/draco-0', 'tcp', 8080)).toEqual(['egress refused default']);
  });

  test('a peer that a later API may have fails closed', () => {
    const later = (action: string) =>
      older('AdminNetworkPolicy', 'later', { priority: 1, egress: [{ action, to: [{}] }] });
    expect(['Allow', 'Deny', 'Pass'].map((action) => ask([later(action)]).length)).toEqual([0, 1, 1]);
  });

  test('names in DNS, Nodes of unknown addresses and pings', () => {
    const allow = { action: 'Accept', peers: [{ domainNames: ['*.example.com'] }] } as const;
    const deny = { action: 'Deny', peers: [{ networks: ['0.0.0.0/0'] }] } as const;
    const names = clusterPolicy({ egress: [allow, deny] });
    expect(ask([names], '203.0.113.9')).toEqual(['egress unknown policy']);
    expect(ask([clusterPolicy({ egress: [allow] })], '203.0.113.9')).toEqual([]);
    const nodes = clusterPolicy({ egress: [{ action: 'Deny', peers: [{ nodes: {} }] }] });
    expect(ask([nodes], '203.0.113.9')).toEqual([]);
    const ofPort = { ...deny, protocols: [{ tcp: {} }] };
    expect(ask([clusterPolicy({ egress: [ofPort] })], 'slytherin/draco-0', 'icmp')).toEqual([]);
    expect(ask([clusterPolicy({ egress: [deny] })], 'slytherin/draco-0', 'icmp')).toEqual(['egress refused policy']);
  });

  test('a Pod that only has an address is the subject of what every Pod is', () => {
    const rules: readonly Rule[] = [{ action: 'Deny', peers: [ofHouse('slytherin')] }];
    const egressOf = (subject: object) =>
      findingsOf(sceneWith(clusterPolicy({ subject, egress: rules })), '10.1.1.77', 'slytherin/draco-0', 'tcp', 80);
    expect(egressOf({ namespaces: {} })).toEqual(['egress refused policy']);
    expect(egressOf(ofHouse('gryffindor'))).toEqual([]);
  });

  test('what is missing or misspelled is said', () => {
    const wrong = (spec: object) => () => sceneWith({ ...clusterPolicy({}), spec });
    expect(wrong({})).toThrow(/tier[^]*priority[^]*subject/);
    const rule = { tier: 'Admin', priority: 1, subject: ofHouse('gryffindor') };
    expect(wrong({ ...rule, egress: [{}] })).toThrow(/action[^]*to/);
    expect(wrong({ ...rule, ingress: [{ action: 'Drop', from: [{ namespaces: {} }] }] })).toThrow(/action/);
    expect(wrong({ ...rule, priority: 1001 })).toThrow(/priority/);
  });
});
