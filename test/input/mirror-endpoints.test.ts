import { describe, expect, test } from 'vitest';
import { parseAddress } from '../../src/kernel/address.ts';
import { mirrorEndpoints } from '../../src/cluster/slices/mirror-endpoints.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';
import { describe as describeAll } from './diagnose.ts';

function mirrorAll(...documents: readonly string[]): ReturnType<typeof mirrorEndpoints> {
  const inputs = collectFiles([new TextFile('in.yaml', documents.join('---\n'))]);
  expect(inputs.diagnostics).toEqual([]);
  return mirrorEndpoints(inputs);
}

function mirror(...documents: readonly string[]): ReturnType<typeof mirrorEndpoints>['slices'] {
  const { slices, diagnostics } = mirrorAll(...documents);
  expect(diagnostics).toEqual([]);
  return slices;
}

const endpoints = (metadata: string, ...subsets: string[]): string =>
  `apiVersion: v1\nkind: Endpoints\nmetadata: {name: web${metadata}}\nsubsets:\n${subsets.map((line) => `${line}\n`).join('')}`;

const both = [
  '- addresses: [{ip: 10.0.0.1, nodeName: node-1, hostname: a}, {ip: "fd00::1"}]',
  '  notReadyAddresses: [{ip: 10.0.0.2}]',
  '  ports: [{name: http, port: 8080}]',
];

const statusOf = (nodeName: string | undefined, ready: boolean) => ({
  nodeName,
  zone: undefined,
  ready,
  serving: true,
  terminating: false,
  zoneHints: [],
  nodeHints: [],
});
const at = (text: string) => ({ address: parseAddress(text) });

test('a slice for each port and family, whose endpoints point at their addresses', () => {
  const slices = mirror(endpoints(', labels: {app: web}', ...both));
  expect(slices.map(({ object }) => object)).toEqual([
    {
      metadata: {
        name: 'web-ipv4-0',
        namespace: 'default',
        labels: { app: 'web', 'kubernetes.io/service-name': 'web' },
        annotations: {},
      },
      addressType: 'IPv4',
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
      endpoints: [
        { ...at('10.0.0.1'), hostname: 'a', status: statusOf('node-1', true) },
        { ...at('10.0.0.2'), hostname: undefined, status: statusOf(undefined, false) },
      ],
    },
    {
      metadata: expect.objectContaining({ name: 'web-ipv6-0' }),
      addressType: 'IPv6',
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
      endpoints: [{ ...at('fd00::1'), hostname: undefined, status: statusOf(undefined, true) }],
    },
  ]);
  const place = slices[0]?.source.place(['endpoints', 1, 'addresses', 0]).locate();
  expect(place).toEqual({ file: 'in.yaml', line: 6, column: 28 });
});

test('an address that is ready in one subset and not in another is not ready', () => {
  const subset = (field: string): string => `- {${field}: [{ip: 10.0.0.1}], ports: [{port: 80}]}`;
  for (const subsets of [
    [subset('addresses'), subset('notReadyAddresses')],
    [subset('notReadyAddresses'), subset('addresses')],
  ]) {
    const [slice, ...others] = mirror(endpoints('', ...subsets));
    expect(others).toEqual([]);
    expect(slice?.object.endpoints.map(({ status }) => status.ready)).toEqual([false]);
  }
});

test.each([
  ['the label that says so', ', labels: {endpointslice.kubernetes.io/skip-mirror: "true"}'],
  ["a leader election's record", ', annotations: {control-plane.alpha.kubernetes.io/leader: ""}'],
])('not with %s', (_, metadata) => {
  expect(mirror(endpoints(metadata, ...both))).toEqual([]);
});

describe('beside slices of the Service', () => {
  const slice = (service: string, manager = ''): string =>
    `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s, labels: {kubernetes.io/service-name: ${service}${manager && `, endpointslice.kubernetes.io/managed-by: ${manager}`}}}\naddressType: IPv4\n`;
  const service = (selector: string): string =>
    `apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {clusterIP: 10.96.0.10, ${selector}ports: [{port: 80}]}\n`;

  test('the control plane mirrors whatever another manager makes', () => {
    for (const manager of ['', 'staff', 'endpointslice-controller.k8s.io'])
      expect(mirror(service(''), endpoints('', ...both), slice('web', manager))).toHaveLength(2);
  });

  test('its own copies are not made again', () => {
    expect(
      mirror(service(''), endpoints('', ...both), slice('web', 'endpointslicemirroring-controller.k8s.io')),
    ).toEqual([]);
    expect(mirror(endpoints('', ...both), slice('other', 'endpointslicemirroring-controller.k8s.io'))).toHaveLength(2);
  });

  test('of a Service with a selector, slices and Endpoints come from the same Pods, and slices win', () => {
    const selecting = service('selector: {app: web}, ');
    expect(mirror(selecting, endpoints('', ...both), slice('web'))).toEqual([]);
    expect(mirror(selecting, endpoints('', ...both))).toHaveLength(2);
    expect(mirror(service('selector: {}, '), endpoints('', ...both), slice('web'))).toHaveLength(2);
  });
});

test('an address keeps the node and host name of its first mention, at whatever port', () => {
  const [http, https] = mirror(
    endpoints(
      '',
      '- {notReadyAddresses: [{ip: 10.0.0.1, nodeName: node-1, hostname: a}]}',
      '- {addresses: [{ip: 10.0.0.1, nodeName: node-2}], ports: [{name: http, port: 80}]}',
      '- {addresses: [{ip: 10.0.0.2}, {ip: 10.0.0.1}], ports: [{name: https, port: 443}]}',
    ),
  );
  const first = { ...at('10.0.0.1'), hostname: 'a', status: statusOf('node-1', true) };
  expect(http?.object.endpoints).toEqual([first]);
  expect(https?.object.endpoints).toEqual([
    { ...at('10.0.0.2'), hostname: undefined, status: statusOf(undefined, true) },
    first,
  ]);
  expect(https?.source.place(['endpoints', 1]).locate()).toMatchObject({ line: 5 });
});

describe('more addresses than the control plane mirrors', () => {
  const list = (count: number, first: string): string =>
    `[${Array.from({ length: count }, (_, i) => `{ip: "${first}${i + 1}"}`).join(', ')}]`;

  test('count over both families, sorted as text, and what is left out is said', () => {
    const { slices, diagnostics } = mirrorAll(
      endpoints(
        '',
        `- addresses: ${list(600, 'fd00::')}`,
        '  ports: [{port: 80}]',
        `- addresses: ${list(600, '10.0.0.')}`.replace(
          /10\.0\.0\.(\d+)/g,
          (_, n: string) => `10.0.${Number(n) >> 8}.${Number(n) & 255}`,
        ),
        '  ports: [{port: 80}]',
      ),
    );
    expect(slices.map(({ object }) => [object.addressType, object.endpoints.length])).toEqual([
      ['IPv4', 600],
      ['IPv6', 400],
    ]);
    // As text, fd00::10 comes before fd00::2.
    const kept = slices[1]?.object.endpoints.map(({ address }) => address?.text);
    expect([kept?.includes('fd00::100'), kept?.includes('fd00::99')]).toEqual([true, false]);
    expect(describeAll(diagnostics)).toEqual([
      '6:11 warning too-many {"object":"Endpoints","field":"addresses","count":1200,"limit":1000}',
    ]);
  });

  test('take the ready ones first', () => {
    const [slice] = mirrorAll(
      endpoints(
        '',
        `- notReadyAddresses: ${list(1000, 'fd00::')}`,
        '  addresses: [{ip: "fdff::1"}]',
        '  ports: [{port: 80}]',
      ),
    ).slices;
    const states = slice?.object.endpoints.map(({ status }) => status.ready) ?? [];
    expect([states.length, states.filter(Boolean).length]).toEqual([1000, 1]);
  });

  test('are counted for each port', () => {
    const lines = ['a', 'b'].flatMap((name, i) => [
      `- addresses: ${list(600, `fd0${i}::`)}`,
      `  ports: [{name: ${name}, port: 80}]`,
    ]);
    expect(mirror(endpoints('', ...lines)).map(({ object }) => object.endpoints.length)).toEqual([600, 600]);
  });
});
