import { describe, expect, test } from 'vitest';
import { compile, compileFleet } from '../../src/library/compile.ts';

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

/** A Node whose addresses are on lines of their own, the first seven lines below its start. */
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

describe('an address of the node that is none is a warning', () => {
  test.each(['192.168.50.11x', '', '192.0.2.1/24', 'fe80::1%eth0', ' 192.0.2.1'])('"%s"', (address) => {
    const text = node('a', `type: InternalIP, address: "${address}"`);
    for (const mode of ['nftables', 'iptables', 'ipvs'] as const) {
      expect(tell(text, mode)).toEqual([
        `7:33 warning bad-value: InternalIP cannot be "${address}": kube-proxy leaves it out`,
      ]);
    }
  });

  test('all of them are told in one run', () => {
    const text = node('a', 'type: InternalIP, address: x', 'type: ExternalIP, address: v');
    expect(tell(text, 'iptables').map((line) => line.split(':', 2).join(':'))).toEqual([
      '7:33 warning bad-value',
      '8:33 warning bad-value',
    ]);
  });
});

test.each([
  ['192.0.02.010', 'is read as 192.0.2.10'],
  ['::ffff:192.0.2.10', 'is read as 192.0.2.10'],
  ['2001:DB8::1', 'is read as 2001:db8::1'],
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

test('warnings of Nodes stand among the others in the order of the text', () => {
  const wrong = node('a', 'type: InternalIP, address: x');
  const other = (name: string) => `---\napiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\nspek: {}\n`;
  const told = tell(other('b') + wrong + other('c'), 'ipvs').map((line) => line.split(' ', 3).join(' '));
  expect(told).toEqual(['5:1 warning unknown-field:', '12:33 warning bad-value:', '17:1 warning unknown-field:']);
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
    expect(diagnostics.map(({ line, code }) => `${line} ${code}`)).toEqual(['7 bad-value', '21 bad-value']);
  });
});
