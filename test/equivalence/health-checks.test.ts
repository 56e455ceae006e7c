// What kube-proxy answers to load balancers is no rule: it is compared beside the ends of packets.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-health-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let files = 0;

/** `nodes`: those with an endpoint; `unnamed`: of a port that no Service names. */
function write({ port = 32100, nodes = ['n1', 'n2'], unnamed = 'n2', mode = '' }): string {
  const endpoints = nodes.map((nodeName, i) => ({ addresses: [`10.244.${i + 1}.10`], nodeName }));
  const sliceOf = (name: string, ports: object[], own: object[]) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports,
    endpoints: own,
  });
  const configuration = { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', mode };
  const items = [
    ...(mode === '' ? [] : [configuration]),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'shop' },
      spec: {
        type: 'LoadBalancer',
        clusterIP: '10.96.0.80',
        externalTrafficPolicy: 'Local',
        healthCheckNodePort: port,
        ports: [{ name: 'http', port: 80, targetPort: 8080, nodePort: 30080 }],
      },
    },
    sliceOf('web-1', [{ name: 'http', port: 8080 }], endpoints),
    sliceOf('web-2', [{ name: 'other', port: 9 }], [{ addresses: ['10.244.9.10'], nodeName: unnamed }]),
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1' },
      status: { addresses: [{ type: 'InternalIP', address: '192.168.50.11' }] },
    },
  ];
  const file = join(scratch, `${files++}.json`);
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  return file;
}

interface PrintedEffect {
  readonly target: string;
  readonly severity: string;
  readonly example: { readonly to: string };
}

describe.each(['iptables', 'nftables', 'ipvs'])('in %s mode', (mode) => {
  const compare = async (command: 'equivalence' | 'diff', from: string, to: string) =>
    resultOf((await runKpc([command, '-q', from, to, '--proxy-mode', mode, '--output', 'json'])).stdout);
  const waysOf = (effects: readonly PrintedEffect[]) =>
    effects
      .filter(({ target, example }) => target === 'health-check' && example.to.startsWith('192.168.50.11:'))
      .map(({ severity, example }) => `${severity} ${example.to}`)
      .toSorted();

  test('another port is one that no longer answers, and one that does', async () => {
    const [from, to] = [write({}), write({ port: 32101 })];
    const ways = ['breaks 192.168.50.11:32100', 'opens 192.168.50.11:32101'];
    expect(waysOf((await compare('diff', from, to)).packets)).toEqual(ways);
    const [cause] = (await compare('equivalence', from, to)).causes;
    expect(cause).toMatchObject({ cause: 'health-check', services: ['shop/web'] });
    expect(waysOf(cause.effects)).toEqual(ways);
  });

  test('a lost 503 takes no node from a load balancer', async () => {
    const [from, to] = [write({ nodes: ['n2'] }), write({ nodes: ['n2'], port: 32101 })];
    const ways = ['fails-otherwise 192.168.50.11:32100', 'fails-otherwise 192.168.50.11:32101'];
    expect(waysOf((await compare('diff', from, to)).packets)).toEqual(ways);
  });

  test('the same port answers otherwise without a ready endpoint on the node', async () => {
    const [from, to] = [write({}), write({ nodes: ['n2'] })];
    const { packets, servicePorts } = await compare('diff', from, to);
    expect(waysOf(packets)).toEqual(['changes 192.168.50.11:32100']);
    const answer = { kind: 'field', field: 'health check', from: '200', to: '503' };
    expect(servicePorts[0].reasons).toContainEqual(expect.objectContaining(answer));
  });

  test('endpoints of ports that no Service names count', async () => {
    const [from, to] = [write({ nodes: ['n2'] }), write({ nodes: ['n2'], unnamed: 'n1' })];
    expect(waysOf((await compare('diff', from, to)).packets)).toEqual(['changes 192.168.50.11:32100']);
  });

  test('equal answers are none', async () => {
    const [from, to] = [write({}), write({ nodes: ['n1'] })];
    expect(waysOf((await compare('diff', from, to)).packets)).toEqual([]);
  });
});

test('no setting brings back a health check that the Service no longer has', async () => {
  const helpOf = async (port: number): Promise<readonly string[]> => {
    const sides = [write({ mode: 'ipvs' }), write({ mode: 'nftables', port })];
    const { causes } = resultOf((await runKpc(['equivalence', '-q', ...sides, '--output', 'json'])).stdout);
    return causes.find(({ cause }: { readonly cause: string }) => cause === 'health-check').help;
  };
  expect(await helpOf(32100)).toHaveLength(1);
  expect(await helpOf(32101)).toEqual([]);
});

test.each(['iptables', 'nftables'])('in IPVS mode, a Service address answers too, but not in %s mode', async (mode) => {
  const { stdout } = await runKpc(['equivalence', '-q', 'ipvs', mode, '-f', write({}), '--output', 'json']);
  const { causes } = resultOf(stdout);
  const found = causes.find(({ cause }: { readonly cause: string }) => cause === 'health-check');
  expect(found).toMatchObject({ severity: 'breaks', services: ['shop/web'] });
  const there = found.effects.filter(({ example }: PrintedEffect) => example.to === '10.96.0.80:32100');
  expect(there).not.toEqual([]);
  expect(there).toEqual(there.map(() => expect.objectContaining({ target: 'health-check', severity: 'breaks' })));
});
