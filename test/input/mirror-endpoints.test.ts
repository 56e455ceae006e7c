import { expect, test } from 'vitest';
import { parseAddress } from '../../src/kernel/address.ts';
import { mirrorEndpoints } from '../../src/cluster/mirror-endpoints.ts';
import { collectFiles } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

function mirror(...documents: readonly string[]): ReturnType<typeof mirrorEndpoints> {
  const { endpoints, slices, diagnostics } = collectFiles([new TextFile('in.yaml', documents.join('---\n'))]);
  expect(diagnostics).toEqual([]);
  return mirrorEndpoints(endpoints, slices);
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

test('not where a slice of that Service is there', () => {
  const slice = (service: string): string =>
    `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s, labels: {kubernetes.io/service-name: ${service}}}\naddressType: IPv4\n`;
  expect(mirror(endpoints('', ...both), slice('web'))).toEqual([]);
  expect(mirror(endpoints('', ...both), slice('other'))).toHaveLength(2);
});
