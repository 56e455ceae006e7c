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
  expect(stderr).toContain('no Pod of Deployment default/wep in the input');
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
  expect((stdout + stderr).match(/nothing names a mode/g)).toHaveLength(1);
});
