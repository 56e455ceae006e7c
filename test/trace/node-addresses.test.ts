// Which address "node:PORT" and a Service's node port mean, if the input shows several of the node's, or none but in rules.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-node-addresses-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const service = (name: string, last: number, spec: string) => `
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { clusterIP: 10.96.0.${last}, ports: [{ port: 80, targetPort: 8080, nodePort: 300${last} }], ${spec} }
---`;
const node = (name: string, last: number) => `
apiVersion: v1
kind: Node
metadata: { name: ${name} }
spec: { podCIDR: 10.244.${last}.0/24 }
status: { addresses: [{ type: InternalIP, address: 192.168.50.1${last} }] }
---`;
const slice = (name: string) => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-1, namespace: shop, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ port: 8080 }]
endpoints: [{ addresses: [10.244.1.10], nodeName: worker-1 }, { addresses: [10.244.2.10], nodeName: worker-2 }]
---`;
const links = (docker: string) =>
  `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536\n    inet 127.0.0.1/8 scope host lo\n${docker}2: eth0: <UP,LOWER_UP> mtu 1500\n    inet 192.168.50.11/24 scope global eth0\n`;
const docker = '3: docker0: <UP> mtu 1500\n    inet 172.17.0.1/16 scope global docker0\n';
const flags = ['--node', 'worker-1', '--nodeport-addresses', '192.168.50.0/24'];

beforeAll(async () => {
  writeFolder(cwd, {
    'cluster.yaml': [
      service('web', 80, 'type: NodePort'),
      service('empty', 90, 'type: NodePort'),
      service('lb', 70, 'type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 31999'),
      ...['web', 'lb'].map(slice),
      node('worker-1', 1),
      node('worker-2', 2),
    ].join(''),
    'ip-addr.txt': links(docker),
  });
  for (const [mode, prints] of [
    ['nftables', ['nftables']],
    ['iptables', ['iptables']],
    ['ipvs', ['iptables', 'ipset', 'ipvsadm']],
  ] as const) {
    const texts = await Promise.all(
      prints.map(async (print) => {
        const run = await runKpc(['compile', 'cluster.yaml', '--proxy-mode', mode, ...flags, '--print', print], {
          cwd,
        });
        return run.stdout.replaceAll(/^-I (\w+)(?: \d+)?/gm, '-A $1');
      }),
    );
    writeFolder(cwd, { [`${mode}.txt`]: texts.join('') });
  }
});

async function trace(...words: readonly string[]) {
  const run = await runKpc(['trace', '-q', ...words, '--from', 'external', '--output', 'json'], { cwd });
  return resultOf(run.stdout).traces[0];
}

const to = (port: number) => ({ address: '192.168.50.11', port });

describe('without ip addr, the node has the address where rules serve the node port', () => {
  test.each([
    ['nftables.txt', 'svc/shop/web', 30080, 'delivered'],
    ['nftables.txt', 'node:30080', 30080, 'delivered'],
    ['nftables.txt', 'node:30080/TCP', 30080, 'delivered'],
    ['nftables.txt', 'node:30090', 30090, 'refused'],
    ['iptables.txt', 'svc/shop/web', 30080, 'delivered'],
    ['iptables.txt', 'node:30090', 30090, 'refused'],
    ['ipvs.txt', 'node:30080', 30080, 'delivered'],
    ['ipvs.txt', 'node:30090', 30090, 'refused'],
  ])('%s, to %s', async (dump, asked, port, verdict) => {
    const { to: met, otherwise, ...own } = await trace(dump, '--to', asked);
    expect(met).toMatchObject(to(port));
    expect((otherwise ?? own).verdict).toBe(verdict);
  });
});

describe('of several addresses, a packet goes to', () => {
  const manifests = ['cluster.yaml', '--node', 'worker-1', '--host-addresses', 'ip-addr.txt'];

  test.each(['iptables', 'ipvs', 'nftables'])("the Node's InternalIP in %s mode, not to the lowest", async (mode) => {
    for (const asked of ['svc/shop/web', 'node:30080']) {
      const found = await trace(...manifests, '--proxy-mode', mode, '--to', asked);
      expect(found).toMatchObject({ verdict: 'delivered', to: to(30080) });
    }
  });

  test('the same from a bundle', async () => {
    await runKpc(['compile', ...manifests, '--proxy-mode', 'nftables', '-o', 'bundle'], { cwd });
    expect(await trace('bundle', '--to', 'svc/shop/web')).toMatchObject({ verdict: 'delivered', to: to(30080) });
  });

  test('an address that rules of a dump serve, not to the first', async () => {
    writeFolder(cwd, { 'docker-first.txt': links(docker.replace('3:', '5:')) });
    expect(await trace('nftables.txt', 'docker-first.txt', '--to', 'node:30080')).toMatchObject({ to: to(30080) });
  });
});

describe('a health check node port is named', () => {
  test.each([
    ['of manifests', ['cluster.yaml', '--node', 'worker-1'], 'shop/lb'],
    ['of rules', ['iptables.txt'], 'shop/lb'],
    ['of a set, without the Service', ['ipvs.txt'], 'a Service'],
    ['of a set, beside manifests', ['ipvs.txt', 'cluster.yaml'], 'shop/lb'],
    ['that nothing in nftables shows, beside manifests', ['nftables.txt', 'cluster.yaml'], 'shop/lb'],
  ])('%s', async (_title, inputs, label) => {
    const { notes } = await trace(...inputs, '--to', '192.168.50.11:31999');
    expect(notes.join()).toContain(`health check of ${label}`);
  });

  test.each(['ipvs.txt', 'nftables.txt'])('in kpc describe, of %s beside manifests', async (dump) => {
    const run = await runKpc(['describe', '-q', dump, 'cluster.yaml', '31999'], { cwd });
    expect(run.stdout).toMatch(/^shop\/lb\n(?:.*\n)*?.*health check node port 31999/);
  });
});

describe('a word that names no Service or Pod', () => {
  test.each([
    ['external', ':30080', { problem: 'no-such', name: ':30080', near: ['node:30080'] }],
    ['external', 'worker-2:30080', { problem: 'is-node', kind: 'Service', use: '192.168.50.12:30080' }],
    ['external', 'worker-2', { problem: 'is-node', kind: 'Service', use: '192.168.50.12' }],
    ['worker-1', 'svc/shop/web', { problem: 'is-node', kind: 'Pod', use: 'node' }],
    ['worker-2', 'svc/shop/web', { problem: 'is-node', kind: 'Pod', use: '192.168.50.12' }],
  ])('from %s to %s', async (from, asked, details) => {
    const words = ['trace', 'cluster.yaml', '--node', 'worker-1', '--from', from, '--to', asked, '--output', 'json'];
    const { stdout } = await runKpc(words, { cwd });
    expect(findingsOf(stdout, 'not-found').map((each) => each.arguments)).toMatchObject([details]);
  });
});
