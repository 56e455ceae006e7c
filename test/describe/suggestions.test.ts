import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-suggestions-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const labels = ['default/db', 'shop/web', 'shop/api', 'test/api', 'test/only'];
const manifests = join(scratch, 'services.yaml');
writeFileSync(
  manifests,
  labels
    .map((label, i) => {
      const [namespace, name] = label.split('/');
      return `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}}
spec: {clusterIP: 10.96.0.${i + 1}, ports: [{name: http, port: 80}]}
`;
    })
    .join('---\n'),
);

test.each([
  ['a Service of another namespace', 'shop/db', 'default/db'],
  ['a Service of two other namespaces', 'default/api', 'shop/api or test/api'],
  ['a port of a Service of another namespace', 'shop/db:http', 'default/db'],
  ['a port that a Service has not got', 'shop/web:81', 'shop/web:http'],
  ['the same without a namespace', 'web:81', 'shop/web:http'],
  ['a port that the Services of that name have not got', 'api:grpc', 'shop/api:http or test/api:http'],
  ['a misspelt name', 'shop/wev', 'shop/web'],
  ['a misspelt name that two namespaces have', 'apii', 'shop/api or test/api'],
  ['a misspelt name with a port', 'onli:80', 'test/only'],
])('%s: %s', async (_, what, meant) => {
  const run = await runKpc(['describe', what, '-f', manifests]);
  expect(run.status).toBe(1);
  expect(run.stderr).toContain(`did you mean ${meant}?`);
});

test('an address that nothing stands at makes no name likely', async () => {
  for (const what of ['10.96.0.99', '10.96.0.99:80', '[fd00::1]:80', '31999']) {
    const run = await runKpc(['describe', what, '-f', manifests]);
    expect(run.status).toBe(1);
    expect(run.stderr).not.toContain('did you mean');
  }
});

test('a name that many namespaces have makes no long list', async () => {
  const many = join(scratch, 'many.yaml');
  const service = (i: number) =>
    `apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: team-${i}}\nspec: {clusterIP: 10.96.1.${i + 1}, ports: [{name: http, port: 80}]}\n`;
  writeFileSync(many, Array.from({ length: 9 }, (_, i) => service(i)).join('---\n'));
  for (const what of ['web:81', 'webb', 'shop/web']) {
    const run = await runKpc(['describe', what, '-f', many]);
    expect(run.stderr).toMatch(/did you mean team-0\/web\S* or team-1\/web\S* or team-2\/web\S*\?/);
  }
});
