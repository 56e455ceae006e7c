// A side that must be rendered first: advice is for this comparison, and a folder of a revision is not on the disk.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { commitAll } from '../support/git.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-unrendered-'));
const root = mkdtempSync(join(tmpdir(), 'kpc-unrendered-root-'));
afterAll(() => [cwd, root].forEach((folder) => rmSync(folder, { recursive: true, force: true })));

const service = `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: 10.96.0.11, ports: [{ port: 80 }] }
`;

beforeAll(() => {
  writeFolder(cwd, {
    'plain.yaml': service,
    'base/web.yaml': service,
    'base/kustomization.yaml': 'resources: [web.yaml]\n',
    'only/kustomization.yaml': 'resources: [../base]\n',
    'overlay/kustomization.yaml': 'resources: [../base, web.yaml]\nnamePrefix: x-\n',
    'overlay/web.yaml': service.replace('name: web', 'name: more'),
    'routes/kustomization.yaml': 'kind: Kustomization\napiVersion: kustomize.config.k8s.io/v1beta1\n',
    'routes/ingress.yaml': 'apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: { name: web }\n',
    'twin/kustomization.yaml': 'resources: [../base, web.yaml]\nnamePrefix: y-\n',
    'twin/web.yaml': service.replace('name: web', 'name: more'),
    'chart/Chart.yaml': 'apiVersion: v2\nname: web\nversion: 0.1.0\n',
    'chart/templates/web.yaml': service.replace('name: web', 'name: {{ .Values.name }}'),
  });
  commitAll(cwd);
  writeFolder(root, { 'web.yaml': service, 'kustomization.yaml': 'resources: [web.yaml]\nnamePrefix: x-\n' });
  commitAll(root);
});

const cases = [
  ['overlay', ['incomplete-kustomization', 'kustomized']],
  ['only', ['no-input']],
  ['chart', ['unrendered-template']],
] as const;

/** The checkout is removed again, so that the next command does not find the folder taken. */
function checkedOut(tree: string, command: string): string {
  return `git worktree add --detach ${tree} HEAD && { ${command}; git worktree remove --force ${tree}; }`;
}

test.each(cases)('%s: both sides are rendered, in one command', async (folder, codes) => {
  for (const [command, from, to] of [
    ['diff', folder, 'plain.yaml'],
    ['equivalence', 'plain.yaml', folder],
  ] as const) {
    const sides = [from, to].map((name) => ({ name, isFolder: name === folder }));
    const into = { compare: `kpc ${command} --output json`, sides };
    expect(await advised([command, from, to])).toEqual(codes.map((code) => [code, into]));
  }
});

test.each(cases)('%s of a revision is checked out first', async (folder, codes) => {
  const sides = [
    { name: `HEAD:${folder}`, checkout: { revision: 'HEAD', path: folder }, isFolder: true },
    { name: 'plain.yaml', isFolder: false },
  ];
  const into = { compare: 'kpc diff --output json', sides };
  expect(await advised(['diff', `HEAD:${folder}`, 'plain.yaml'])).toEqual(codes.map((code) => [code, into]));
});

test.each([
  ['HEAD:overlay', 'overlay', checkedOut('../old', 'kpc diff --render ../old/overlay overlay')],
  ['HEAD:.', '.', checkedOut('../old', 'kpc diff --render ../old/overlay overlay')],
  ['overlay', 'twin', 'kpc diff --render overlay twin'],
])('the help of diff %s %s is one command', async (from, to, command) => {
  const { stderr } = await runKpc(['diff', from, to], { cwd });
  expect(stderr).toContain(`run "${command}"`);
  expect(stderr).not.toContain('kubectl kustomize');
});

test.each([
  ['HEAD:.', '.', checkedOut('../old', 'kpc diff --node n1 --render ../old .')],
  ['.', 'HEAD:.', checkedOut('../new', 'kpc diff --node n1 --render . ../new')],
])('diff %s %s of the folder itself, with its flags, says one command', async (from, to, command) => {
  const { stderr } = await runKpc(['diff', from, to, '--node', 'n1'], { cwd: root });
  expect(new Set(stderr.match(/run ".*"/g))).toEqual(new Set([`run "${command}"`]));
});

test.each(['describe', 'lint', 'compile'])('kpc %s of a revision is told to check it out', async (command) => {
  const { stdout, stderr } = await runKpc([command, 'HEAD:overlay'], { cwd });
  const build = checkedOut('../new', 'kubectl kustomize ../new/overlay');
  expect(stdout + stderr).toContain(`run "${build} | kpc ${command} -f -"`);
});

test('a chart of a revision is checked out before it is rendered', async () => {
  const { stdout } = await runKpc(['lint', 'HEAD:.'], { cwd });
  expect(stdout).toContain(`run "${checkedOut('../new', 'helm template web ../new/chart')} | kpc lint -f -"`);
});

test('the proposed command works again, also after the next commit', async () => {
  const { stdout } = await runKpc(['lint', 'HEAD:.', '--output', 'json'], { cwd });
  const [help = ''] = /git worktree add [^|]*/.exec(stdout) ?? [];
  const again = help.replaceAll('../new', join(cwd, '.git', 'new')).replace('helm template web', 'ls');
  for (const name of ['one', 'two']) {
    writeFolder(cwd, { [`chart/templates/${name}.yaml`]: service });
    commitAll(cwd);
    expect(execFileSync('sh', ['-c', again], { cwd, encoding: 'utf8', stdio: 'pipe' })).toContain('templates');
  }
});

test('a folder of Ingresses and a kustomization is named on each side, and no claim is made about its objects', async () => {
  const { stderr } = await runKpc(['diff', 'HEAD:routes', 'routes'], { cwd });
  const named = stderr.match(/^error: .*/gm) ?? [];
  expect(named.map((line) => /compile: (\S+) holds/.exec(line)?.[1])).toEqual(['HEAD:routes', 'routes']);
});

test.each([
  [['migrate', 'overlay', '--to', 'nftables'], 'kpc migrate -f - --to nftables'],
  [['trace', 'overlay', '--from', 'pod', '--to', 'web'], 'kpc trace -f - --from pod --to web'],
  [['lint', 'overlay', '--proxy-mode', 'ipvs'], 'kpc lint -f - --proxy-mode ipvs'],
  [['equivalence', 'ipvs', 'nftables', '-f', 'overlay'], 'kpc equivalence ipvs nftables -f -'],
])('%j reads what is rendered by itself', async (words, command) => {
  const { stdout, stderr } = await runKpc(words, { cwd });
  expect(stdout + stderr).toContain(`run "kubectl kustomize overlay | ${command}"`);
});

async function advised(words: readonly string[]): Promise<readonly (readonly [string, unknown])[]> {
  const { stdout } = await runKpc([...words, '--output', 'json'], { cwd });
  const { findings } = JSON.parse(stdout) as {
    readonly findings: readonly { readonly code: string; readonly arguments: { readonly into?: unknown } }[];
  };
  return findings.flatMap(({ code, arguments: { into } }) => (into ? [[code, into] as const] : [])).toSorted();
}
