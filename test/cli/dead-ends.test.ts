// What people type who have not read anything yet: each ends in one line that helps.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-dead-ends-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

writeFolder(cwd, {
  'svc.yaml': readFileSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), 'utf8'),
  kubeconfig: 'apiVersion: v1\nkind: Config\nclusters: []\n',
  'capital.yaml': 'apiversion: v1\nkind: Service\nmetadata: { name: web }\n',
  'described.yaml': 'Name:      web\nNamespace: default\nType:      ClusterIP\n',
  'refused.yaml': 'Error from server (Forbidden): services is forbidden\n',
});

test.each([
  ['compile svc.yaml --mode iptables', "unknown option '--mode'", 'write --proxy-mode'],
  ['--node n1 lint svc.yaml', "unknown option '--node'", 'write flags after the command: kpc lint --node'],
  ['get svc', "unknown command 'get'", '"kpc describe" lists Services: kpc describe -f services.yaml'],
  ['apply bundle', "unknown command 'apply'", 'kpc-apply changes nodes: "kpc-apply apply BUNDLE"'],
  ['help nosuch', "unknown command 'nosuch'", '--help lists the commands'],
  ['nosuch', "unknown command 'nosuch'", '--help lists the commands'],
  ['compil svc.yaml', "unknown command 'compil'", 'did you mean compile?'],
  ['diff', 'diff needs two sides', 'kpc diff OLD NEW, such as "kpc diff main:services services"'],
  ['diff svc.yaml', 'diff needs a second side to compare with svc.yaml', 'kpc diff OLD NEW'],
  ['equivalence ipvs nft -f svc.yaml', 'no mode, release, file or folder is called "nft"', 'did you mean nftables?'],
  [
    'equivalence foo bar -f svc.yaml',
    'called "foo" and "bar"',
    'name a mode (ipvs, iptables, nftables or userspace), a release such as 1.36, a file or a folder',
  ],
  ['svc.yaml', "unknown command 'svc.yaml'", 'name a command before it: "kpc describe FILE"'],
  ['nft svc.yaml', "unknown command 'nft'", '--proxy-mode nftables'],
  ['validate svc.yaml', "unknown command 'validate'", 'write "kpc lint FILE"'],
  ['lint --fix svc.yaml', "unknown option '--fix'", 'kpc changes no manifests'],
  ['equivalence', "missing required argument 'from'", 'write kpc equivalence FROM TO; see --help'],
  ['bundle verify', "missing required argument 'bundle'", 'kpc bundle ACTION BUNDLE'],
  ['bundle pack nothing', 'no pack is named', 'name the file to write with -o, such as -o node.tgz'],
  ['bundle verify svc.yaml --sign key', 'kpc bundle verify has no --sign', ''],
  [
    'describe nginx apache -f svc.yaml',
    'describe takes one subject, not "nginx" and "apache"',
    'name one, and the input with -f',
  ],
  ['trace --render nosuch --from pod --to web:80', 'nosuch: error: there is no such file or folder', ''],
  ['describe no/such', '"no/such" is no file or folder', 'write "kpc describe no/such -f FILE"'],
  ['describe --from-dump nosuch', 'nosuch: error: there is no such file or folder', ''],
  ['trace --from-dump dump --from pod --to web:80', "unknown option '--from-dump'", 'name the dump as an input'],
  ['compile -f ', "argument '' is invalid", 'check that the shell variable for it is set, or leave the flag out'],
  ['describe ./no', './no: error: there is no such file or folder', ''],
  ['describe no/', '"no/" is no file or folder', 'write "kpc describe no/ -f FILE"'],
  ['describe https://example.com/web', 'kpc reads files, not URLs', 'curl -sSLO https://example.com/web'],
  ['describe -f svc.yaml,other.yaml', 'does not expand patterns or split lists', 'name each file by itself'],
  ['diff svc.yaml svc.yaml svc.yaml', "too many arguments for 'diff'", 'write kpc diff FROM TO; see --help'],
  ['version now', "too many arguments for 'version'", 'write kpc version; see --help'],
  ...['compile', 'describe', 'diff svc.yaml', 'migrate', 'init'].map(
    (command) =>
      [
        `${command} kubeconfig`,
        'the input is a kubeconfig',
        'use --cluster on the command line, with the variable KUBECONFIG',
      ] as const,
  ),
  [
    'compile capital.yaml',
    'capital.yaml:1:13: error: this is not a Kubernetes object',
    'write apiVersion, not apiversion',
  ],
  ['compile described.yaml', 'it has no kind', 'print objects with kubectl get -o yaml'],
  ['compile refused.yaml', 'it has no kind', 'print objects with kubectl get -o yaml'],
  ['describe svc nginx', 'no manifests are named', 'write "kpc describe nginx -f FILE", with - for stdin'],
  ['describe svc.yaml -o json', "unknown option '-o'", 'write --output FORMAT'],
  ['describe svc.yaml -o wide', "unknown option '-o'", 'write --output FORMAT'],
  ['compile svc.yaml -o json', "argument 'json' is invalid", 'this names a folder, not a format'],
  ['describe svc.yaml -A', "unknown option '-A'", 'leave it out: kpc reads all namespaces in the input'],
  ['compile -k overlay', "unknown option '-k'", 'pipe it in: kubectl kustomize FOLDER | kpc describe -'],
  ['describe --context prod', '--context: only with --cluster', ''],
  ['diff main:svc.yaml svc.yaml', 'and kpc cannot read a revision', 'run kpc in the working tree of the repository'],
] as const)('kpc %s', async (words, wrong, help) => {
  const { status, stdout, stderr } = await runKpc(words.split(' '), { cwd });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toContain(wrong);
  expect(stderr).toContain(help);
  expect(stderr.match(/error: /g)).toHaveLength(1);
});

test('a word with a slash is neither a Service nor a path, if kpc.yaml names the input', async () => {
  const project = writeFolder(join(cwd, 'project'), {
    'kpc.yaml': 'file: svc.yaml\n',
    'svc.yaml': readFileSync(join(cwd, 'svc.yaml'), 'utf8'),
  });
  const problems = async (...words: readonly string[]) =>
    JSON.parse((await runKpc(['describe', ...words, '--output', 'json'], { cwd: project })).stdout).findings.at(-1);
  expect(await problems('no/such')).toMatchObject({ code: 'not-found', arguments: { isNoPath: true } });
  for (const words of [['such'], ['no/such', '-f', 'svc.yaml']])
    expect((await problems(...words)).arguments).not.toHaveProperty('isNoPath');
});

test('what many files have wrong comes before their number', async () => {
  writeFolder(cwd, {
    'many/a.yaml': 'kind: Service\nspec: [\n',
    'many/b.yaml': 'kind: Service\nspec: {\n',
    'many/c.yaml': readFileSync(join(cwd, 'svc.yaml'), 'utf8'),
  });
  const { stderr } = await runKpc(['compile', 'many'], { cwd });
  expect(stderr.match(/\[[a-z-]+\]/g)).toEqual(['[not-closed]', '[not-closed]', '[left-out]']);
  expect(stderr).toMatch(/note: 2 of 3 .*\[left-out\]/);
});

test('the mode that nobody named is said in the answer, and in no note', async () => {
  for (const words of [
    'trace svc.yaml --from pod --to svc/nginx',
    'trace svc.yaml --all nginx',
    'describe nginx -f svc.yaml',
  ]) {
    const { stdout, stderr } = await runKpc(words.split(' '), { cwd });
    expect(stdout).toContain('(nothing names a mode)');
    expect(stderr).not.toContain('[default-mode]');
    const named = await runKpc([...words.split(' '), '--proxy-mode', 'ipvs'], { cwd });
    expect(named.stdout).not.toContain('nothing names a mode');
  }
});

describe('what is meant is done', () => {
  test('--print names the mode that alone has the file, if nothing else does', async () => {
    const { status, stdout, stderr } = await runKpc(['compile', 'svc.yaml', '--print', 'nftables'], { cwd });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^table ip kube-proxy\n/);
    const named = await runKpc(['compile', 'svc.yaml', '--print', 'nftables', '--proxy-mode', 'ipvs'], { cwd });
    expect(named).toMatchObject({ status: 2, stdout: '' });
    expect(named.stderr).toMatch(/error: .*nftables\.nft .*ipvs.*\[bad-call\]/);
  });

  test.each([
    ['describe', 'svc', 'nginx'],
    ['describe', 'service', 'nginx'],
    ['describe', 'svc/nginx'],
  ])('kpc %s %s %s', async (...words) => {
    const { status, stdout } = await runKpc([...words.filter((word) => word !== undefined), '-f', 'svc.yaml'], { cwd });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Service default\/nginx /);
  });

  test('kpc describe svc: the table', async () => {
    expect((await runKpc(['describe', 'svc', '-f', 'svc.yaml'], { cwd })).stdout).toMatch(/^SERVICE /);
  });

  test('kpc help COMMAND: its help', async () => {
    const asked = await runKpc(['help', 'diff']);
    expect(asked).toEqual(await runKpc(['diff', '--help']));
  });
});

test('a mode that nobody named is said in the summary, and nowhere else', async () => {
  const compiled = await runKpc(['compile', 'svc.yaml', '-o', 'bundle'], { cwd });
  expect(compiled.stderr).toMatch(/^1 Service \(1 port\) on node worker-1, mode ipvs \(nothing names a mode\), ipv4: /);
  const described = await runKpc(['describe', 'svc.yaml'], { cwd });
  expect(described.stdout).toContain('mode ipvs (nothing names a mode), ipv4: ');
  expect(described.stderr).toBe('');
  const named = await runKpc(['describe', 'svc.yaml', '--proxy-mode', 'iptables'], { cwd });
  expect(named.stdout).toContain('mode iptables, ipv4: ');
});

test('a Service is described in one screen; --rules adds the kernel', async () => {
  const short = await runKpc(['describe', 'nginx', '-f', 'svc.yaml', '--proxy-mode', 'iptables'], { cwd });
  expect(short.stdout.split('\n').length).toBeLessThan(24);
  expect(short.stdout).not.toContain('-A KUBE-');
  const long = await runKpc(['describe', 'nginx', '-f', 'svc.yaml', '--proxy-mode', 'iptables', '--rules'], { cwd });
  expect(long.stdout).toContain('-A KUBE-SERVICES');
  // Who asks about a chain wants to see it.
  const chain = await runKpc(['describe', 'KUBE-SVC-2CMXP7HKUVJN7L6M', '-f', 'svc.yaml', '--proxy-mode', 'iptables'], {
    cwd,
  });
  expect(chain.stdout).toContain('-A KUBE-SVC-2CMXP7HKUVJN7L6M');
});

test('a kpc.yml is not taken for kpc.yaml in silence', async () => {
  const folder = writeFolder(join(cwd, 'misnamed'), { 'kpc.yml': 'proxy-mode: iptables\n', 'a.yaml': '' });
  const { stderr } = await runKpc(['describe', '../svc.yaml'], { cwd: folder });
  expect(stderr).toMatch(/note: kpc\.yml .*\[reading\]\n {2}help: .*kpc\.yaml\n/);
});

test.each([
  'trace broken.yaml --from 10.0.0.999 --to 10.96.0.1:80',
  'trace broken.yaml --from pod --to svc/web:99999',
  'trace broken.yaml --all web:70000',
  'equivalence iptables 1.99 -f broken.yaml',
  'compile broken.yaml --proxy-mode ipvs --print nftables',
  'compile broken.yaml --config iptables.yaml --print nftables',
  'diff broken.yaml --to-kubernetes-version 1.99',
  'diff missing.yaml --to-kubernetes-version 1.99',
  'migrate broken.yaml --to-kubernetes-version 1.99',
  'migrate missing.yaml --to-kubernetes-version 1.99',
  'migrate missing.yaml --from nftables --to nftables',
  'migrate missing.yaml --kubernetes-version 1.20 --to nftables',
  'compile broken.yaml --all-nodes',
  'compile broken.yaml --prune -o out',
])('kpc %s: what is wrong with the words is said alone, before anything is read', async (words) => {
  const config = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n';
  writeFolder(cwd, { 'broken.yaml': 'kind: Service\nspec: [\n', 'iptables.yaml': config });
  const { status, stderr } = await runKpc(words.split(' '), { cwd });
  expect(status).toBe(2);
  expect(stderr.match(/\[(?!not-closed)[a-z-]+\]$/gm)).toHaveLength(1);
  expect(stderr).not.toMatch(/\[not-closed\]|missing\.yaml/);
});

test('an error of the whole input comes after what may tell its cause', async () => {
  writeFolder(cwd, { 'nothing.yaml': '# no objects\n' });
  for (const command of ['compile', 'lint']) {
    const { status, stderr, stdout } = await runKpc([command, 'nothing.yaml'], { cwd });
    expect(status).toBe(2);
    expect((stdout + stderr).match(/\[[a-z-]+\]/g)).toEqual(['[empty-file]', '[no-input]']);
  }
});
