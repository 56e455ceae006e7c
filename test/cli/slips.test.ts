import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-slips-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

writeFileSync(
  join(cwd, 'web.yaml'),
  'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] }\n',
);

test.each<[line: string, advice: string]>([
  ['web.yaml', 'did you mean "kpc compile -f web.yaml"?'],
  ['svc/web', 'did you mean "kpc describe svc/web -f FILE"?'],
  ['svc web -f web.yaml', 'did you mean "kpc describe web -f FILE"?'],
  ['https://example.com/a.yaml', 'Did you mean "curl -sSL https://example.com/a.yaml | kpc compile -f -"?'],
  ['describe svc/web', 'write "kpc describe svc/web -f FILE"'],
  ['describe svc web -f web.yaml', 'did you mean "kpc describe web"?'],
  ['compile https://example.com/a.yaml', 'pipe it in, as in "curl -sSL https://example.com/a.yaml | kpc'],
  ['compile *.json', 'kpc expands no patterns'],
  [
    'compile -f web.yaml -o yaml',
    'kpc prints no YAML, but --output json prints all, and --print FILE one of the files',
  ],
  ['compile -f web.yaml -oYAML', 'kpc prints no YAML'],
  ['compile -f web.yaml -o json', 'write --output json'],
  ['compile -f web.yaml -o wide', '--output json prints all'],
  ['compile -f web.yaml -o jsonpath={.items}', '--output json prints all'],
  ['compile -f web.yaml --golden yaml', '-o names a folder, not a format'],
  ['diff web.yaml web.yaml -o yaml', 'kpc prints no YAML. Did you mean "--output json"?'],
  ['describe web -f web.yaml -ojson', 'did you mean "--output json"?'],
])('kpc %s', async (line, advice) => {
  const run = await runKpc(line.split(' '), { cwd });
  expect(run).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining(advice) });
  for (const name of ['yaml', 'YAML', 'json', 'wide']) expect(existsSync(join(cwd, name))).toBe(false);
});

test.each([
  ['svc', 'without any name, kpc describe prints a table'],
  ['deploy/web2', 'kpc describes Services'],
])('kpc describe %s', async (what, advice) => {
  const run = await runKpc(['describe', what, '-f', 'web.yaml'], { cwd });
  expect(run).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(advice) });
});

test('kpc describe svc/web finds the Service', async () => {
  const run = await runKpc(['describe', 'svc/web', '-f', 'web.yaml'], { cwd });
  expect(run).toMatchObject({ status: 0, stdout: expect.stringContaining('default/web') });
});
