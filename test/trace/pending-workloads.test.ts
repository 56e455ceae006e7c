// Of two workloads of a Service, one fits no Node: its Pods stay Pending, and the other's are the endpoints.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-pending-workloads-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const deployment = (name: string, spec: string) =>
  `{ apiVersion: apps/v1, kind: Deployment, metadata: { name: ${name} }, spec: { replicas: 2, selector: { matchLabels: { app: web, of: ${name} } }, template: { metadata: { labels: { app: web, of: ${name} } }, spec: { ${spec}containers: [{ name: c, image: c }] } } } }`;

writeFileSync(
  join(cwd, 'in.yaml'),
  [
    '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { clusterIP: 10.96.0.10, selector: { app: web }, ports: [{ port: 80 }] } }',
    deployment('good', ''),
    deployment('gpu', 'nodeSelector: { gpu: "true" }, '),
    deployment('client', 'nodeSelector: { disk: ssd }, ').replaceAll('app: web', 'app: client'),
    '{ apiVersion: v1, kind: Node, metadata: { name: n1 }, spec: { podCIDRs: [10.244.0.0/24] }, status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }] } }',
  ].join('\n---\n'),
);

const ask = (...args: string[]) =>
  runKpc([...args, '-f', 'in.yaml', '--proxy-mode', 'iptables', '--output', 'json'], { cwd });

test('kpc describe names the workload beside the endpoints of the other', async () => {
  const [service] = resultOf((await ask('describe', 'web')).stdout).services;
  const [port] = service.ports;
  expect(port.families[0].endpoints).toHaveLength(2);
  expect(port.problems).toEqual([expect.stringContaining('gpu=true')]);
});

test.for([
  ['gpu', 'gpu=true'],
  ['client', 'disk=ssd'],
])('as a sender, the workload %s is no unknown name, whether or not a Service selects it', async ([name, wanted]) => {
  const { status, stdout } = await ask('trace', '--from', `deployment/${name}`, '--to', 'web');
  expect(status).toBe(1);
  expect(findingsOf(stdout, 'not-found').map((each) => each.arguments)).toEqual([
    { problem: 'pending-sender', owner: `Deployment default/${name}`, wanted },
  ]);
});
