// Which commands check the kinds that kube-proxy does not read: those that read them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { compile, equivalence, lint, migrate, open, trace } from '../../src/library/index.ts';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const folder = mkdtempSync(join(tmpdir(), 'kpc-unread-kinds-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const service = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.10, selector: { app: web }, ports: [{ port: 80 }] }
`;
const slice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: 80 }]
endpoints: []
`;
const unnamed = `---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { namespace: default }
spec: { gatewayClassName: any, listeners: [{ name: http, port: 80, protocol: HTTP }] }
`;
const [right, faulty] = [join(folder, 'right.yaml'), join(folder, 'faulty.yaml')];
writeFileSync(right, service);
writeFileSync(faulty, service + unnamed);

test.each([
  [['compile', faulty], false],
  [['describe', faulty], false],
  [['migrate', faulty], false],
  [['equivalence', 'ipvs', 'nftables', '-f', faulty], false],
  [['equivalence', right, faulty], true],
  [['diff', right, faulty], true],
  [['lint', faulty], true],
  [['trace', faulty, '--from', 'pod', '--to', 'svc/web'], true],
])('%j: whether it checks a Gateway is %j', async (words, checks) => {
  const { stdout } = await runKpc([...words, '--output', 'json']);
  expect(findingsOf(stdout, 'missing-field')).toHaveLength(checks ? 1 : 0);
  expect(findingsOf(stdout, 'skipped-kinds')).toHaveLength(checks ? 0 : 1);
});

test('the library checks what the command does', () => {
  const manifests = { 'faulty.yaml': service + unnamed };
  const checks = (of: { readonly diagnostics: readonly { readonly code: string }[] }): boolean =>
    of.diagnostics.some(({ code }) => code === 'missing-field');
  expect(checks(compile({ manifests }))).toBe(false);
  const known = { ...manifests, 'slice.yaml': slice };
  expect(checks(migrate({ manifests: known }))).toBe(false);
  expect(checks(equivalence({ manifests, from: 'ipvs', to: 'nftables' }))).toBe(false);
  expect(checks(open(manifests))).toBe(true);
  expect(checks(trace({ manifests, from: 'pod', to: 'svc/web' }))).toBe(true);
  expect(lint({ manifests }).findings.some(({ code }) => code === 'missing-field')).toBe(true);
});
