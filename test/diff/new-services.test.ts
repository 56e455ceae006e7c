import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-new-services-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const old = `apiVersion: v1
kind: Node
metadata: {name: node-1}
spec: {podCIDRs: [10.244.1.0/24]}
status: {addresses: [{type: InternalIP, address: 192.168.10.11}]}
---
apiVersion: v1
kind: Service
metadata: {name: old, namespace: shop}
spec: {clusterIP: 10.96.0.7, ports: [{port: 53, protocol: UDP}]}
`;
const more = `---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.80
  externalTrafficPolicy: Local
  externalIPs: [198.51.100.9]
  loadBalancerSourceRanges: [10.0.0.0/8]
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-a, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080, name: http}]
endpoints: [{addresses: [10.244.1.10], nodeName: node-1}, {addresses: [10.244.1.11], nodeName: node-1}]
---
apiVersion: v1
kind: Service
metadata: {name: other, namespace: shop}
spec: {type: ExternalName, externalName: db.example.com}
`;

const modes = ['iptables', 'ipvs', 'nftables'] as const;
const printed = { iptables: ['iptables'], ipvs: ['ipset', 'iptables', 'ipvsadm'], nftables: ['nftables'] } as const;

beforeAll(async () => {
  writeFileSync(join(cwd, 'before.yaml'), old);
  writeFileSync(join(cwd, 'after.yaml'), old + more);
  for (const mode of modes) {
    for (const side of ['before', 'after']) {
      const options = ['compile', '-f', `${side}.yaml`, '--proxy-mode', mode, '-q'];
      await runKpc([...options, '-o', `bundle-${mode}-${side}`], { cwd });
      mkdirSync(join(cwd, `dump-${mode}-${side}`));
      for (const name of printed[mode]) {
        const { stdout } = await runKpc([...options, '--print', name], { cwd });
        const file = mode === 'nftables' ? 'nft-ruleset' : `${name}-save`;
        writeFileSync(join(cwd, `dump-${mode}-${side}`, file), stdout);
      }
    }
  }
});

const facts =
  'type LoadBalancer, port 80/TCP, node port 30080/TCP, cluster IP 10.96.0.80, external IP 198.51.100.9, load balancer address ' +
  '203.0.113.7, internalTrafficPolicy Cluster, externalTrafficPolicy Local, load balancer for 10.0.0.0/8 only, 2 endpoints';

describe('what a new or removed Service has', () => {
  const sides = modes.flatMap((mode) => (['manifests', 'bundle'] as const).map((kind) => [mode, kind] as const));

  test.for(sides)('%s mode, %s', async ([mode, kind]) => {
    const name = (side: string) => (kind === 'bundle' ? `bundle-${mode}-${side}` : `${side}.yaml`);
    const flags = kind === 'bundle' ? [] : ['--proxy-mode', mode, '--no-assume'];
    const added = await runKpc(['diff', '--rules', name('before'), name('after'), ...flags, '-q'], { cwd });
    expect(added.stdout).toContain(`shop/web:http added\n    Service added\n    ${facts}\n`);
    expect(added.stdout).toContain('shop/other added\n    Service added\n    absent → type ExternalName\n');
    const removed = await runKpc(['diff', '--rules', name('after'), name('before'), ...flags, '-q'], { cwd });
    expect(removed.stdout).toContain(`shop/web:http removed\n    Service removed\n    ${facts}\n`);
    const markdown = await runKpc(['diff', name('before'), name('after'), ...flags, '-q', '--output', 'markdown'], {
      cwd,
    });
    const unusual = facts.replace('internalTrafficPolicy Cluster, ', '');
    expect(markdown.stdout).toContain(`- **shop/web** added: ${unusual}\n`);
  });

  test.for(modes)('%s mode, dumps', async (mode) => {
    const [before, after] = [`dump-${mode}-before`, `dump-${mode}-after`];
    const text = (await runKpc(['diff', '--rules', before, after, '-q'], { cwd })).stdout;
    const markdown = (await runKpc(['diff', after, before, '-q', '--output', 'markdown'], { cwd })).stdout;
    for (const part of [
      'port 80/TCP',
      'node port 30080/TCP',
      'cluster IP 10.96.0.80',
      'externalTrafficPolicy Local',
      'load balancer for 10.0.0.0/8 only',
      '2 endpoints',
    ]) {
      expect(text).toContain(part);
      expect(markdown).toContain(part);
    }
  });

  test.for(modes)('%s mode, a dump and manifests', async (mode) => {
    const run = await runKpc(['diff', '--rules', `dump-${mode}-before`, 'after.yaml', '--proxy-mode', mode, '-q'], {
      cwd,
    });
    expect(run.stdout).toContain(`shop/web:http added\n    ${facts}\n`);
  });
});

test('a port that comes or goes while its Service stays: the port alone, not what all ports have', async () => {
  const port = 'name: http, port: 80, targetPort: 8080, nodePort: 30080';
  writeFileSync(join(cwd, 'swapped.yaml'), (old + more).replace(port, 'name: web, port: 443, nodePort: 30443'));
  const { stdout } = await runKpc(['diff', '-q', 'after.yaml', 'swapped.yaml', '--proxy-mode', 'iptables'], { cwd });
  expect(stdout).toContain(
    'shop/web  http removed: port 80/TCP, node port 30080/TCP\n    web added: port 443/TCP, node port 30443/TCP\n',
  );
});

test('Services that both sides skip are not compared, and the answer says so', async () => {
  writeFileSync(join(cwd, 'unassigned.yaml'), old.replace('clusterIP: 10.96.0.7, ', ''));
  const run = async (...flags: readonly string[]) =>
    (await runKpc(['diff', '-q', 'unassigned.yaml', 'unassigned.yaml', '--no-assume', ...flags], { cwd })).stdout;
  expect(await run()).not.toContain('No difference.\n');
  expect(resultOf(await run('--output', 'json')).notCompared).toHaveLength(1);
});
