// What a node of Kubernetes 1.25 shows: its rules lead to ports where kube-proxy itself takes connections.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsOf, resultOf } from '../../support/printed-json.ts';
import { runKpc } from '../../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-userspace-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const manifests = join(scratch, 'web.yaml');
const asked = [manifests, '--node', 'n1', '--proxy-mode', 'userspace', '--kubernetes-version', '1.25'];
const dump = join(scratch, 'dump.txt');

beforeAll(async () => {
  writeFileSync(
    manifests,
    `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  type: NodePort
  clusterIP: 10.96.0.10
  ports: [{ name: http, port: 80, nodePort: 30080 }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [10.244.1.5], nodeName: n1 }]
---
apiVersion: v1
kind: Node
metadata: { name: n1 }
spec: { podCIDR: 10.244.1.0/24 }
status: { addresses: [{ type: InternalIP, address: 192.168.0.1 }] }
`,
  );
  const bundle = join(scratch, 'bundle');
  await runKpc(['compile', ...asked, '-o', bundle]);
  const rules = readFileSync(join(bundle, 'iptables.restore'), 'utf8').replaceAll(/^-I (\S+) \d+ /gm, '-A $1 ');
  const policies = { nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'], filter: ['INPUT', 'FORWARD', 'OUTPUT'] };
  const whole = Object.entries(policies).reduce(
    (text, [table, chains]) =>
      text.replace(`*${table}\n`, `*${table}\n${chains.map((name) => `:${name} ACCEPT [0:0]\n`).join('')}`),
    rules,
  );
  const none = ['mangle', 'raw', 'security'].map((table) => `*${table}\nCOMMIT\n`).join('');
  const addresses = '1: lo inet 127.0.0.1/8 scope host lo\n2: eth0 inet 192.168.0.1/24 scope global eth0\n';
  writeFileSync(dump, `$ iptables-save\n${whole}${none}$ ip -o addr\n${addresses}`);
});

const tracesOf = async (...args: readonly string[]) =>
  resultOf((await runKpc(['trace', ...args, '--output', 'json'])).stdout).traces;

describe('a dump of a node in userspace mode', () => {
  test('names its Services, and says that no rule shows their endpoints', async () => {
    const all = await runKpc(['describe', dump]);
    expect(all.stdout).toContain('shop/web:http  NodePort  10.96.0.10  80/TCP  30080/TCP   ?');
    const json = await runKpc(['describe', dump, '--output', 'json']);
    expect(findingsOf(json.stdout)).toMatchObject([
      { severity: 'note', code: 'reading', arguments: { problem: 'dump', note: 'proxy-ports', mode: 'userspace' } },
    ]);
    const { stdout } = await runKpc(['describe', dump, 'shop/web']);
    expect(stdout).toMatch(/endpoints: unknown\b.* port 6\d{4}\b/);
  });

  test.each(['10.96.0.10:80', '192.168.0.1:30080'])('leaves the verdict to kube-proxy, asked for %s', async (to) => {
    const [answer] = await tracesOf(dump, '--from', '10.0.0.9', '--in-interface', 'eth0', '--to', to);
    expect(answer).toMatchObject({
      verdict: 'unknown',
      reasons: expect.arrayContaining([
        expect.objectContaining({ kind: 'circumstance', text: expect.stringContaining('kube-proxy') }),
      ]),
    });
    expect(answer).not.toHaveProperty('cause');
  });

  test('leaves other ports to the node', async () => {
    const from = ['--from', '10.0.0.9', '--in-interface', 'eth0'];
    expect(await tracesOf(dump, ...from, '--to', '192.168.0.1:22')).toMatchObject([
      { otherwise: { verdict: 'local' } },
    ]);
  });
});

describe('manifests in userspace mode', () => {
  test('are shown as this kube-proxy reads them: without policies, source ranges and health checks', async () => {
    const path = join(scratch, 'lb.yaml');
    const spec =
      'type: LoadBalancer\n  externalTrafficPolicy: Local\n  healthCheckNodePort: 32100\n  loadBalancerSourceRanges: [10.0.0.0/8]';
    const status = 'status: { loadBalancer: { ingress: [{ ip: 198.51.100.7 }] } }\n---';
    writeFileSync(path, readFileSync(manifests, 'utf8').replace('type: NodePort', spec).replace('---', status));
    const flags = asked.slice(1);
    const { stdout } = await runKpc(['describe', path, ...flags, 'shop/web']);
    expect(stdout).toContain('internalTrafficPolicy Cluster, externalTrafficPolicy Cluster');
    expect(stdout).not.toMatch(/health check|10\.0\.0\.0\/8/);
    const json = await runKpc(['describe', path, ...flags, 'shop/web', '--output', 'json']);
    expect(findingsOf(json.stdout, 'userspace').map((each) => each.arguments)).toEqual([
      { problem: 'ignored', services: ['shop/web'] },
    ]);
    const health = await runKpc(['trace', path, ...flags, '--from', 'external', '--to', '192.168.0.1:32100']);
    expect(health.stdout).not.toContain('health check');
    const to = ['--to', 'iptables', '--to-kubernetes-version', '1.36', '--output', 'json'];
    const { causes } = resultOf((await runKpc(['migrate', path, ...flags, ...to])).stdout);
    expect(causes).toContainEqual(expect.objectContaining({ cause: 'source-ranges' }));
  });

  test('close a connection that no endpoint is there for', async () => {
    const path = join(scratch, 'none.yaml');
    writeFileSync(path, readFileSync(manifests, 'utf8').replace('nodeName: n1', 'conditions: { ready: false }'));
    const packet = ['--from', 'external', '--to', '10.96.0.10:80'];
    const { stdout } = await runKpc(['trace', path, ...asked.slice(1), ...packet]);
    expect(stdout).toMatch(/refused: .*accepted/);
    expect(stdout).not.toContain('192.0.0.8');
    expect(await tracesOf(path, ...asked.slice(1), ...packet)).toMatchObject([
      { verdict: 'refused', cause: { kind: 'no-server' } },
    ]);
  });
});

describe('manifests, from userspace mode to another', () => {
  test('need the release afterwards, and the mode', async () => {
    const noRelease = await runKpc(['migrate', ...asked, '--to', 'iptables']);
    expect(noRelease).toMatchObject({ status: 2, stdout: '' });
    expect(noRelease.stderr).toMatch(/1\.25 .*iptables .*\[bad-call\]\n {2}help: .*--to-kubernetes-version .*1\.30/);
    const noMode = await runKpc(['migrate', ...asked, '--to-kubernetes-version', '1.36']);
    expect(noMode).toMatchObject({ status: 2, stdout: '' });
    expect(noMode.stderr).toMatch(/1\.36 .*userspace .*\[bad-call\]\n {2}help: .*--to\b/);
    const { stdout } = await runKpc(['migrate', ...asked, '--to', 'iptables', '--to-kubernetes-version', '1.36']);
    expect(stdout).toContain('1.25 userspace → 1.36 iptables: ');
    expect(stdout).toMatch(
      /The port on the node that accepts connections to Services .*\n {2}port of the node itself, /,
    );
    expect(stdout).not.toContain('Packets are treated differently');
  });

  test('are kept as golden files, and checked against them', async () => {
    const golden = join(scratch, 'golden');
    expect(await runKpc(['compile', ...asked, '--golden', golden])).toMatchObject({ status: 0 });
    expect(await runKpc(['compile', ...asked, '--check', golden])).toMatchObject({ status: 0 });
    writeFileSync(manifests, readFileSync(manifests, 'utf8').replace('10.244.1.5', '10.244.1.6'));
    const changed = await runKpc(['compile', ...asked, '--check', golden]);
    expect(changed.status).toBe(1);
    expect(changed.stdout).toContain('+    server 10.244.1.6:8080 max_fails=0;');
  });
});
