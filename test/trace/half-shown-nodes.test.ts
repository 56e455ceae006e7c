// Dumps of which one family, listing or moment is missing or another node's: what they do not show is not concluded from them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findFlows } from '../../src/ask/describe/find-flows.ts';
import { readDumped } from '../../src/ask/describe/read-dumped.ts';
import { findInDump } from '../../src/ask/describe/find-subject.ts';
import { compile, open, testPackets, trace } from '../../src/library/index.ts';
import { rowsOfDump } from '../../src/say/describe/table.ts';
import { runKpc } from '../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-half-shown-'));
afterAll(() => rmSync(folder, { recursive: true }));

const manifests = {
  'shop.yaml': `
apiVersion: v1
kind: Service
metadata: { name: sip, namespace: shop }
spec: { type: NodePort, clusterIPs: [10.96.1.1, "fd00:96::101"], clusterIP: 10.96.1.1, ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack, ports: [{ name: sip, port: 5060, nodePort: 30060 }] }
---
apiVersion: v1
kind: Service
metadata: { name: four, namespace: shop }
spec: { type: NodePort, clusterIP: 10.96.1.4, ports: [{ port: 80, nodePort: 30004 }] }
---
apiVersion: v1
kind: Service
metadata: { name: itp, namespace: shop }
spec: { clusterIP: 10.96.1.7, internalTrafficPolicy: Local, ports: [{ name: m, port: 9000 }] }
${[
  ['sip', 'IPv4', '10.244.1.11', 'worker-1'],
  ['sip', 'IPv6', 'fd00:244:1::11', 'worker-1'],
  ['four', 'IPv4', '10.244.1.12', 'worker-1'],
  ['itp', 'IPv4', '10.244.2.17', 'worker-2'],
]
  .map(
    ([service, type, address, node], i) => `---
{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: { name: s${i}, namespace: shop, labels: { kubernetes.io/service-name: ${service} } }, addressType: ${type}, ports: [{ name: ${service === 'four' ? '""' : service === 'sip' ? 'sip' : 'm'}, port: 8080 }], endpoints: [{ addresses: ["${address}"], nodeName: ${node} }] }`,
  )
  .join('\n')}
---
{ apiVersion: v1, kind: Node, metadata: { name: worker-1 }, spec: { podCIDR: 10.244.1.0/24 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }, { type: InternalIP, address: "fd00:50::11" }] } }
`,
};

type Mode = 'iptables' | 'ipvs' | 'nftables';

function filesOf(proxyMode: Mode, ...names: readonly string[]): Record<string, string> {
  const { bundle } = compile({ manifests, proxyMode, node: 'worker-1' });
  return Object.fromEntries(names.map((name) => [name, bundle?.files.get(name) ?? '']));
}

function links(own: string, more = ''): string {
  return `2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet ${own}/24 scope global eth0
    inet6 fd00:50::11/64 scope global
4: cni0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 10.244.1.1/24 scope global cni0
${more}`;
}

function traced(dump: Record<string, string>, from: string, to: string, written: Record<string, string> = {}) {
  const [side] = open({ ...dump, ...written }).snapshots;
  const [found] = (side && trace({ side, from, to }).trace?.traces) ?? [];
  if (!found) throw new Error('no trace');
  return found;
}

describe('a node port in a family whose listing is missing', () => {
  const four = filesOf('iptables', 'iptables.restore');
  const both = filesOf('iptables', 'iptables.restore', 'ip6tables.restore');
  const onlyFour = /is IPv4 only/;
  const noRule = /this node has no rule for it/;

  test.each([
    ['without manifests', four, {}],
    ['beside manifests', four, manifests],
  ])('is neither absent nor unprogrammed: %s', (_, dump, written) => {
    const { notes = [] } = traced(dump, 'external', '[fd00:50::11]:30060', written);
    expect(notes.join('\n')).not.toMatch(onlyFour);
    expect(notes.join('\n')).not.toMatch(noRule);
  });

  test('whole listings, and manifests, show that a Service lacks it', () => {
    expect(traced(both, 'external', '[fd00:50::11]:30004').notes?.join('\n')).toMatch(onlyFour);
    expect(traced(four, 'external', '[fd00:50::11]:30004', manifests).notes?.join('\n')).toMatch(onlyFour);
  });

  test("a whole listing without kube-proxy's table of it does not", () => {
    const { 'nftables.nft': text = '' } = filesOf('nftables', 'nftables.nft');
    const own = text.slice(0, text.indexOf('table ip6 kube-proxy')).replace(/^(table|delete) .*[^{]$/gm, '');
    const dump = { 'nft-list-ruleset.txt': own, 'ip-addr.txt': links('192.168.50.11') };
    expect(own).toContain('table ip kube-proxy {');
    expect(traced(dump, 'external', '[fd00:50::11]:30060').notes?.join('\n') ?? '').not.toMatch(onlyFour);
  });
});

test('a policy of nat that is not shown drops nothing', () => {
  const { cause } = traced(filesOf('iptables', 'iptables.restore'), '10.244.1.50', '10.96.1.7:9000');
  expect(cause?.kind).toBe('no-local-endpoints');
});

test("IPVS mode's virtual server on a node in iptables mode is the cause", () => {
  const left = {
    'ipvsadm-save': '-A -t 10.96.1.7:9000 -s rr\n',
    'ip-addr': links(
      '192.168.50.11',
      '21: kube-ipvs0: <BROADCAST,NOARP> mtu 1500\n    inet 10.96.1.7/32 scope global kube-ipvs0\n',
    ),
  };
  const dump = { ...filesOf('iptables', 'iptables.restore'), ...left };
  const { cause } = traced(dump, '10.244.1.50', '10.96.1.7:9000', manifests);
  expect(cause).toEqual({ kind: 'no-server', text: expect.stringContaining('virtual server TCP 10.96.1.7:9000') });
});

describe('addresses of two nodes', () => {
  const foreign = 'KUBE-NODE-PORT-TCP names 30004, but the dump lists virtual servers for it only at addresses that';

  test('node ports of IPVS at addresses that ip addr lacks', async () => {
    const dump = {
      ...filesOf('ipvs', 'iptables.restore', 'ipset.restore', 'ipvsadm.restore'),
      'ip-addr': links(
        '192.168.50.21',
        '21: kube-ipvs0: <BROADCAST,NOARP> mtu 1500\n    inet 10.96.1.7/32 scope global kube-ipvs0\n',
      ),
    };
    expect(traced(dump, 'external', '192.168.50.21:30004').verdict).toBe('unknown');
    const { stderr } = await runKpc(['describe', '-'], { stdin: Object.values(dump).join('\n') });
    expect(stderr).toContain(foreign);
  });

  test('an address in nodeport-ips that ip addr lacks', () => {
    const dump = { ...filesOf('nftables', 'nftables.nft'), 'ip-addr': links('192.168.50.21') };
    const { notes } = traced(dump, 'external', '192.168.50.21:30004');
    expect(notes?.join('\n')).toContain('nodeport-ips names 192.168.50.11');
  });
});

test.each([
  ['ipvs', true],
  ['iptables', false],
] as const)('%s: without ip addr, whether a cluster IP is an address of the node: %s', (mode, isAsked) => {
  const dump = filesOf(mode, 'iptables.restore', 'ipset.restore', 'ipvsadm.restore');
  const { reasons = [] } = traced(dump, 'node', '10.96.1.4:80');
  expect(reasons.some(({ text }) => text.includes('whether 10.96.1.4 is an address of the node'))).toBe(isAsked);
});

test("an endpoint next to the node's own address is no example of a pod's address", () => {
  const dump = `*nat
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.0.9/32 -p tcp -m comment --comment "a/host cluster IP" -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "a/host -> 192.168.50.12:80" -m statistic --mode random --probability 0.5 -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "a/host -> 10.244.7.9:80" -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m tcp -j DNAT --to-destination 192.168.50.12:80
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m tcp -j DNAT --to-destination 10.244.7.9:80
COMMIT
`;
  const { from } = traced({ 'iptables-save': dump, 'ip-addr': links('192.168.50.11') }, 'pod', '10.96.0.9:80');
  expect(from.address).toMatch(/^10\.244\.7\./);
});

describe('a Service that only manifests beside the dump have', () => {
  const dump = filesOf('iptables', 'iptables.restore')['iptables.restore'] ?? '';
  const written = `
apiVersion: v1
kind: Service
metadata: { name: NAME, namespace: shop }
spec: { clusterIP: 10.96.1.9, ports: [{ name: p, port: 80 }, { name: q, port: 81 }] }
`;
  const there = 'the manifests have shop/late:q there, but this node has no rule for it';

  test.each(['shop/late:q', 'svc/shop/late:q', 'late.shop.svc:q', '10.96.1.9:81'])('is known as %s', (to) => {
    const texts = { 'iptables-save': dump, 'late.yaml': written.replace('NAME', 'late') };
    expect(traced(texts, '10.244.1.50', to).notes?.join('\n')).toContain(there);
    const [side] = open(texts).snapshots;
    if (side?.kind !== 'dump') throw new Error('no dump');
    expect(findInDump(to, side)).toMatchObject({ why: { kind: 'unreached-address', label: 'shop/late:q' } });
  });

  test('is named below the table of describe, unless its family may have rules that are not shown', () => {
    const whole = filesOf('nftables', 'nftables.nft');
    const ruleless = (files: Record<string, string>) => {
      const [side] = open({ ...files, 'late.yaml': written.replace('NAME', 'late') }).snapshots;
      return side?.kind === 'dump' ? readDumped(side).ruleless.map(({ label }) => label) : undefined;
    };
    expect(ruleless({ 'nft-ruleset': whole['nftables.nft'] ?? '' })).toEqual(['shop/late:p', 'shop/late:q']);
    expect(ruleless({ 'ip6tables-save': filesOf('iptables', 'ip6tables.restore')['ip6tables.restore'] ?? '' })).toEqual(
      [],
    );
  });

  test('one of its ports may have rules', () => {
    const texts = {
      'iptables-save': dump,
      'itp.yaml': written.replace('NAME', 'itp').replace('10.96.1.9', '10.96.1.7'),
    };
    expect(traced(texts, '10.244.1.50', 'svc/shop/itp:q').to.port).toBe(81);
  });
});

describe('a family of which the node has neither rules nor endpoints', () => {
  const rules = filesOf('iptables', 'iptables.restore')['iptables.restore'] ?? '';
  const dump = { 'iptables-save': rules, 'ip-addr': links('192.168.50.11') };
  const [node = ''] = /\{ apiVersion: v1, kind: Node.*/.exec(manifests['shop.yaml']) ?? [];
  const pods = node.replace('podCIDR: 10.244.1.0/24', 'podCIDRs: [10.244.1.0/24, "fd00:244:1::/64"]');

  test('pods have addresses in the networks of Nodes beside the dump', () => {
    const { from } = traced(dump, 'pod', '[fd00:96::101]:5060', { 'node.yaml': pods });
    expect(from.address).toMatch(/^fd00:244:1::/);
  });

  test('a test whose sender has no address hides no other results', () => {
    const [side] = open({ ...dump, 'node.yaml': node }).snapshots;
    if (!side) throw new Error('no side');
    const packet = (to: string) => `{ from: pod, to: "${to}", expect: delivered }`;
    const tests = `tests: [${packet('10.96.1.4:80')}, ${packet('[fd00:96::101]:80')}]\n`;
    const { passed, results, diagnostics } = testPackets({ side, tests: { 't.yaml': tests } });
    expect(results).toHaveLength(1);
    expect(diagnostics.map((each) => each.arguments)).toMatchObject([{ problem: 'unsent', field: 'from' }]);
    expect(passed).toBe(false);
  });

  test('kpc test prints the others, and that error', async () => {
    const packet = (to: string) => `{ from: pod, to: "${to}", expect: unknown }`;
    writeFileSync(join(folder, 'dump.txt'), rules);
    writeFileSync(
      join(folder, 't.yaml'),
      `inputs: dump.txt\ntests: [${packet('10.96.1.4:80')}, ${packet('[fd00:96::101]:80')}]\n`,
    );
    const run = await runKpc(['test', join(folder, 't.yaml')]);
    expect(run).toMatchObject({ status: 2, stdout: expect.stringMatching(/^1 packet as expected/m) as string });
    expect(run.stderr).toContain('no example address');
  });
});

test('the type of a Service is that of manifests beside the dump', () => {
  const written = manifests['shop.yaml'].replace(
    'NodePort, clusterIP: 10.96.1.4',
    'LoadBalancer, clusterIP: 10.96.1.4',
  );
  const typesOf = (more: Record<string, string>) => {
    const [side] = open({ ...filesOf('iptables', 'iptables.restore'), ...more }).snapshots;
    if (side?.kind !== 'dump') throw new Error('no dump');
    return rowsOfDump(side.ports, side.named).flatMap(({ service, type }) => (service === 'shop/four' ? type : []));
  };
  expect(typesOf({})).toEqual(['NodePort']);
  expect(typesOf({ 'shop.yaml': written })).toEqual(['LoadBalancer']);
});

test('a port whose number rules do not show is named by its name', () => {
  const dump = `*nat
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
-A KUBE-NODEPORTS -p sctp -m comment --comment "shop/diam:d" -m sctp --dport 30868 -j KUBE-EXT-AAAAAAAAAAAAAAAA
-A KUBE-EXT-AAAAAAAAAAAAAAAA -j KUBE-SVC-AAAAAAAAAAAAAAAA
-A KUBE-SVC-AAAAAAAAAAAAAAAA -m comment --comment "shop/diam:d -> 10.244.1.12:3868" -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A KUBE-SEP-AAAAAAAAAAAAAAAA -p sctp -m sctp -j DNAT --to-destination 10.244.1.12:3868
COMMIT
`;
  const [side] = open({ 'iptables-save': dump }).snapshots;
  const diagnostics = side ? trace({ side, from: 'external', to: 'svc/shop/diam:3868' }).diagnostics : [];
  expect(diagnostics.map((each) => each.arguments)).toMatchObject([{ problem: 'no-port', ports: ['d'] }]);
});

test('the first of two values of a sysctl counts, and the second is told', async () => {
  const dump = 'net.ipv4.ip_forward = 1\nnet.ipv4.vs.conntrack = 1\nnet.ipv4.ip_forward = 0\n';
  const [side] = open({ sysctl: dump }).snapshots;
  expect(side?.state.sysctls.get('net.ipv4.ip_forward')).toBe('1');
  const { stderr } = await runKpc(['describe', '-'], {
    stdin: dump + filesOf('iptables', 'iptables.restore')['iptables.restore'],
  });
  expect(stderr).toContain('[second-listing]');
});

test('links at which a packet ends alike share a clause', () => {
  const numbers = [1, 2, 3, 4, 5];
  const ends = numbers.map((i) => `${i + 2}: eth${i}: <UP> mtu 1500\n    inet 10.9.${i}.1/24 scope global eth${i}\n`);
  const routes = numbers.map((i) => `10.9.${i}.0/24 dev eth${i} scope link\n`);
  const { notes } = traced(
    {
      'ip-addr': `1: lo: <LOOPBACK,UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,UP> mtu 1500
    inet 192.168.50.11/24 scope global eth0
${ends.join('')}`,
      'ip-route': `default via 192.168.50.1 dev eth0\n192.168.50.0/24 dev eth0 scope link\n${routes.join('')}`,
      sysctl: 'net.ipv4.conf.all.rp_filter = 0\nnet.ipv4.ip_forward = 1\n',
      ...filesOf('iptables', 'iptables.restore'),
    },
    'external',
    '192.168.50.11:30060',
  );
  expect(notes?.join('\n')).toMatch(/by eth1, eth2, eth3 and 2 more it is unknown \(inInterface eth1\)$/);
});

test.each(['iptables', 'nftables'] as const)(
  '%s: rules of policy Local do not show endpoints on other nodes',
  (mode) => {
    const [side] = open(filesOf(mode, mode === 'nftables' ? 'nftables.nft' : 'iptables.restore')).snapshots;
    const [port] = side?.ports.filter(({ label }) => label === 'shop/itp:m') ?? [];
    expect(port).toMatchObject({ fallback: 'local-drops', endpoints: undefined });
  },
);

test('flows to a node port without endpoints are stale where ip addr shows the address', () => {
  const flow = (to: string): string =>
    `udp 17 28 src=198.51.100.9 dst=${to} sport=4000 dport=30514 src=10.244.1.60 dst=${to} sport=514 dport=4000 mark=0 use=1\n`;
  const { bundle } = compile({
    manifests: {
      'log.yaml': `{ apiVersion: v1, kind: Service, metadata: { name: log }, spec: { type: NodePort, clusterIP: 10.96.1.9, ports: [{ port: 514, protocol: UDP, nodePort: 30514 }] } }`,
    },
    proxyMode: 'iptables',
  });
  const [side] = open({
    'iptables-save': bundle?.files.get('iptables.restore') ?? '',
    'ip-addr': links('192.168.50.11'),
    conntrack: flow('192.168.50.11') + flow('192.168.50.99'),
  }).snapshots;
  if (side?.kind !== 'dump') throw new Error('no dump');
  expect(findFlows(side)?.stale.map(({ destination }) => destination)).toEqual(['192.168.50.11:30514']);
});
