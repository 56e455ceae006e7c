import { describe, expect, test } from 'vitest';
import { compile, compileFleet } from '../../src/library/index.ts';

const services = `apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  clusterIP: 10.96.0.1
  ports: [{port: 80, nodePort: 30080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.244.0.1]}]
`;

/** A Node whose addresses stand on lines of their own, the first seven lines below its start. */
function node(name: string, ...addresses: readonly string[]): string {
  const lines = addresses.map((address) => `  - {${address}}\n`).join('');
  return `---\napiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\nstatus:\n  addresses:\n${lines}`;
}

/** What is said of a Node called "a" and others. */
function tell(nodes: string, proxyMode: 'ipvs' | 'iptables' | 'nftables', bindAddress = '0.0.0.0'): string[] {
  const manifests = [
    { name: 'services.yaml', text: services },
    { name: 'nodes.yaml', text: nodes },
  ];
  const { diagnostics } = compile({ manifests, node: 'a', proxyMode, bindAddress });
  return diagnostics.map(({ line, column, severity, code, text }) => {
    return `${line}:${column} ${severity} ${code}: ${text}`;
  });
}

const right = 'type: InternalIP, address: 192.0.2.10';
const everywhere = ", and NodePorts listen on all addresses, because the node's own are unknown";

describe('an address of the node that is none is a warning, which says what comes of it', () => {
  test.each([
    ['192.168.50.11x', '"192.168.50.11x" is not an IP address'],
    ['""', 'is empty'],
    ['null', 'is empty'],
    ['192.0.2.1/24', '"192.0.2.1/24" is not an IP address'],
    ['"fe80::1%eth0"', '"fe80::1%eth0" is not an IP address'],
    ['" 192.0.2.1"', '" 192.0.2.1" is not an IP address'],
  ])('%s', (address, what) => {
    const text = node('a', `type: InternalIP, address: ${address}`);
    const start = `7:33 warning bad-address: node a: InternalIP ${what}; kube-proxy leaves it out`;
    expect(tell(text, 'nftables')).toEqual([`${start}${everywhere}`]);
    expect(tell(text, 'iptables')).toEqual([start]);
    expect(tell(text, 'ipvs')).toEqual([
      `${start}, and without --host-addresses NodePorts have no address to listen on`,
    ]);
  });

  test('nothing comes of it beside a right address, or beside bindAddress', () => {
    const wrong = 'type: ExternalIP, address: x';
    const expected = 'warning bad-address: node a: ExternalIP "x" is not an IP address; kube-proxy leaves it out';
    expect(tell(node('a', right, wrong), 'nftables')).toEqual([`8:33 ${expected}`]);
    expect(tell(node('a', wrong), 'nftables', '192.0.2.10')).toEqual([`7:33 ${expected}`]);
  });

  test('all of them are told in one run', () => {
    const text = node(
      'a',
      'type: InternalIP, address: x',
      'type: ExternalIP, address: v',
      'type: Internal, address: z',
    );
    expect(tell(text, 'iptables').map((line) => line.split(':', 2).join(':'))).toEqual([
      '7:33 warning bad-address',
      '8:33 warning bad-address',
      '9:12 warning bad-address',
    ]);
  });
});

describe('an address that no node should have is a warning', () => {
  const reach = 'at which other networks cannot reach the node; kube-proxy uses it anyway';

  test.each([
    ['0.0.0.0', 'the unspecified address', ', and NodePorts listen on no other address'],
    ['127.0.0.1', 'a loopback address', everywhere],
    ['169.254.1.1', 'a link-local address', ', and NodePorts listen on no other address'],
    ['224.0.0.1', 'a link-local multicast address', ', and NodePorts listen on no other address'],
    ['239.0.0.1', 'a multicast address', ', and NodePorts listen on no other address'],
    ['255.255.255.255', 'the broadcast address', ', and NodePorts listen on no other address'],
    ['fe80::1', 'a link-local address', ', and NodePorts listen on no other address'],
    ['::', 'the unspecified address', ', and NodePorts listen on no other address'],
    ['::1', 'a loopback address', everywhere],
  ])('%s', (address, kind, end) => {
    expect(tell(node('a', `type: InternalIP, address: "${address}"`), 'nftables')).toEqual([
      `7:33 warning bad-address: node a: InternalIP "${address}" is ${kind}, ${reach}${end}`,
    ]);
  });

  test('and nothing is said of node ports where another address is the node’s own', () => {
    expect(tell(node('a', right, 'type: ExternalIP, address: 169.254.1.1'), 'nftables')).toEqual([
      `8:33 warning bad-address: node a: ExternalIP "169.254.1.1" is a link-local address, ${reach}`,
    ]);
  });

  test('in mode ipvs node ports listen there for want of others', () => {
    const [told] = tell(node('a', 'type: InternalIP, address: 169.254.1.1'), 'ipvs');
    expect(told).toContain(`${reach}, and without --host-addresses NodePorts listen there`);
  });
});

test.each([
  ['internalIP', 'is of type "internalIP";'],
  ['InternalIp', 'is of type "InternalIp";'],
  ['Public', 'is of type "Public";'],
  ['""', 'has no type;'],
])('a type that Kubernetes does not know is a warning: %s', (type, what) => {
  expect(tell(node('a', `type: ${type}, address: 192.0.2.10`), 'nftables')).toEqual([
    `7:12 warning bad-address: node a: addresses[0] ${what} kube-proxy leaves it out${everywhere}`,
  ]);
});

test.each([
  ['192.0.02.010', 'is read as 192.0.2.10'],
  ['::ffff:192.0.2.10', 'IPv4-mapped'],
  ['2001:DB8::1', 'RFC 5952'],
])('an address in an odd form is told as that of a Service: %s', (address, words) => {
  const told = tell(node('a', `type: InternalIP, address: "${address}"`), 'nftables');
  expect(told).toEqual([expect.stringMatching(/^7:33 warning odd-address: InternalIP /)]);
  expect(told[0]).toContain(words);
});

test.each([
  ['one', [right]],
  ['one of each family', [right, 'type: InternalIP, address: "2001:db8::1"']],
  ['names', [right, 'type: Hostname, address: a', 'type: InternalDNS, address: a.b', 'type: ExternalDNS, address: ""']],
])('nothing is said of right addresses: %s', (_, addresses) => {
  for (const mode of ['ipvs', 'iptables', 'nftables'] as const) {
    expect(tell(node('a', ...addresses), mode)).toEqual([]);
  }
});

test('nothing comes of it where --host-addresses tells the addresses', () => {
  const manifests = [{ name: 'in.yaml', text: services + node('a', 'type: InternalIP, address: x') }];
  const hosts = '[{"ifname":"eth0","addr_info":[{"family":"inet","local":"192.0.2.1","prefixlen":24}]}]';
  const { diagnostics } = compile({
    manifests,
    node: 'a',
    proxyMode: 'ipvs',
    hostAddresses: { name: 'ip.json', text: hosts },
  });
  expect(diagnostics.map(({ text }) => text)).toEqual([
    'node a: InternalIP "x" is not an IP address; kube-proxy leaves it out',
  ]);
});

test('a loopback address of one family says nothing of node ports beside a right one of the other', () => {
  const [told = ''] = tell(node('a', right, 'type: InternalIP, address: "::1"'), 'nftables');
  expect(told).toMatch(/kube-proxy uses it anyway$/);
});

test('warnings of Nodes stand among the others in the order of the text', () => {
  const wrong = node('a', 'type: InternalIP, address: x');
  const other = (name: string) => `---\napiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\nspek: {}\n`;
  const told = tell(other('b') + wrong + other('c'), 'ipvs').map((line) => line.split(' ', 3).join(' '));
  expect(told).toEqual(['5:1 warning unknown-field:', '12:33 warning bad-address:', '17:1 warning unknown-field:']);
});

describe('of several Nodes', () => {
  const wrong = 'type: InternalIP, address: x';

  test('only the one that is compiled is looked at', () => {
    expect(tell(node('a', right) + node('b', wrong), 'nftables')).toEqual([]);
  });

  test('each that is compiled is looked at', () => {
    const manifests = [
      { name: 'services.yaml', text: services },
      { name: 'nodes.yaml', text: node('a', wrong) + node('b', right) + node('c', wrong) },
    ];
    const { diagnostics } = compileFleet({ manifests, proxyMode: 'nftables' });
    expect(diagnostics.map(({ line, code }) => `${line} ${code}`)).toEqual(['7 bad-address', '21 bad-address']);
  });
});
