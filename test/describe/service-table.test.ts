// The table of all Services says the same as text and as data.
import { expect, test } from 'vitest';
import { describeServices, open } from '../../src/library/index.ts';

const table = (text: string) => {
  const [side] = open({ 'in.yaml': text }, { proxyMode: 'nftables' }).snapshots;
  return side?.kind === 'manifests' ? describeServices(side) : [];
};

const service = (name: string, more: string): string =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { ${more}, ports: [{ name: a, port: 80 }, { name: b, port: 81 }] }\n---\n`;
const slice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: a, port: 8080 }, { name: b, port: 8081 }]
endpoints: [{ addresses: [10.244.0.5] }, { addresses: [10.244.0.6], conditions: { ready: false } }]
`;

test('an endpoint of two ports is one', () => {
  const fields = 'type: NodePort, clusterIP: 10.96.0.10, externalTrafficPolicy: Local, sessionAffinity: ClientIP';
  expect(table(service('web', fields) + slice)).toMatchObject([
    { endpoints: { used: 1, ready: 1, total: 2 }, policies: ['external Local', 'ClientIP'] },
  ]);
});

test('lists every address that the Service has, by its kind', () => {
  const fields = 'type: LoadBalancer, clusterIP: 10.96.0.10, externalIPs: [198.51.100.9]';
  const text = service('web', fields).replace(
    '---\n',
    'status: { loadBalancer: { ingress: [{ ip: 192.0.2.50 }] } }\n---\n',
  );
  expect(table(text)).toMatchObject([
    { clusterIPs: ['10.96.0.10'], loadBalancerIPs: ['192.0.2.50'], externalIPs: ['198.51.100.9'] },
  ]);
});

test('of a headless Service, too, it tells that the input lacks endpoints from that it has none', () => {
  const headless = service('web', 'clusterIP: None, selector: { app: web }');
  const [ungiven] = table(headless);
  const [empty] = table(headless + slice.replace(/endpoints:.*/, 'endpoints: []'));
  expect(ungiven?.endpoints).toBe('not-given');
  expect(empty?.endpoints).toEqual({ used: 0, ready: 0, total: 0 });
  expect(ungiven?.notes).toHaveLength(1);
  expect(empty?.notes).not.toEqual(ungiven?.notes);
});

test.each(['clusterIP: None', 'clusterIP: 10.96.0.10'])('counts the endpoints of assumed Pods: %s', (address) => {
  const workload =
    'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec: { replicas: 2, selector: { matchLabels: { app: web } }, template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: c, ports: [{ containerPort: 80 }] }] } } }\n';
  const [side] = open(
    { 'in.yaml': service('web', `${address}, selector: { app: web }`) + workload },
    { assume: true },
  ).snapshots;
  expect(side?.kind === 'manifests' && describeServices(side)).toMatchObject([
    { endpoints: { ready: 2, total: 2, assumed: 2 } },
  ]);
});
