// The reviewer reads why kube-proxy no longer programs a Service or an address that both sides have.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proxyNameLabel } from '../../src/kube-proxy/skipped.ts';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-ignored-services-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

function web({ labels = '', ipMode = 'VIP', ready = true }): string {
  const endpoints = Array.from(
    { length: 5 },
    (_, i) => `{ addresses: [10.244.0.${i + 1}], conditions: { ready: ${ready} } }`,
  );
  return `apiVersion: v1
kind: Service
metadata: { name: web, labels: { ${labels} } }
spec: { type: LoadBalancer, clusterIP: 10.96.0.10, ports: [{ port: 80, nodePort: 30080 }] }
status: { loadBalancer: { ingress: [{ ip: 198.51.100.9, ipMode: ${ipMode} }] } }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: "", port: 8080 }]
endpoints: [${endpoints.join(', ')}]
---
{ apiVersion: v1, kind: Node, metadata: { name: n1 }, spec: { podCIDRs: [10.244.0.0/24] }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }
`;
}

const files = {
  'web.yaml': web({}),
  'other-proxy.yaml': web({ labels: 'service.kubernetes.io/service-proxy-name: mesh' }),
  'headless-label.yaml': web({ labels: 'service.kubernetes.io/headless: ""' }),
  'proxy.yaml': web({ ipMode: 'Proxy' }),
  'unready.yaml': web({ ready: false }),
};
const flags = ['--proxy-mode', 'iptables', '-q'];

beforeAll(async () => {
  writeFolder(cwd, files);
  await runKpc(['compile', '-f', 'web.yaml', ...flags, '--golden', 'golden'], { cwd });
});

async function reasonsOf(from: string, to: string, ...more: string[]): Promise<readonly object[]> {
  const { stdout } = await runKpc(['diff', from, to, ...flags, ...more, '--output', 'json'], { cwd });
  return resultOf(stdout).servicePorts.flatMap(({ reasons }: { readonly reasons: readonly object[] }) => reasons);
}

const left = { kind: 'programmed', to: 'other-proxy' };
const proxied = { kind: 'field', field: 'ipMode of 198.51.100.9', from: 'VIP', to: 'Proxy' };

test.each([
  ['left to another proxy', 'other-proxy.yaml', left, []],
  ['labelled as headless, up to 1.35', 'headless-label.yaml', { kind: 'programmed', to: 'headless-label' }, ['1.35']],
  ['left to the load balancer', 'proxy.yaml', proxied, []],
])('a diff names the cause: %s', async (_, to, reason, [release = '1.37']) => {
  const version = ['--kubernetes-version', release];
  expect(await reasonsOf('web.yaml', to, ...version)).toContainEqual(expect.objectContaining(reason));
});

test.each([
  ['other-proxy.yaml', left],
  ['proxy.yaml', proxied],
])('a diff of a golden names it, too: %s', async (to, reason) => {
  expect(await reasonsOf('golden', to)).toContainEqual(expect.objectContaining(reason));
});

test('since 1.36, the label of headless EndpointSlices does not matter on a Service', async () => {
  expect(await reasonsOf('web.yaml', 'headless-label.yaml')).toEqual([]);
});

test.each([
  ['other-proxy.yaml', 'one-sided', 'default/web: programmed by kube-proxy → left to another proxy'],
  ['proxy.yaml', 'service-addresses', 'default/web: ipMode of 198.51.100.9 VIP → Proxy.'],
])('kpc equivalence names the cause: %s', async (to, cause, reason) => {
  const { stdout } = await runKpc(['equivalence', 'web.yaml', to, ...flags, '--output', 'json'], { cwd });
  const [found] = resultOf(stdout).causes;
  expect(found.cause).toBe(cause);
  expect(found.reasons.join()).toContain(reason);
});

test('kpc describe and kpc trace know a Service that is left to another proxy', async () => {
  const ask = async (...args: string[]) => {
    const { stdout, stderr } = await runKpc([...args, '-f', 'other-proxy.yaml', ...flags], { cwd });
    return stdout + stderr;
  };
  expect(await ask('describe', 'web')).toContain(`the label ${proxyNameLabel}`);
  expect(await ask('describe')).toContain('left to another proxy');
  const ignored = '10.96.0.10 is a cluster IP of default/web, which kube-proxy ignores';
  expect(await ask('describe', '10.96.0.10')).toContain(ignored);
  expect(await ask('trace', '--from', 'pod', '--to', '10.96.0.10:80')).toContain(ignored);
});

test('of many endpoints that change, a review names some', async () => {
  const { stdout } = await runKpc(['diff', 'web.yaml', 'unready.yaml', ...flags], { cwd });
  expect(stdout).toContain('5 endpoints changed: 10.244.0.1:80');
  expect(stdout).toContain('and 2 more');
});
