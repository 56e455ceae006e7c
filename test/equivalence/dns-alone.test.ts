// What changes only in DNS is no packet: the answer names it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-dns-alone-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const external = (name: string) =>
  `{ apiVersion: v1, kind: Service, metadata: { name: cdn }, spec: { type: ExternalName, externalName: ${name} } }\n`;
const web =
  '---\n{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { clusterIP: 10.96.0.10, ports: [{ port: 80 }] } }\n';

writeFolder(cwd, {
  'a.yaml': external('a.example.com'),
  'b.yaml': external('b.example.com'),
  'web-a.yaml': external('a.example.com') + web,
  'web-b.yaml': external('b.example.com') + web,
});

const equivalence = (...args: string[]) =>
  runKpc(['equivalence', ...args, '--proxy-mode', 'iptables', '--output', 'json'], { cwd });

test('beside packets, a changed externalName is named as not compared', async () => {
  const { status, stdout } = await equivalence('web-a.yaml', 'web-b.yaml');
  expect(status).toBe(0);
  const named = resultOf(stdout).notCompared.filter((each: string) => each.includes('default/cdn'));
  expect(named).toEqual([expect.stringContaining('DNS')]);
});

test('alone, a changed externalName leaves nothing to compare, and the refusal names it', async () => {
  const { status, stdout } = await equivalence('a.yaml', 'b.yaml');
  expect(status).toBe(2);
  const { findings } = JSON.parse(stdout) as { readonly findings: readonly { readonly arguments: object }[] };
  expect(findings.map((each) => each.arguments)).toContainEqual(
    expect.objectContaining({ problem: 'no-services', notCompared: [expect.stringContaining('default/cdn')] }),
  );
});

test('an unchanged one is not named', async () => {
  const { stdout } = await equivalence('a.yaml', 'a.yaml');
  expect(stdout).not.toContain('cdn');
});

test('a renamed port is named, because its SRV name changes', async () => {
  const named = (port: string) => web.replace('port: 80', `name: ${port}, port: 80`);
  writeFolder(cwd, { 'http.yaml': named('http'), 'web.yaml': named('web') });
  const { stdout } = await equivalence('http.yaml', 'web.yaml');
  expect(resultOf(stdout).notCompared).toContainEqual(expect.stringMatching(/^DNS answers for default\/web/));
});
