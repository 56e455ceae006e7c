import { newestRelease } from '../../src/kube-proxy/releases.ts';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTrees } from '../../src/git/revision-paths.ts';
import { fixturesFolder } from '../support/fixtures.ts';
import { commitAll, git } from '../support/git.ts';
import { triesAll } from '../support/rounds.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder, type Files } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-revisions-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const svc = readFileSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), 'utf8');
const ready = svc.replace('ready: false', 'ready: true');
const change = 'endpoint 10.244.2.11:8080 ready (was not ready)';

let count = 0;
function repository(files: Files, link?: (folder: string) => void): string {
  const folder = writeFolder(join(scratch, String(++count)), files);
  link?.(folder);
  commitAll(folder);
  return folder;
}

const diff = (cwd: string, ...words: readonly string[]) => runKpc(['diff', ...words], { cwd });

/** Place and arguments of the findings of this code in a comparison. */
async function told(code: string, cwd: string, ...words: readonly string[]) {
  const { stdout } = await diff(cwd, '--output', 'json', ...words);
  return findingsOf(stdout, code).map(({ place, arguments: details }) => ({ file: place?.file, ...details }));
}

describe('a side of a git revision', () => {
  test('is a folder, or a file, of that revision', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc });
    writeFolder(cwd, { 'deploy/svc.yaml': ready });
    commitAll(cwd);
    for (const [from, to] of [
      ['HEAD~1:deploy/', 'deploy/'],
      ['main~1:deploy/svc.yaml', 'deploy/svc.yaml'],
      ['HEAD~1:', 'HEAD:'],
      ['HEAD~1:./deploy', 'main:deploy'],
    ] as const) {
      const { status, stdout } = await diff(cwd, from, to);
      expect({ from, status }).toEqual({ from, status: 1 });
      expect(stdout).toContain(change);
    }
    expect(await diff(cwd, 'HEAD:deploy', 'deploy')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^No difference\./) as string,
    });
    expect(git(cwd, 'status', '--porcelain')).toBe('');
  });

  test('is all of the revision if it names no path: a kustomization there leads to the folders beside it', async () => {
    const cwd = repository({
      'base/svc.yaml': svc,
      'base/kustomization.yaml': 'resources: [svc.yaml]\n',
      'prod/kustomization.yaml': 'resources: [../base]\n',
    });
    for (const side of ['HEAD:', 'HEAD:.', '.'])
      expect((await runKpc(['lint', '-f', side], { cwd })).stdout).not.toContain('incomplete-kustomization');
  });

  test('counts from the top, or with "./" from the working folder', async () => {
    const cwd = repository({ 'infra/svc.yaml': svc, 'infra/other/svc.yaml': svc });
    writeFolder(cwd, { 'infra/svc.yaml': ready });
    const infra = join(cwd, 'infra');
    for (const from of ['HEAD:infra/svc.yaml', 'HEAD:./svc.yaml', 'HEAD:./other/../svc.yaml']) {
      expect((await diff(infra, from, 'svc.yaml')).stdout).toContain(change);
    }
    expect((await diff(join(infra, 'other'), 'HEAD:../svc.yaml', '../svc.yaml')).stdout).toContain(change);
    expect(await diff(infra, 'HEAD:svc.yaml', 'svc.yaml')).toMatchObject({ status: 2 });
    expect(await told('unreadable-file', infra, 'HEAD:svc.yaml', 'svc.yaml')).toMatchObject([
      { file: 'HEAD:svc.yaml', reason: { problem: 'not-in-revision', revision: 'HEAD', here: 'HEAD:./svc.yaml' } },
    ]);
  });

  test('is named with its revision in messages', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc.replace('port: 80', 'port: 0') });
    writeFolder(cwd, { 'deploy/svc.yaml': svc });
    const { status, stderr } = await diff(cwd, 'main:deploy', 'deploy');
    expect(status).toBe(2);
    expect(stderr).toMatch(/^main:deploy\/svc\.yaml:\d+:\d+: error: /m);
  });

  test('is a golden, a bundle, a pack, a dump or the bundle of a node among many', async () => {
    const cwd = writeFolder(join(scratch, String(++count)), { 'svc.yaml': svc });
    const common = ['compile', '-f', 'svc.yaml', '--proxy-mode', 'iptables', '-q'];
    await runKpc([...common, '--golden', 'golden'], { cwd });
    await runKpc([...common, '-o', 'bundle'], { cwd });
    await runKpc([...common, '--all-nodes', '-o', 'fleet'], { cwd });
    await runKpc(['bundle', 'pack', 'bundle', '-o', 'node.tgz'], { cwd });
    const { stdout: rules } = await runKpc([...common, '--print', 'iptables'], { cwd });
    writeFolder(cwd, { 'dump/iptables-save': rules });
    commitAll(cwd);
    writeFolder(cwd, { 'svc.yaml': ready });
    for (const side of ['golden', 'bundle', 'node.tgz', 'fleet/worker-1']) {
      const { status, stdout, stderr } = await diff(cwd, `HEAD:${side}`, 'svc.yaml');
      expect({ side, status, stderr }).toMatchObject({ side, status: 1 });
      expect(stdout).toContain(change);
    }
    expect(await diff(cwd, 'HEAD:fleet', 'HEAD:bundle', '--node', 'worker-1')).toMatchObject({ status: 0 });
    const { stderr } = await diff(cwd, 'HEAD:dump', 'svc.yaml');
    expect(stderr).toContain('HEAD:dump: a dump');
  });

  test('follows the kpc.yaml of its revision, and reads what that names there', async () => {
    const config = (cidr: string) =>
      `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclusterCIDR: ${cidr}\n`;
    const cwd = repository({
      'deploy/svc.yaml': svc,
      'kpc.yaml': 'proxy-mode: iptables\nconfig: cluster/proxy.yaml\n',
      'cluster/proxy.yaml': config('10.244.0.0/16'),
    });
    writeFolder(cwd, {
      'kpc.yaml': 'proxy-mode: nftables\nconfig: cluster/proxy.yaml\n',
      'cluster/proxy.yaml': config('10.200.0.0/16'),
    });
    const made = (mode: string) => ({ as: 'manifests', grounds: { node: 'worker-1', mode } });
    expect(await told('reading', cwd, 'main:deploy', 'deploy')).toMatchObject([
      { name: 'main:deploy', what: made('iptables') },
      { name: 'deploy', what: made('nftables') },
    ]);
    // A flag on the command line is for both.
    const both = await diff(cwd, 'main:deploy', 'deploy', '--proxy-mode', 'ipvs', '--output', 'json');
    expect(both.stderr).toMatch(/manifests, .* worker-1, mode ipvs/);
    expect(both.stdout).toContain('10.200.0.0/16');
    expect(both.stdout).toContain('10.244.0.0/16');
    // Whatever the working folder has.
    rmSync(join(cwd, 'kpc.yaml'));
    expect(await told('reading', cwd, 'main:deploy', 'deploy')).toMatchObject([
      { name: 'main:deploy', what: made('iptables') },
      { name: 'deploy', what: made('ipvs') },
    ]);
    // One that is wrong is reported as every file.
    writeFolder(cwd, { 'kpc.yaml': 'proxy-mod: ipvs\n' });
    commitAll(cwd);
    rmSync(join(cwd, 'kpc.yaml'));
    const wrong = await diff(cwd, 'HEAD:deploy', 'deploy');
    expect(wrong).toMatchObject({ status: 2, stdout: '' });
    expect(wrong.stderr).toMatch(/^HEAD:\/kpc\.yaml:1:1: error: .* --proxy-mod \[bad-kpc-yaml\]$/m);
  });

  test('takes nothing of the kpc.yaml in the working folder beside its own', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc, 'kpc.yaml': 'lint: { ignore: [] }\n' });
    writeFolder(cwd, { 'kpc.yaml': "proxy-mode: nftables\nkubernetes-version: '1.36'\n" });
    const { status, stdout } = await diff(cwd, 'main:deploy', 'deploy', '--output', 'json');
    expect(status).toBe(1);
    const { snapshots } = JSON.parse(stdout) as { snapshots: readonly { mode: string; release: string }[] };
    expect(snapshots.map(({ mode, release }) => [mode, release])).toEqual([
      ['ipvs', newestRelease],
      ['nftables', '1.36'],
    ]);
  });

  test('does so as a side of kpc equivalence, too, without the files of its -f', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc, 'kpc.yaml': 'proxy-mode: iptables\nfile: deploy/svc.yaml\n' });
    writeFolder(cwd, { 'kpc.yaml': 'proxy-mode: nftables\n' });
    const { stdout, stderr } = await runKpc(['equivalence', 'main:deploy', 'deploy', '--output', 'json'], { cwd });
    expect(stdout, stderr).not.toBe('');
    const { snapshots } = JSON.parse(stdout) as { snapshots: readonly { mode: string }[] };
    expect(new Set(snapshots.map(({ mode }) => mode))).toEqual(new Set(['iptables', 'nftables']));
  });

  test('leaves out what --exclude and the .kpcignore of its revision name', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc, 'deploy/old.yaml': svc, '.kpcignore': 'old.yaml\n' });
    rmSync(join(cwd, '.kpcignore'));
    expect(await diff(cwd, 'HEAD:deploy', 'deploy/svc.yaml')).toMatchObject({ status: 0 });
    expect(await diff(cwd, 'HEAD:deploy', 'deploy', '--exclude', 'deploy/old.yaml')).toMatchObject({ status: 0 });
  });
});

describe('what only one side has', () => {
  let cwd: string;
  beforeAll(() => {
    cwd = repository({ 'deploy/svc.yaml': svc });
    writeFolder(cwd, { 'new/svc.yaml': svc.replace('web', 'api'), 'empty/README': '' });
    commitAll(cwd);
  });

  test.each([
    ['HEAD~1:new', 'HEAD:new', ['service-added']],
    ['HEAD:new', 'HEAD~1:new', ['service-removed']],
    ['HEAD~1:new/svc.yaml', 'new/svc.yaml', ['service-added']],
    ['empty', 'deploy', ['service-added']],
    ['HEAD:deploy', 'HEAD:empty', ['service-removed']],
  ])('%s → %s', async (from, to, kinds) => {
    const { status, stdout } = await diff(cwd, from, to, '--output', 'json');
    const { servicePorts } = resultOf(stdout) as { servicePorts: readonly { reasons: readonly { kind: string }[] }[] };
    expect({ status, kinds: servicePorts.flatMap(({ reasons: [first] }) => first?.kind) }).toEqual({
      status: 1,
      kinds,
    });
    expect(findingsOf(stdout, 'reading')).toContainEqual(
      expect.objectContaining({ arguments: expect.objectContaining({ problem: 'empty-side' }) as unknown }),
    );
    for (const output of ['text', 'markdown', 'github', 'gitlab', 'sarif', 'junit']) {
      const said = await diff(cwd, from, to, '--output', output);
      expect(said.stdout.match(/taken as an empty side/g), output).toHaveLength(1);
    }
    // A command for a side that is not there would fail.
    expect(stdout).not.toMatch(/kpc trace (HEAD~1:new|HEAD:empty|empty)/);
  });

  test.each([
    ['HEAD~1:newer', 'HEAD:newer'],
    ['HEAD~1:newer', 'HEAD:new'],
    ['nowhere:new', 'HEAD:new'],
    ['empty', 'HEAD:empty'],
  ])('a wrong path stays an error: %s → %s', async (from, to) => {
    expect(await diff(cwd, from, to)).toMatchObject({ status: 2, stdout: '' });
  });
});

test('a link of a folder to another folder of the revision is followed, and its target may be named too', async () => {
  const nodes = '{ apiVersion: v1, kind: Node, metadata: { name: w1 }, spec: { podCIDRs: [10.244.1.0/24] } }\n';
  const cwd = repository({ 'deploy/svc.yaml': svc, 'common/nodes.yaml': nodes });
  symlinkSync('../common/nodes.yaml', join(cwd, 'deploy/nodes.yaml'));
  commitAll(cwd);
  const { stdout } = await runKpc(['describe', 'HEAD:deploy', '--node', 'w1', '--output', 'json'], { cwd });
  expect(JSON.parse(stdout)).toMatchObject({ snapshots: [{ node: 'w1' }] });
  expect(await diff(cwd, 'HEAD:deploy', 'deploy')).toMatchObject({ status: 2 });
  expect(await diff(cwd, 'HEAD:deploy', 'deploy', '-f', 'common/nodes.yaml')).toMatchObject({ status: 0 });
});

describe('what is no side', () => {
  let plain: string;
  beforeAll(() => {
    plain = repository({ 'deploy/svc.yaml': svc });
  });

  test.each([
    ['nowhere:deploy', 'unreadable-file', { problem: 'no-revision', revision: 'nowhere' }],
    ['main', 'unreadable-file', { problem: 'whole-revision', revision: 'main' }],
    ['HEAD', 'unreadable-file', { problem: 'whole-revision', revision: 'HEAD' }],
    ['nowhere', 'unreadable-file', { problem: 'missing' }],
    ['main:nothing', 'unreadable-file', { reason: { problem: 'not-in-revision', revision: 'main' } }],
    ['main:../outside', 'unreadable-file', { problem: 'unread', reason: 'outside' }],
    ['--upload-pack=x:deploy', 'bad-call', { problem: 'usage' }],
    ['-p:deploy', 'bad-call', { problem: 'usage' }],
    ['main\u0007:deploy', 'unreadable-file', { problem: 'no-revision', revision: 'main\u0007' }],
  ])('%j', async (side, code, why) => {
    const { status, stderr, stdout } = await diff(plain, side, 'deploy');
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).not.toContain('\u0007');
    expect(await told(code, plain, side, 'deploy')).toMatchObject([why]);
  });

  test('an option is not handed to git behind "--" either', async () => {
    const { status, stderr } = await diff(plain, '--', '--git-dir=x:deploy', 'deploy');
    expect({ status, stderr }).toMatchObject({ status: 2 });
    expect(stderr).toMatch(/error: .*"--git-dir=x".*\[unreadable-file\]/);
  });

  test('a branch that only the remote has is proposed', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc });
    git(cwd, 'update-ref', 'refs/remotes/origin/release', 'HEAD');
    expect(await told('unreadable-file', cwd, 'release:deploy', 'deploy')).toEqual([
      { file: 'release:deploy', problem: 'no-revision', revision: 'release', near: 'origin/release' },
    ]);
  });

  test('there is no repository, or no git', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'kpc-no-repository-'));
    try {
      writeFolder(cwd, { 'svc.yaml': svc });
      expect(await diff(cwd, 'main:.', 'svc.yaml')).toMatchObject({ status: 2 });
      expect(await told('unreadable-file', cwd, 'main:.', 'svc.yaml')).toMatchObject([
        {
          file: 'main:.',
          problem: 'no-repository',
          why: { problem: 'failed', said: expect.stringMatching(/^not a git repository/) },
        },
      ]);
      const lacking = await runKpc(['diff', 'main:.', 'svc.yaml', '--output', 'json'], { cwd, env: { PATH: cwd } });
      expect(findingsOf(lacking.stdout, 'unreadable-file')).toMatchObject([{ arguments: { problem: 'no-git' } }]);
    } finally {
      rmSync(cwd, { recursive: true });
    }
  });

  test('a file of that name is a file', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc, 'HEAD:deploy/svc.yaml': ready });
    expect((await diff(cwd, 'deploy', 'HEAD:deploy')).stdout).toContain(change);
  });
});

describe('kpc describe', () => {
  test('takes a folder of a revision, beside a subject or alone', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc });
    rmSync(join(cwd, 'deploy'), { recursive: true });
    for (const words of [['HEAD:deploy'], ['HEAD:deploy', 'nginx'], ['nginx', 'HEAD:deploy']]) {
      const { status, stdout } = await runKpc(['describe', ...words], { cwd });
      expect({ words, status }).toEqual({ words, status: 0 });
      expect(stdout).toContain('default/nginx');
    }
  });

  test('reads other words with a colon as a subject', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc });
    for (const subject of ['10.96.0.80:80', 'HEAD:nothing', 'nginx:http'])
      expect(await runKpc(['describe', subject], { cwd })).toMatchObject({ status: 2 });
    expect(await runKpc(['describe', '10.96.0.80:80', 'deploy'], { cwd })).toMatchObject({ status: 0 });
  });
});

describe('a hostile repository', () => {
  test('has links followed inside the revision, and nowhere else', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc, '../secret.yaml': ready, 'real/more.yaml': '' }, (folder) => {
      symlinkSync('deploy', join(folder, 'current'));
      symlinkSync('svc.yaml', join(folder, 'deploy/again.yaml'));
      symlinkSync('../../secret.yaml', join(folder, 'deploy/out.yaml'));
      symlinkSync('/etc/passwd', join(folder, 'deploy/passwd.yaml'));
      symlinkSync('loop.yaml', join(folder, 'loop.yaml'));
      symlinkSync('../secret.yaml', join(folder, 'out.yaml'));
    });
    const inside = await diff(cwd, 'HEAD:current/svc.yaml', 'deploy/svc.yaml');
    expect(inside).toMatchObject({ status: 0 });
    const folder = await diff(cwd, 'HEAD:current', 'deploy/svc.yaml');
    const outside = { problem: 'link-outside', folder: 'HEAD:current' };
    expect(await told('unreadable-file', cwd, 'HEAD:current', 'deploy/svc.yaml')).toEqual([
      { file: 'HEAD:current/out.yaml', ...outside },
      { file: 'HEAD:current/passwd.yaml', ...outside },
    ]);
    expect(folder.stdout + folder.stderr).not.toContain('root:');
    expect(await diff(cwd, 'HEAD:loop.yaml', 'deploy/svc.yaml')).toMatchObject({ status: 2 });
    expect(await told('unreadable-file', cwd, 'HEAD:loop.yaml', 'deploy/svc.yaml')).toEqual([
      { file: 'HEAD:loop.yaml', problem: 'unread', reason: 'link-loop' },
    ]);
    expect(await told('unreadable-file', cwd, 'HEAD:out.yaml', 'deploy/svc.yaml')).toEqual([
      { file: 'HEAD:out.yaml', problem: 'unread', reason: 'outside' },
    ]);
  });

  test('runs nothing: no hook, filter, monitor, alias, pager, diff driver or fetch', async () => {
    const cwd = repository({
      'deploy/svc.yaml': svc,
      '.gitattributes': '*.yaml filter=evil diff=evil\n',
      'deploy/lacking.yaml': ready,
    });
    const ran = join(cwd, 'ran');
    const evil = `touch ${ran}`;
    const hooks = ['post-checkout', 'post-index-change', 'pre-auto-gc', 'reference-transaction'];
    for (const hook of hooks) writeFileSync(join(cwd, '.git/hooks', hook), `#!/bin/sh\n${evil}\n`, { mode: 0o755 });
    const lacking = git(cwd, 'rev-parse', 'HEAD:deploy/lacking.yaml').trim();
    rmSync(join(cwd, '.git/objects', lacking.slice(0, 2), lacking.slice(2)));
    for (const [name, value] of [
      ['core.fsmonitor', evil],
      ['core.pager', evil],
      ['core.sshCommand', evil],
      ['core.hooksPath', join(cwd, '.git/hooks')],
      ['core.gitProxy', evil],
      ['filter.evil.smudge', evil],
      ['filter.evil.clean', evil],
      ['diff.evil.textconv', evil],
      ['diff.external', evil],
      ['alias.ls-tree', `!${evil}`],
      ['alias.cat-file', `!${evil}`],
      ['protocol.ext.allow', 'always'],
      ['protocol.file.allow', 'always'],
      ['remote.origin.url', `ext::sh -c ${evil.replaceAll(' ', '% ')}`],
      ['remote.origin.uploadpack', evil],
      ['remote.origin.promisor', 'true'],
      ['extensions.partialClone', 'origin'],
    ] as const) {
      git(cwd, 'config', name, value);
    }
    git(cwd, 'config', 'core.repositoryFormatVersion', '1');
    const { status, stderr } = await diff(cwd, 'HEAD:deploy', 'deploy/svc.yaml');
    expect(status).toBe(2);
    expect(stderr).toMatch(/HEAD:deploy.* error: /);
    expect(await diff(cwd, 'HEAD:deploy/svc.yaml', 'deploy/svc.yaml')).toMatchObject({ status: 0 });
    expect(existsSync(ran)).toBe(false);
  });

  test.runIf(triesAll).each([
    ['few folders stand for very many', 8, 10],
    ['folders lie too deep in each other', 300, 1],
  ])('is refused where %s', async (_, levels, width) => {
    const cwd = repository({ 'svc.yaml': svc });
    let tree = git(cwd, 'rev-parse', 'HEAD^{tree}').trim();
    const trees = Array.from({ length: levels }, () => {
      const names = Array.from({ length: width }, (__, i) => `folder-of-some-length-${i}`);
      const entries = names.map((name) => `040000 tree ${tree}\t${name}\n`).join('');
      const bytes = names.flatMap((name) => [Buffer.from(`40000 ${name}\0`), Buffer.from(tree, 'hex')]);
      const length = bytes.reduce((sum, part) => sum + part.length, 0);
      tree = createHash('sha1')
        .update(Buffer.concat([Buffer.from(`tree ${length}\0`), ...bytes]))
        .digest('hex');
      return entries;
    });
    execFileSync('git', ['mktree', '--batch', '--missing'], { cwd, input: trees.join('\n') });
    const commit = git(cwd, 'commit-tree', tree, '-m', 'many').trim();
    const { status, stderr } = await diff(cwd, 'HEAD:.', `${commit}:.`);
    expect(status).toBe(2);
    expect(stderr).toMatch(/git prints more than kpc reads|git took too long/);
    expect(stderr).not.toContain('bug in kpc');
  });

  test('may hold a bare repository, which is not asked', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc });
    const bare = join(cwd, 'bare');
    mkdirSync(bare);
    git(bare, 'init', '--quiet', '--bare');
    expect(await told('unreadable-file', bare, 'HEAD:deploy', '../deploy')).toMatchObject([
      { file: 'HEAD:deploy', problem: 'no-repository', why: { problem: 'failed' } },
    ]);
  });

  test('may hold submodules and odd names', async () => {
    const cwd = repository({ 'deploy/svc.yaml': svc, 'deploy/\u001b[31m\n.yaml': '# no objects\n', 'a/b': '' });
    const commit = git(cwd, 'rev-parse', 'HEAD').trim();
    git(cwd, 'update-index', '--add', '--cacheinfo', `160000,${commit},deploy/sub.yaml`);
    git(cwd, 'commit', '--quiet', '--message', 'a submodule');
    const { status, stderr } = await diff(cwd, 'HEAD:deploy', 'deploy/svc.yaml');
    expect(status).toBe(2);
    expect(stderr).not.toContain('\u001b');
    expect(await told('unreadable-file', cwd, 'HEAD:deploy', 'deploy/svc.yaml')).toEqual([
      { file: 'HEAD:deploy/sub.yaml', problem: 'unread', reason: { problem: 'kind', is: 'submodule' } },
    ]);
  });
});

test('the files of a folder are read by a few calls of git, however many they are', async () => {
  const files = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`deploy/${i}.yaml`, `# ${i}\n`]));
  const cwd = repository(files, (folder) => {
    for (let i = 0; i < 30; i++) symlinkSync(`${i}.yaml`, join(folder, `deploy/link-${i}.yaml`));
  });
  const trace = join(scratch, 'git-trace');
  process.env['GIT_TRACE'] = trace;
  const before = process.cwd();
  process.chdir(cwd);
  try {
    const { trees } = await openTrees(['HEAD:deploy']);
    const tree = trees.get('HEAD:deploy');
    const paths = tree?.list('HEAD:deploy').map(({ name }) => tree.join('HEAD:deploy', name)) ?? [];
    expect(paths).toHaveLength(90);
    tree?.expect(paths);
    expect(tree?.read('HEAD:deploy/link-7.yaml').toString()).toBe('# 7\n');
    expect(tree?.realPath('HEAD:deploy/link-7.yaml')).toBe('HEAD:/deploy/7.yaml');
    expect(() => tree?.read('HEAD:deploy/1.yaml', 2)).toThrow('"of":"file","most":2');
  } finally {
    process.chdir(before);
    delete process.env['GIT_TRACE'];
  }
  const calls = readFileSync(trace, 'utf8').match(/trace: built-in: git/g) ?? [];
  expect(calls.length).toBeLessThan(10);
});
