import { describe, expect, test } from 'vitest';
import { compile } from '../../src/library/compile.ts';
import { collectInputs } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

type Path = readonly (string | number)[];

function service() {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', labels: { app: 'web' }, annotations: { note: 'x' } },
    spec: {
      type: 'LoadBalancer',
      clusterIP: '10.96.0.1',
      clusterIPs: ['10.96.0.1'],
      selector: { app: 'web' },
      externalIPs: ['192.0.2.1'],
      ports: [{ name: 'http', port: 80, appProtocol: 'http' }],
    },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.2' }] } },
  };
}

function slice() {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, appProtocol: 'http' }],
    endpoints: [{ addresses: ['10.244.0.1'], targetRef: { kind: 'Pod', name: 'web-0' } }],
  };
}

function endpoints() {
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'web' },
    subsets: [
      { addresses: [{ ip: '10.244.0.1', targetRef: { kind: 'Pod', name: 'web-0' } }], ports: [{ port: 8080 }] },
    ],
  };
}

function pod() {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-0', labels: { app: 'web' } },
    spec: { nodeName: 'a' },
    status: { phase: 'Running', podIP: '10.244.0.1', podIPs: [{ ip: '10.244.0.1' }] },
  };
}

function serviceCidr() {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name: 'kubernetes' },
    spec: { cidrs: ['10.96.0.0/16'] },
  };
}

function node() {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'a' },
    spec: { podCIDR: '10.244.0.0/24', unschedulable: false },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.10' }] },
  };
}

/** The object with another value at a path. */
function withValue(object: object, path: Path, value: unknown): object {
  const [step, ...rest] = path;
  const at = object as Record<string | number, unknown>;
  const name = step ?? '';
  if (rest.length === 0) at[name] = value;
  else withValue((at[name] ??= {}) as object, rest, value);
  return object;
}

/** What kpc reports about an object, with the text at that place. */
function tell(object: object): string[] {
  const file = new TextFile('in.json', JSON.stringify(object, undefined, 1));
  const { diagnostics } = collectInputs({ files: [file], diagnostics: [] });
  return diagnostics.map(({ place, severity, code }) => {
    const at = place?.locate();
    const line = file.lineAt(at?.line ?? 0).slice((at?.column ?? 1) - 1);
    return `${severity} ${code} at ${line.replace(/,$/, '')}`;
  });
}

const examples = { service, slice, endpoints, pod, serviceCidr, node };
type Example = keyof typeof examples;

test.each(Object.keys(examples) as Example[])('nothing is said of a right object: %s', (name) => {
  expect(tell(examples[name]())).toEqual([]);
});

describe('a value of a type that the API server refuses is an error at its place', () => {
  test.each<[Example, Path, unknown]>([
    ['service', ['spec', 'ports', 0, 'appProtocol'], 5],
    ['service', ['spec', 'loadBalancerIP'], 5],
    ['service', ['spec', 'loadBalancerClass'], true],
    ['service', ['metadata', 'labels', 'app'], 1],
    ['service', ['metadata', 'annotations', 'note'], true],
    ['service', ['spec', 'selector', 'app'], 1.5],
    ['service', ['metadata', 'uid'], 5],
    ['service', ['metadata', 'resourceVersion'], 5],
    ['service', ['metadata', 'generation'], '5'],
    ['service', ['metadata', 'creationTimestamp'], 5],
    ['service', ['metadata', 'finalizers'], 'x'],
    ['service', ['metadata', 'ownerReferences'], [5]],
    ['service', ['status', 'conditions'], 'x'],
    ['service', ['status', 'loadBalancer', 'ingress', 0, 'ports'], [5]],
    ['slice', ['ports', 0, 'appProtocol'], 5],
    ['slice', ['endpoints', 0, 'targetRef'], 'web-0'],
    ['slice', ['endpoints', 0, 'targetRef', 'name'], 5],
    ['slice', ['endpoints', 0, 'targetRef', 'kind'], true],
    ['slice', ['endpoints', 0, 'deprecatedTopology'], { rack: 1 }],
    ['endpoints', ['subsets', 0, 'ports', 0, 'appProtocol'], 5],
    ['endpoints', ['subsets', 0, 'addresses', 0, 'targetRef', 'uid'], 5],
    ['pod', ['metadata', 'uid'], 5],
    ['pod', ['metadata', 'labels', 'app'], 1],
    ['serviceCidr', ['metadata', 'labels'], { app: 1 }],
    ['serviceCidr', ['status'], { conditions: 5 }],
    ['node', ['spec', 'unschedulable'], 'true'],
    ['node', ['spec', 'providerID'], 5],
    ['node', ['spec', 'taints'], [5]],
  ])('%s %j: %j', (name, path, value) => {
    const told = tell(withValue(examples[name](), path, value));
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/^error bad-value at (?:\S)/);
  });
});

test.each<[Example, Path, string]>([
  ['slice', ['endpoints', 0, 'targetRef', 'nam'], '"nam": "x"'],
  ['endpoints', ['subsets', 0, 'addresses', 0, 'targetRef', 'nam'], '"nam": "x"'],
  ['service', ['metadata', 'ownerReferences'], '"nam": "x"'],
  ['serviceCidr', ['spec', 'cidr'], '"cidr": "x"'],
  ['node', ['spec', 'taints'], '"nam": "x"'],
])('a field that Kubernetes does not know is a warning: %s %j', (name, path, at) => {
  const isList = path.at(-1) === 'ownerReferences' || path.at(-1) === 'taints';
  expect(tell(withValue(examples[name](), path, isList ? [{ nam: 'x' }] : 'x'))).toEqual([
    `warning unknown-field at ${at}`,
  ]);
});

test.each<[Example, Path]>([
  ['service', ['metadata', 'labels', 'app']],
  ['service', ['metadata', 'annotations', 'note']],
  ['service', ['spec', 'selector', 'app']],
  ['slice', ['metadata', 'labels', 'app']],
  ['pod', ['metadata', 'labels', 'app']],
])('null where a string belongs is the empty string: %s %j', (name, path) => {
  const told = tell(withValue(examples[name](), path, null));
  expect(told).toEqual([]);
});

describe('an address that no endpoint can have is told', () => {
  const warned = '';
  const refused = 'error bad-value';

  test.each<[string, string, string, string]>([
    // What the API server refuses of an endpoint or an external IP is an error.
    ['0.0.0.0', warned, refused, refused],
    ['127.0.0.1', warned, refused, refused],
    ['169.254.1.1', warned, refused, warned],
    ['224.0.0.1', warned, refused, warned],
    ['224.0.1.1', warned, warned, warned],
    ['239.255.255.255', warned, warned, warned],
    ['255.255.255.255', warned, warned, warned],
    ['223.255.255.255', '', '', ''],
    ['240.0.0.1', '', '', ''],
    ['::', warned, refused, refused],
    ['::1', warned, refused, refused],
    ['fe80::1', warned, refused, warned],
    ['ff02::1', warned, refused, warned],
    ['ff05::2', warned, warned, warned],
    ['fec0::1', '', '', ''],
  ])('%s', (text, ofBalancer, ofEndpoint, ofService) => {
    const expected = (told: string) => (told === '' ? [] : [`${told} at "${text}"`]);
    const told = (name: Example, path: Path) => tell(withValue(examples[name](), path, text));
    expect(told('service', ['status', 'loadBalancer', 'ingress', 0, 'ip'])).toEqual(expected(ofBalancer));
    expect(told('service', ['spec', 'externalIPs', 0])).toEqual(expected(ofEndpoint));
    const addressType = text.includes(':') ? 'IPv6' : 'IPv4';
    const ofType = withValue(slice(), ['addressType'], addressType);
    expect(tell(withValue(ofType, ['endpoints', 0, 'addresses', 0], text))).toEqual(expected(ofEndpoint));
    expect(told('endpoints', ['subsets', 0, 'addresses', 0, 'ip'])).toEqual(expected(ofEndpoint));
    expect(tell(withValue(withValue(pod(), ['status', 'podIP'], text), ['status', 'podIPs'], [{ ip: text }]))).toEqual(
      expected(ofEndpoint),
    );
    const spec = { ports: [{ port: 80 }], clusterIP: text };
    expect(told('service', ['spec', 'externalIPs', 0])).toEqual(expected(ofEndpoint));
    expect(tell({ ...service(), spec, status: {} })).toEqual(expected(ofService));
  });
});

describe('the port of a slice', () => {
  test.each([
    [0, ['warning bad-value at 0']],
    [-1, ['error bad-value at -1']],
    [65536, ['error bad-value at 65536']],
    ['8080', ['error bad-value at "8080"']],
    [null, []],
  ])('%j', (port, expected) => {
    expect(tell(withValue(slice(), ['ports', 0, 'port'], port))).toEqual(expected);
  });
});

test('what is wrong with a slice does not make its Service look as if it had none', () => {
  const objects = [service(), withValue(slice(), ['endpoints', 0, 'nodeName'], 5)];
  const text = objects.map((object) => JSON.stringify(object)).join('\n');
  const { diagnostics } = compile({ manifests: [{ name: 'in.json', text }], node: 'a', proxyMode: 'ipvs' });
  expect(diagnostics.map(({ code }) => code).sort()).toEqual(['bad-value', 'external-ips', 'not-assigned']);
});
