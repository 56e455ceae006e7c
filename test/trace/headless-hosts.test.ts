import { describe, expect, test } from 'vitest';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const service = (fields: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {clusterIP: None, selector: {app: db}, ${fields}}\n---\n`;
const statefulSet = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: db}]}}
`;
const slice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{port: 5432}]
endpoints:
- {addresses: [10.244.1.5], hostname: web-0}
- {addresses: [10.244.1.6]}
- {addresses: [10.244.1.7], hostname: web-2, conditions: {ready: false}}
`;
const onePort = 'ports: [{name: sql, port: 5432}]';

async function ask(manifests: string, to: string) {
  const run = await runKpc(['trace', '-', '--from', '10.244.9.9', '--to', to, '--output', 'json'], {
    stdin: manifests,
  });
  const { traces = [] } = (resultOf(run.stdout) ?? {}) as {
    traces?: readonly { to: { address: string; port: number } }[];
  };
  return { ...run, targets: traces.map(({ to: { address, port } }) => `${address}:${port}`) };
}

describe('an endpoint of a headless Service, as DNS names it', () => {
  test.each([
    ['web-0.db:80', '10.244.1.5:80'],
    ['web-0.db:sql', '10.244.1.5:5432'],
    ['web-0.db', '10.244.1.5:5432'],
    ['web-0.db.default:80', '10.244.1.5:80'],
    ['web-0.db.default.svc:80', '10.244.1.5:80'],
    ['web-0.db.default.svc.cluster.local.:80', '10.244.1.5:80'],
    ['10-244-1-6.db:80', '10.244.1.6:80'],
  ])('%s', async (to, expected) => {
    expect((await ask(service(onePort) + slice, to)).targets).toEqual([expected]);
  });

  test('of an assumed Pod', async () => {
    const targets = await Promise.all(
      ['web-0', 'web-1'].map((host) => ask(service(onePort) + statefulSet, `${host}.db`)),
    );
    expect(new Set(targets.flatMap((each) => each.targets)).size).toBe(2);
  });

  test.each([
    ['web-2.db:80', 'not-found', 1],
    ['web-0.db.shop.svc:80', 'not-found', 1],
    ['web-0.other:80', 'not-found', 1],
    ['web-0.db:x', 'bad-packet', 2],
  ])('%s is refused', async (to, code, status) => {
    const run = await ask(service(onePort) + slice, to);
    expect(run.status).toBe(status);
    expect(findingsOf(run.stdout, code)).toHaveLength(1);
  });
});
