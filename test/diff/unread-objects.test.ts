import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-unread-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const service = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }
`;
const policy = (port: number, more = '') => `---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: web${more} }
spec: { podSelector: {}, ingress: [{ ports: [{ port: ${port} }] }] }
`;
const ingress = (name: string, path: string) => `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: ${name} }
spec: { rules: [{ http: { paths: [{ path: ${path}, pathType: Prefix, backend: { service: { name: web, port: { number: 80 } } } }] } }] }
`;
const release = (value: string, rest = '') => `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: { name: web }
spec: { values: { externalTrafficPolicy: ${value} } }
${rest}`;

test.each([
  ['a policy that changed', policy(80), policy(81), ['1 NetworkPolicy that differs']],
  ['one of one side', '', policy(80), ['1 NetworkPolicy that differs']],
  [
    'of several kinds',
    policy(80) + ingress('a', '/a') + ingress('b', '/'),
    policy(81) + ingress('a', '/b'),
    ['2 Ingresses that differ', '1 NetworkPolicy that differs'],
  ],
  [
    'the class and the annotations of an Ingress',
    ingress('a, annotations: { affinity: none }', '/') + ingress('b', '/'),
    ingress('a, annotations: { affinity: cookie }', '/') +
      ingress('b', '/').replace('rules', 'ingressClassName: x, rules'),
    ['2 Ingresses that differ'],
  ],
  ["another program's object", release('Local'), release('Cluster'), ['1 HelmRelease that differs']],
  ["another program's object in its status alone", release('Local'), release('Local', 'status: { ready: true }'), []],
  [
    'what makes no Services and touches no packets',
    release('Local').replace(/apiVersion.*/, 'apiVersion: monitoring.coreos.com/v1'),
    release('Cluster').replace(/apiVersion.*/, 'apiVersion: monitoring.coreos.com/v1'),
    [],
  ],
  [
    'when it was created, and the order, alone',
    ingress('b', '/') + policy(80),
    policy(80, ', creationTimestamp: "2026-01-01T00:00:00Z"') + ingress('b', '/'),
    [],
  ],
])('what diff does not compare is said: %s', async (_, before, after, notCompared) => {
  const [from, to] = [join(scratch, 'from.yaml'), join(scratch, 'to.yaml')];
  writeFileSync(from, service + before);
  writeFileSync(to, service + after);
  const { stdout } = await runKpc(['diff', from, to, '--output', 'json']);
  const { result } = JSON.parse(stdout) as { readonly result: object };
  expect(result).toMatchObject({ differs: false, notCompared });
  const text = await runKpc(['diff', from, to]);
  expect(text.status).toBe(0);
  expect(notCompared.every((each) => text.stdout.includes(each))).toBe(true);
  expect(text.stdout.includes('not compared')).toBe(notCompared.length > 0);
});
