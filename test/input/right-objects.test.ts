import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { InputSource } from '../../src/input/documents/document.ts';
import { Report } from '../../src/input/objects/report.ts';
import { validate } from '../../src/input/objects/validate.ts';
import { rounds } from '../support/rounds.ts';

const metadata = {
  name: 'web',
  namespace: 'shop',
  labels: { app: 'web', tier: '' },
  annotations: null,
  uid: 'a-b',
  generation: 2,
  creationTimestamp: '2026-01-01T00:00:00Z',
  finalizers: ['a.example/b'],
  ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'c', controller: true }],
};

const conditions = [{ type: 'Ready', status: 'True', observedGeneration: 1, reason: 'Set', message: '' }];

/** An object of each kind with every field that kpc reads, and some that it does not. */
const examples = {
  Service: {
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: {
      type: 'LoadBalancer',
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1', 'fd00::1'],
      ipFamilies: ['IPv4', 'IPv6'],
      ipFamilyPolicy: 'PreferDualStack',
      externalName: '',
      externalIPs: ['192.0.2.1'],
      loadBalancerIP: '192.0.2.2',
      loadBalancerClass: 'a.example/b',
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, targetPort: 'web', nodePort: 30080, appProtocol: 'http' },
        { name: 'dns', protocol: 'UDP', port: 53, targetPort: 5353, nodePort: null },
      ],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
      internalTrafficPolicy: 'Local',
      externalTrafficPolicy: 'Local',
      healthCheckNodePort: 30081,
      loadBalancerSourceRanges: ['192.0.2.0/24'],
      publishNotReadyAddresses: false,
      allocateLoadBalancerNodePorts: true,
      trafficDistribution: 'PreferClose',
      selector: { app: 'web' },
    },
    status: {
      conditions,
      loadBalancer: {
        ingress: [{ ip: '192.0.2.2', hostname: 'a.example', ipMode: 'VIP', ports: [{ port: 80, protocol: 'TCP' }] }],
      },
    },
  },
  EndpointSlice: {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, ownerReferences: [{ kind: 'Service', name: 'web' }], generation: 3 },
    addressType: 'IPv4',
    ports: [{ name: 'http', protocol: 'TCP', port: 8080, appProtocol: null }],
    endpoints: [
      {
        addresses: ['10.0.0.1'],
        conditions: { ready: true, serving: true, terminating: false },
        hostname: 'web-0',
        nodeName: 'node-1',
        zone: 'a',
        hints: { forZones: [{ name: 'a' }], forNodes: [{ name: 'node-1' }] },
        targetRef: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'd' },
        deprecatedTopology: { rack: 'r1' },
      },
      { addresses: ['10.0.0.2'], conditions: {} },
    ],
  },
  Endpoints: {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata,
    subsets: [
      {
        addresses: [{ ip: '10.0.0.1', hostname: 'web-0', nodeName: 'node-1', targetRef: { kind: 'Pod' } }],
        notReadyAddresses: [{ ip: '10.0.0.2' }],
        ports: [{ name: 'http', port: 8080, protocol: 'TCP', appProtocol: 'http' }],
      },
    ],
  },
  ServiceCIDR: {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata,
    spec: { cidrs: ['10.96.0.0/16', 'fd00::/112'] },
    status: { conditions },
  },
  Node: {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1', labels: { 'topology.kubernetes.io/zone': 'a' } },
    spec: { podCIDR: '10.244.0.0/24', podCIDRs: ['10.244.0.0/24'], taints: [{ key: 'a', effect: 'NoSchedule' }] },
    status: {
      addresses: [{ type: 'InternalIP', address: '192.0.2.10' }],
      conditions: [{ type: 'Ready', status: 'True' }],
      nodeInfo: { kubeletVersion: 'v1.36.3' },
    },
  },
};
const kinds = ['Service', 'EndpointSlice', 'Endpoints', 'Node', 'ServiceCIDR'] as const;

const nowhere: InputSource = {
  place: () => ({ file: 'a.yaml', locate: () => ({ file: 'a.yaml', line: 1, column: 1 }) }),
  written: () => undefined,
  keyPlace: () => ({ file: 'a.yaml', locate: () => ({ file: 'a.yaml', line: 1, column: 1 }) }),
};

/** How much the checks of fields and shape say of the object. */
function countFaults(kind: keyof typeof examples, value: object): number {
  const report = new Report(nowhere);
  validate(kind, structuredClone(value), report);
  return report.diagnostics.length;
}

type Container = Record<string, unknown>;

/** The mappings and lists of a value, itself included. */
function containersOf(value: unknown): readonly Container[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value as Container, ...Object.values(value).flatMap(containersOf)];
}

const scalars = [
  null,
  '',
  'x',
  'TCP',
  'IPv6',
  'None',
  '80',
  true,
  false,
  0,
  1,
  80,
  65_535,
  65_536,
  86_401,
  -1,
  1.5,
  1e300,
];
const others = [
  ...scalars,
  [],
  {},
  [null],
  ['x'],
  [1],
  [{}],
  [[]],
  { a: 'b' },
  { name: 1 },
  { name: 'x' },
  { ready: null },
];
const names = ['name', 'ports', 'port', 'addresses', 'ip', 'ready', 'spec', 'labels', 'nodename', 'x', 'conditions'];

const edit = fc.record({
  container: fc.nat(),
  field: fc.nat(),
  change: fc.oneof(
    fc.constantFrom(...others).map((value) => ({ kind: 'replace' as const, value })),
    fc.constantFrom(...names).map((name) => ({ kind: 'rename' as const, name })),
    fc
      .tuple(fc.constantFrom(...names), fc.constantFrom(...others))
      .map(([name, value]) => ({ kind: 'add' as const, name, value })),
    fc.constant({ kind: 'remove' as const }),
  ),
});
type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never;

function apply(root: object, { container, field, change }: Edit): void {
  const all = containersOf(root);
  const into = all[container % all.length] as Container;
  const keys = Object.keys(into);
  const key = keys[field % Math.max(1, keys.length)];
  if (change.kind === 'add') {
    if (Array.isArray(into)) into.push(structuredClone(change.value));
    else into[change.name] = structuredClone(change.value);
  } else if (key !== undefined) {
    if (change.kind === 'replace') into[key] = structuredClone(change.value);
    else if (!Array.isArray(into)) {
      const value = into[key];
      delete into[key];
      if (change.kind === 'rename') into[change.name] = value;
    }
  }
}

describe.each(kinds)('%s', (kind) => {
  test('an object with all fields is right', () => {
    expect(countFaults(kind, examples[kind])).toBe(0);
  });

  test('is taken as it is where nothing is wrong, and otherwise something is said', () => {
    const seen = { right: 0, wrong: 0 };
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
        const object = structuredClone(examples[kind]);
        for (const each of edits) apply(object, each);
        const report = new Report(nowhere);
        const isRight = validate(kind, object, report) === (object as unknown);
        expect(report.hasErrors).toBe(!isRight);
        seen[isRight ? 'right' : 'wrong']++;
      }),
      { numRuns: rounds(2000) },
    );
    expect(Math.min(seen.right, seen.wrong)).toBeGreaterThan(rounds(50));
  });
});
