// What every command that looks takes for granted: what it assumes, who may send, what a folder is.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-one-meaning-'));
afterAll(() => rmSync(cwd, { recursive: true }));

mkdirSync(join(cwd, 'deploy'));
writeFileSync(
  join(cwd, 'deploy/web.yaml'),
  `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: LoadBalancer, selector: { app: web }, ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web, image: web, ports: [{ containerPort: 8080 }] }] } }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: client }
spec:
  selector: { matchLabels: { app: client } }
  template: { metadata: { labels: { app: client } }, spec: { containers: [{ name: client, image: client }] } }
`,
);
const none = ['--kpc-yaml', 'none'];

test('the file that kpc test --init writes runs as it is, on manifests from git', async () => {
  const written = await runKpc(['test', '--init', 'deploy', ...none], { cwd });
  expect(written.stdout).toContain('default/web cluster IP');
  writeFileSync(join(cwd, 'holds.yaml'), written.stdout);
  const run = await runKpc(['test', 'holds.yaml', ...none], { cwd });
  expect(run).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\d\d packets as expected/) });
  expect(run.stderr).toContain('[assumed]');
  expect(await runKpc(['test', 'holds.yaml', '--no-assume', ...none], { cwd })).not.toMatchObject({ status: 0 });
});

test.each([
  ['deployment/client', 'client-0'],
  ['deploy/default/client', 'client-0'],
  ['client-0', 'client-0'],
  ['deployment/web', 'web-1'],
])('--from %s is an assumed Pod', async (from, pod) => {
  const { stdout } = await runKpc(['trace', 'deploy', '--from', from, '--to', 'web', ...none], { cwd });
  expect(stdout).toMatch(new RegExp(`from Pod default/${pod}.* \\((10\\.244\\.\\S+)\\)[^]*assumed: .*\\1`));
});

test('of a workload, the Pod on the node is taken', async () => {
  for (const node of ['node-1', 'node-2']) {
    const words = ['trace', 'deploy', '--node', node, '--from', 'deployment/web', '--to', 'web', ...none];
    expect((await runKpc(words, { cwd })).stdout).toMatch(/from Pod default\/web-\d \(/);
  }
});

test('a workload without a Pod is no sender', async () => {
  const { status, stderr } = await runKpc(['trace', 'deploy', '--from', 'deploy/wep', '--to', 'web', ...none], { cwd });
  expect(status).toBe(1);
  expect(stderr).toContain('no Pod of Deployment wep in the input');
  expect(stderr).toContain('deployment/default/web');
});

test('a folder is a folder beside a kpc.yaml, too', async () => {
  writeFileSync(join(cwd, 'kpc.yaml'), 'file: deploy\nproxy-mode: iptables\n');
  const described = await runKpc(['describe', 'deploy'], { cwd });
  expect(described).toMatchObject({ status: 0, stdout: expect.stringContaining('default/web') });
  expect(await runKpc(['describe', 'web'], { cwd })).toMatchObject({ status: 0 });
  rmSync(join(cwd, 'kpc.yaml'));
});

test.each([
  ['describe', ['deploy']],
  ['trace', ['deploy', '--from', 'pod', '--to', 'web']],
  ['lint', ['deploy']],
  ['compile', ['-f', 'deploy', '--assume', '-o', 'bundle']],
  ['diff', ['deploy', 'deploy/web.yaml', '--limit', '1']],
  ['migrate', ['deploy']],
  ['init', ['deploy']],
])('kpc %s takes IPVS where nothing names a mode, and says so', async (command, words) => {
  const { stdout, stderr } = await runKpc([command, ...words, ...none], { cwd });
  expect(stdout + stderr).toMatch(/ipvs|IPVS/);
  // Where a verdict stands, and beside it: who keeps one of the two has it once.
  const times = [stdout, stderr].map((text) => text.split('nothing names a mode').length - 1);
  expect(Math.max(...times)).toBe(1);
});

test.each([
  ['describe', '--node', 'A B'],
  ['trace', '--namespace', 'A_'],
  ['diff', '--kubernetes-version', '1.99'],
  ['lint', '--service-cluster-ip-range', 'x'],
  ['init', '--node', 'A B'],
])('kpc %s checks %s before it reads anything, and says nothing else', async (command, flag, value) => {
  const words = { diff: ['none', 'other'], trace: ['none', '--all', 'web'] }[command] ?? ['none'];
  const { status, stdout, stderr } = await runKpc([command, ...words, flag, value], { cwd });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(new RegExp(`^error: ${flag} cannot be "${value}" \\[bad-value\\]\n  help: [^\n]*\n$`));
});

test('errors that end a run stand alone', async () => {
  mkdirSync(join(cwd, 'mixed'), { recursive: true });
  writeFileSync(join(cwd, 'mixed/a.json'), '{\n  // a comment\n  "kind": "Service" }\n');
  writeFileSync(
    join(cwd, 'mixed/b.yaml'),
    'apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n  {{- range .Values.ports }}\n',
  );
  writeFileSync(
    join(cwd, 'mixed/c.yaml'),
    '{ apiVersion: v1, kind: Service, metadata: { name: c }, spec: { type: NodePort } }\n',
  );
  const { status, stderr } = await runKpc(['describe', 'mixed', ...none], { cwd });
  expect(status).toBe(2);
  expect([...stderr.matchAll(/\[([a-z-]+)\]\n/g)].map(([, code]) => code)).toEqual([
    'left-out',
    'bad-json',
    'unrendered-template',
  ]);
});

test.each(['diff', 'equivalence'])('each note of kpc %s names its side, if the sides differ in it', async (command) => {
  writeFileSync(
    join(cwd, 'one.yaml'),
    '{ apiVersion: v1, kind: Service, metadata: { name: a }, spec: { ports: [{ port: 80 }] } }\n',
  );
  const two =
    '{ apiVersion: v1, kind: Service, metadata: { name: a }, spec: { type: NodePort, ports: [{ port: 80 }] } }\n';
  writeFileSync(join(cwd, 'two.yaml'), two);
  const { stderr } = await runKpc([command, 'one.yaml', 'two.yaml', ...none], { cwd });
  expect(stderr).toMatch(/^one\.yaml: note: assumed/m);
  expect(stderr).toMatch(/^two\.yaml: note: assumed/m);
  const same = await runKpc([command, 'one.yaml', 'one.yaml', ...none], { cwd });
  expect(same.stderr.match(/note: assumed/g)).toHaveLength(1);
  expect(same.stderr).toMatch(/^note: assumed/m);
});
