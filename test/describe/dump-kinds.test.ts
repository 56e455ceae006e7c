import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const service = (name: string, ip: number, spec: string, status = '') => `---
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { clusterIP: 10.96.0.${ip}, ${spec} }
${status}
`;

const services = [
  service('inner', 80, 'ports: [{ port: 80 }]'),
  service('port', 81, 'type: NodePort, ports: [{ port: 80, nodePort: 30081 }]'),
  service('outer', 82, 'externalIPs: [198.51.100.82], ports: [{ port: 80 }]'),
  service(
    'edge',
    83,
    'type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 31999, ports: [{ port: 80, nodePort: 30083 }]',
    'status: { loadBalancer: { ingress: [{ ip: 198.51.100.83 }] } }',
  ),
  `---
{ apiVersion: v1, kind: Node, metadata: { name: node-1 }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
`,
].join('');

const cwd = mkdtempSync(join(tmpdir(), 'kpc-dump-kinds-'));
const manifests = ['-f', 'services.yaml', '--proxy-mode'] as const;

beforeAll(() => {
  writeFolder(cwd, { 'services.yaml': services });
});

test('a dump of nftables mode does not tell a load balancer’s address from an external IP', async () => {
  const { stdout } = await runKpc(['compile', ...manifests, 'nftables', '--print', 'nftables'], { cwd });
  writeFolder(cwd, { 'nft-ruleset': stdout });
  const run = await runKpc(['describe', 'nft-ruleset'], { cwd });
  const types = run.stdout.split('\n').map((row) => row.split(/ {2,}/).slice(0, 2));
  expect(Object.fromEntries(types)).toMatchObject({
    'shop/inner': 'ClusterIP',
    'shop/port': 'NodePort',
    'shop/outer': 'ClusterIP or LoadBalancer',
    'shop/edge': 'NodePort or LoadBalancer',
  });
});

test.each(['31999', ':31999', '31999/tcp'])(
  'a dump of IPVS mode lists health check node port %s in a set',
  async (what) => {
    const { stdout } = await runKpc(['compile', ...manifests, 'ipvs', '--print', 'ipset'], { cwd });
    writeFolder(cwd, { 'ipset-save': stdout });
    const run = await runKpc(['describe', what, 'ipset-save'], { cwd });
    expect(run.status, run.stderr).toBe(0);
    expect(run.stdout).toContain('Set KUBE-HEALTH-CHECK-NODE-PORT, bitmap:port: 1 entry');
    const other = await runKpc(['describe', '31998', 'ipset-save'], { cwd });
    expect(other.status).toBe(1);
  },
);

test('the policy of an SCTP node port shows in IPv6 too, where the name of its set is cut', async () => {
  const sctp = `
apiVersion: v1
kind: Service
metadata: { name: signal, namespace: shop }
spec: { type: NodePort, clusterIP: 'fd00:10:96::90', externalTrafficPolicy: Local, ports: [{ port: 90, nodePort: 30090, protocol: SCTP }] }
---
{ apiVersion: v1, kind: Node, metadata: { name: node-1 }, status: { addresses: [{ type: InternalIP, address: '2001:db8::11' }] } }
`;
  writeFolder(cwd, { 'sctp.yaml': sctp });
  for (const [file, part] of [
    ['ipset-save', 'ipset'],
    ['ipvsadm-save', 'ipvsadm'],
  ] as const) {
    const { stdout } = await runKpc(['compile', '-f', 'sctp.yaml', '--proxy-mode', 'ipvs', '--print', part], { cwd });
    writeFolder(join(cwd, 'sctp'), { [file]: stdout });
  }
  const run = await runKpc(['describe', '30090', 'sctp'], { cwd });
  expect(run.stdout).toContain('node port 30090/SCTP\n  externalTrafficPolicy Local, scheduler rr\n');
});

test('the output of ip -j addr is known when another program has sorted its fields', async () => {
  const lines = ['eth0', 'kube-ipvs0'].map((ifname, i) => ({
    addr_info: [{ family: 'inet', local: `192.168.50.1${i}`, prefixlen: 24, scope: 'global' }],
    flags: ['UP'],
    ifindex: i + 1,
    ifname,
  }));
  writeFolder(join(cwd, 'sorted'), {
    'ip-addr.json': JSON.stringify(lines, undefined, 1),
    'ipvsadm-save': '-A -t 192.168.50.11:80 -s rr\n',
  });
  const run = await runKpc(['describe', 'sorted'], { cwd });
  expect(run.stderr).not.toContain('not what ip -j addr prints');
  expect(run.stdout).toContain('192.168.50.11:80/TCP');
});
