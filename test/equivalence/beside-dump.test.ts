// A dump of a node beside a compiled side: what is not kube-proxy's is on both.
import { expect, test } from 'vitest';
import { ask } from '../../src/ask/trace/ask.ts';
import { onOneNode, sceneOf } from '../../src/ask/trace/scene.ts';
import { compile, equivalence, open, type ComparedSide, type DumpedSnapshot } from '../../src/library/index.ts';

const manifests = {
  'cluster.yaml': `
{ apiVersion: v1, kind: Node, metadata: { name: n1 }, spec: { podCIDR: 10.244.1.0/24, podCIDRs: [10.244.1.0/24] },
  status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
---
{ apiVersion: v1, kind: Service, metadata: { name: lb, namespace: shop }, spec: { type: LoadBalancer, clusterIP: 10.96.0.90,
  clusterIPs: [10.96.0.90], externalTrafficPolicy: Local, healthCheckNodePort: 32000, ports: [{ port: 80, nodePort: 30090 }] },
  status: { loadBalancer: { ingress: [{ ip: 203.0.113.6 }] } } }
---
{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, ports: [{ port: 8080 }],
  metadata: { name: lb-1, namespace: shop, labels: { kubernetes.io/service-name: lb } },
  endpoints: [{ addresses: [10.244.1.21], nodeName: n1 }] }
---
{ apiVersion: v1, kind: Service, metadata: { name: web, namespace: shop }, spec: { type: NodePort, clusterIP: 10.96.0.80,
  clusterIPs: [10.96.0.80], ports: [{ port: 80, nodePort: 30080 }] } }
---
{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, ports: [{ port: 8080 }],
  metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } },
  endpoints: [{ addresses: [10.244.1.22], nodeName: n1 }] }
`,
};

const builtIn = { filter: ['INPUT', 'FORWARD', 'OUTPUT'], nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'] };
const links = `
1: lo: <LOOPBACK,UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,UP> mtu 1500
    inet 192.168.50.11/24 brd 192.168.50.255 scope global eth0
3: cni0: <BROADCAST,UP> mtu 1500
    inet 10.244.1.1/24 brd 10.244.1.255 scope global cni0
`;

const input = { node: 'n1', manifests } as const;

/** A node in iptables mode as its tools print it, with policies and rules of its own in table filter. */
function dumpWith(policies: Readonly<Record<string, string>>, rules = '', routes = ''): DumpedSnapshot {
  const saved = compile({ ...input, proxyMode: 'iptables' }).bundle?.files.get('iptables.restore') ?? '';
  const tables = Object.entries(builtIn).map(([table, chains]) => {
    const [, own = ''] = saved.split(`*${table}\n`);
    const [lines = ''] = own.split('COMMIT');
    const [given, added] = table === 'filter' ? [policies, rules] : [{}, ''];
    const declared = chains.map((chain) => `:${chain} ${given[chain] ?? 'ACCEPT'} [0:0]\n`).join('');
    return `*${table}\n${declared}${lines.replace(/^-I (\w+) \d+/gm, '-A $1')}${added}COMMIT\n`;
  });
  const [side] = open({ 'node.txt': `$ iptables-save\n${tables.join('')}$ ip addr\n${links}${routes}` }).snapshots;
  if (side?.kind !== 'dump') throw new Error('the dump is not read');
  return side;
}

/** What breaks, or starts to work, for clients outside the cluster: "severity target: from → to". */
function changes(from: ComparedSide, to: ComparedSide): readonly string[] {
  const effects = (equivalence({ from, to, ...input }).report?.causes ?? []).flatMap((cause) => cause.effects);
  return effects
    .filter(
      ({ severity, senders }) => severity !== 'fails-otherwise' && senders.includes('a client outside the cluster'),
    )
    .map(({ severity, target, from: was, to: is }) => `${severity} ${target}: ${was} → ${is}`);
}

const [node, rest] = ['node-port: delivered → left to the node itself', ': delivered → dropped'];
const health = 'breaks health-check: left to the node itself → dropped';

test.each([
  // Node ports of nftables mode are on the primary address alone.
  ['nothing of its own', {}, '', [`breaks ${node}`]],
  [
    'a policy that only marked packets pass in iptables mode',
    { FORWARD: 'DROP' },
    '',
    [`breaks node-port${rest}`, `breaks ${node}`],
  ],
  ['a policy that health checks pass in iptables mode', { INPUT: 'DROP' }, '', [health, `breaks node-port${rest}`]],
  ['a rule after those of kube-proxy', {}, '-A INPUT -p tcp --dport 32000 -j DROP\n', [health, `breaks ${node}`]],
] as const)('a node with %s', (_, policies, rules, wanted) => {
  const dump = dumpWith(policies, rules);
  expect(changes(dump, 'nftables')).toEqual(wanted);
  const back = wanted.map((each) => each.replace(/^breaks (.*): (.*) → (.*)$/, 'opens $1: $3 → $2'));
  expect(changes('nftables', dump).toSorted()).toEqual(back.toSorted());
  expect(changes(dump, 'iptables')).toEqual([]);
});

test('a release that names no mode has the mode of the dump, but a configuration has its own default', () => {
  const modeOf = (to: ComparedSide) => equivalence({ from: dumpWith({}), to, ...input }).snapshots[1]?.mode;
  const kind = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
  expect(modeOf('1.36')).toBe('iptables');
  expect(modeOf({ name: 'proxy.yaml', text: kind })).toBe('iptables');
  expect(modeOf('nftables')).toBe('nftables');
  expect(changes(dumpWith({}), '1.36')).toEqual([]);
});

test('what the dump does not show of the node is unknown on the compiled side too', () => {
  const routes = `$ ip route
default via 192.168.50.1 dev eth0
10.244.1.0/24 dev cni0 proto kernel scope link src 10.244.1.1
192.168.50.0/24 dev eth0 proto kernel scope link src 192.168.50.11
`;
  const { bundle } = compile({ ...input, proxyMode: 'nftables' });
  if (!bundle) throw new Error('not compiled');
  const scenes = onOneNode(sceneOf(dumpWith({}, '', routes)), sceneOf(bundle.side));
  const outcomes = scenes.map((scene) => {
    const question = { from: '10.244.1.9', to: '10.96.0.80:80', protocol: undefined, inInterface: undefined };
    const found = ask({ ...question, namespace: undefined }, scene);
    if (found.kind !== 'read') throw new Error('not read');
    return found.value.fate.connection().ways.map(({ outcome }) => outcome);
  });
  const bridge = [
    expect.objectContaining({ kind: 'unknown', reasons: [expect.objectContaining({ fact: 'bridge cni0' })] }),
  ];
  expect(outcomes).toEqual([bridge, bridge]);
});

test('a family that neither side shows is not asked, even if the node has addresses of it', () => {
  const dump = dumpWith({}, '', '4: cni1: <BROADCAST,UP> mtu 1500\n    inet6 fe80::1/64 scope link\n');
  const { report } = equivalence({ from: dump, to: 'iptables', ...input });
  expect(report).toMatchObject({ unknown: 0, unknownOnOne: 0 });
  const asked = (report?.causes ?? []).flatMap(({ effects }) => effects.map(({ example }) => example.to));
  expect(asked.filter((to) => to.startsWith('['))).toEqual([]);
});

test('a node port that only one side serves is the cause, whatever stops its packets on the other side', () => {
  const dump = dumpWith({}, '-A INPUT -i eth0 -j REJECT\n');
  const causesOf = (from: ComparedSide, to: ComparedSide) => {
    const causes = equivalence({ from, to, ...input }).report?.causes ?? [];
    return causes
      .filter(({ effects }) =>
        effects.some((each) => each.target === 'node-port' && `${each.from}${each.to}`.includes('refused')),
      )
      .map(({ cause }) => cause);
  };
  expect(causesOf(dump, 'nftables')).toEqual(['node-port-addresses']);
  expect(causesOf('nftables', dump)).toEqual(['node-port-addresses']);
});

test('a command traces a side only if its own answer is that of the comparison', () => {
  // Alone, the manifests show neither the rule, nor that the node has all of the addresses.
  const dump = dumpWith({}, '-A INPUT -p tcp -m time --timestart 10:00 -j DROP\n');
  const { report } = equivalence({ from: dump, to: 'nftables', ...input });
  const effects = (report?.causes ?? []).flatMap((cause) => cause.effects);
  const shown = effects.filter(({ to }) => to === 'not known').map(({ target, shownBy }) => [target, shownBy]);
  expect(shown).toEqual([
    ['node-port', undefined],
    ['health-check', undefined],
  ]);
});
