import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  symlinkSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { fixturesFolder } from '../support/fixtures.ts';
import { noWorkflow, workflowText } from '../../src/say/repository.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { writeFolder, type Files } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-init-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let count = 0;
const folder = (files: Files): string => writeFolder(join(scratch, String(++count)), files);
const svc = readFileSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), 'utf8');
const read = (cwd: string, name: string): unknown => parse(readFileSync(join(cwd, name), 'utf8'));

const fromGit = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ port: 80 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web, image: web }] } }
`;

test('writes kpc.yaml and the golden that it compiles to, and says what is next', async () => {
  const cwd = folder({ 'services/svc.yaml': svc.replace('name: worker-1\n', 'name: worker-1\n') });
  const { status, stdout, stderr } = await runKpc(['init', 'services'], { cwd });
  expect({ status, stderr }).toMatchObject({ status: 0 });
  expect(stdout).toMatch(
    /^Wrote kpc\.yaml and golden: 1 Service \(1 port\) on node worker-1, mode ipvs \(nothing names a mode\), ipv4: /,
  );
  expect(stderr).toContain('kpc compile --check golden\n');
  expect(read(cwd, 'kpc.yaml')).toMatchObject({ file: 'services', node: 'worker-1' });
  expect(readdirSync(cwd).toSorted()).toEqual(['golden', 'kpc.yaml', 'services']);
  expect(await runKpc(['compile', '--check', 'golden'], { cwd })).toMatchObject({ status: 0, stdout: '' });
});

test('refuses a dump or a bundle, as kpc compile does, also beside manifests', async () => {
  const cwd = folder({ 'svc.yaml': svc, 'dump.txt': '$ ipvsadm -S -n\n-A -t 10.96.0.10:80 -s rr\n' });
  await runKpc(['compile', 'svc.yaml', '-o', 'bundle'], { cwd });
  for (const command of ['init', 'compile', 'lint']) {
    for (const input of [['bundle'], ['svc.yaml', 'dump.txt']]) {
      const { status, stderr, stdout } = await runKpc([command, ...input, '--proxy-mode', 'ipvs'], { cwd });
      expect({ status, said: stderr + stdout }).toMatchObject({
        status: 2,
        said: expect.stringContaining('[no-manifests]'),
      });
    }
  }
  expect(readdirSync(cwd).toSorted()).toEqual(['bundle', 'dump.txt', 'svc.yaml']);
});

test('assumes what manifests from git lack, and leaves out its own workflow', async () => {
  const cwd = folder({ 'web.yaml': fromGit });
  expect(await runKpc(['init', '--github', '--golden', 'ci/golden'], { cwd })).toMatchObject({ status: 0 });
  expect(read(cwd, 'kpc.yaml')).toMatchObject({ file: '.', compile: { assume: true } });
  const check = await runKpc(['compile', '--check', 'ci/golden'], { cwd });
  expect(check).toMatchObject({ status: 0, stdout: '' });
  expect(check.stderr).not.toContain('skipped');
});

test('advises a file for what a kustomization builds, because kpc.yaml cannot name a pipe', async () => {
  const cwd = folder({
    'base/web.yaml': fromGit,
    'base/kustomization.yaml': 'resources: [web.yaml]\n',
    'prod/kustomization.yaml': 'resources: [../base]\n',
  });
  const { status, stderr } = await runKpc(['init', 'prod', '--node', 'worker-1'], { cwd });
  expect(status).toBe(2);
  const command = 'kpc init rendered.yaml --node worker-1';
  expect(stderr).toContain(`help: run "kubectl kustomize prod > rendered.yaml && ${command}"`);
  writeFileSync(join(cwd, 'rendered.yaml'), fromGit);
  expect(await runKpc(command.split(' ').slice(1), { cwd })).toMatchObject({ status: 0 });
  expect(await runKpc(['compile', '--check', 'golden'], { cwd })).toMatchObject({ status: 0, stdout: '' });
});

test('a check says that nothing names the mode as long as nothing does', async () => {
  const cwd = folder({ 'svc.yaml': svc });
  await runKpc(['init', 'svc.yaml'], { cwd });
  writeFileSync(join(cwd, 'svc.yaml'), svc.replace('port: 80', 'port: 81'));
  const check = ['compile', '--check', 'golden', '--output'];
  for (const output of ['markdown', 'github', 'sarif', 'junit']) {
    const { stdout } = await runKpc([...check, output], { cwd });
    // Beside the packets, and beside what was compiled.
    expect(stdout.match(/nothing names a mode/g)).toHaveLength(output === 'markdown' ? 2 : 1);
    expect((await runKpc([...check, output, '--proxy-mode', 'ipvs'], { cwd })).stdout).not.toContain('names a mode');
  }
  const { snapshots, findings } = JSON.parse((await runKpc([...check, 'json'], { cwd })).stdout);
  expect(snapshots.at(-1)).toMatchObject({ mode: 'ipvs', assumed: { mode: true } });
  expect(findings.map(({ code }: { code: string }) => code)).not.toContain('default-mode');
});

test('writes no mode that nothing names, so that no finding rests on one', async () => {
  const cwd = folder({ 'svc.yaml': svc });
  expect(await runKpc(['init', 'svc.yaml'], { cwd })).toMatchObject({ status: 0 });
  expect(read(cwd, 'kpc.yaml')).not.toHaveProperty('proxy-mode');
  const { stdout } = await runKpc(['lint'], { cwd });
  expect(stdout).toContain('IPVS mode (nothing names a mode)');
  expect(stdout).not.toContain('ipvs-ends');
});

test.runIf(noWorkflow !== undefined)('writes no workflow that could not run, and says so', async () => {
  const cwd = folder({ 'web.yaml': fromGit });
  const { status, stdout, stderr } = await runKpc(['init', '--github'], { cwd });
  expect({ status, stdout }).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^Wrote kpc\.yaml and golden: /),
  });
  expect(stderr).toContain(noWorkflow);
  expect(existsSync(join(cwd, '.github'))).toBe(false);
});

test('a workflow gives the action what it takes', () => {
  const workflow = parse(workflowText(['.'], 'ci/golden')) as {
    readonly jobs: { readonly kpc: { readonly steps: readonly { readonly uses: string; readonly with: object }[] } };
  };
  const [checkout, kpc] = workflow.jobs.kpc.steps;
  expect(checkout?.with).toMatchObject({ 'fetch-depth': 2 });
  const action = parse(readFileSync(join(projectFolder, 'action.yml'), 'utf8')) as { readonly inputs: object };
  for (const input of Object.keys(kpc?.with ?? {})) expect(action.inputs).toHaveProperty([input]);
  expect(kpc?.with).toEqual({ files: '.\n', golden: 'ci/golden' });
});

test('takes the release of the Node, the mode of the configuration, and the flags that are given', async () => {
  const node =
    'kind: Node\napiVersion: v1\nmetadata: { name: w1 }\nstatus: { nodeInfo: { kubeletVersion: v1.35.2 } }\n';
  const config = 'kind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nmode: nftables\n';
  const cwd = folder({ 'in.yaml': `${fromGit}---\n${node}---\n${config}` });
  const words = ['init', 'in.yaml', '--cluster-cidr', '10.200.0.0/16', '--masquerade-all'];
  const { status, stdout } = await runKpc(words, { cwd });
  expect(status).toBe(0);
  expect(stdout).toContain('on node w1, mode nftables');
  const written = read(cwd, 'kpc.yaml');
  expect(written).toMatchObject({ 'kubernetes-version': '1.35', node: 'w1', 'cluster-cidr': '10.200.0.0/16' });
  expect(written).not.toHaveProperty('proxy-mode');
  expect(await runKpc(['compile', '--check', 'golden'], { cwd })).toMatchObject({ status: 0, stdout: '' });
});

test.each([
  ['kpc.yaml', ['init', 'svc.yaml']],
  ['.github/workflows/kpc.yaml', ['init', 'svc.yaml', '--github']],
])('replaces no %s', async (name, words) => {
  const cwd = folder({ 'svc.yaml': svc, [name]: '# mine\n' });
  const { status, stderr } = await runKpc(words, { cwd });
  expect(status).toBe(2);
  expect(stderr).toBe(`error: ${name} exists already [bad-call]\n  help: edit or remove it\n`);
  expect(readFileSync(join(cwd, name), 'utf8')).toBe('# mine\n');
  expect(existsSync(join(cwd, 'golden'))).toBe(false);
});

test('writes nothing if the manifests are wrong or hold no Service', async () => {
  for (const text of [svc.replace('port: 80', 'port: 0'), '# nothing\n']) {
    const cwd = folder({ 'in.yaml': text });
    expect(await runKpc(['init'], { cwd })).toMatchObject({ status: 2, stdout: '' });
    expect(readdirSync(cwd)).toEqual(['in.yaml']);
  }
});

test.each([
  [['../outside/svc.yaml']],
  [['svc.yaml', '--config', '../outside/config.yaml']],
  [['svc.yaml', '--render']],
])('refuses what kpc.yaml could not hold: %j', async (words) => {
  const config = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';
  const top = folder({
    'repo/svc.yaml': svc,
    'repo/.git/x': '',
    'outside/svc.yaml': svc,
    'outside/config.yaml': config,
  });
  const cwd = join(top, 'repo');
  const { status, stderr } = await runKpc(['init', ...words], { cwd });
  expect([status, /\[bad-call\]/.test(stderr)]).toEqual([2, true]);
  expect(readdirSync(cwd).toSorted()).toEqual(['.git', 'svc.yaml']);
});

test.runIf(process.platform !== 'win32').each([
  ['golden', '../outside'],
  ['golden', '.git/hooks'],
  ['.github', '../outside'],
  ['.github/workflows', '../.git/hooks'],
])('writes nothing through a link: %s to %s', async (link, target) => {
  const top = folder({ 'repo/svc.yaml': svc, 'repo/.git/hooks/x': '', 'repo/.github/x': '', 'outside/x': '' });
  const cwd = join(top, 'repo');
  rmSync(join(cwd, link), { recursive: true, force: true });
  if (link === '.github/workflows') mkdirSync(join(cwd, '.github'), { recursive: true });
  symlinkSync(target, join(cwd, link));
  const { status, stderr } = await runKpc(['init', 'svc.yaml', '--github'], { cwd });
  expect(status).toBe(2);
  expect(stderr).toMatch(/leads (?:into \.git|out of this repository)/);
  expect(readdirSync(join(top, 'outside'))).toEqual(['x']);
  expect(readdirSync(join(cwd, '.git/hooks'))).toEqual(['x']);
  expect(existsSync(join(cwd, 'kpc.yaml'))).toBe(false);
});

test.runIf(process.platform !== 'win32').each(['a\n          run: x', ' a', '${{ github.token }}'])(
  'writes no name into a workflow that it cannot hold (%#)',
  async (name) => {
    const cwd = folder({ [`${name}/svc.yaml`]: svc });
    const { status, stderr } = await runKpc(['init', '--github', name], { cwd });
    expect(status).toBe(2);
    expect(stderr).toContain('error: a workflow cannot hold the name "');
    expect(readdirSync(cwd)).toEqual([name]);
  },
);
