import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { runKpc } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-hostile-yaml-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const svc = readFileSync(join(fixturesFolder, 'quickstart', 'svc.yaml'), 'utf8');
const secret = 'root:$6$secret:19000\n';
const quoted = /root:|secret|19000/;

/** A folder with a secret beside a repository that holds these files. */
let count = 0;
function write(files: Readonly<Record<string, string>>, isGit = true): string {
  const repository = join(scratch, String(++count), 'repository');
  if (isGit) mkdirSync(join(repository, '.git'), { recursive: true });
  return writeFolder(repository, { 'svc.yaml': svc, '../shadow': secret, ...files });
}

test('a kpc.yaml that is a link out of the repository is refused', async () => {
  const cwd = write({ 'deep/er/x': '', 'other/kpc.yaml': 'file: svc.yaml\n' });
  symlinkSync('../shadow', join(cwd, 'kpc.yaml'));
  for (const folder of [cwd, join(cwd, 'deep/er')]) {
    const { status, stdout, stderr } = await runKpc(['compile'], { cwd: folder });
    expect(stdout + stderr).not.toMatch(quoted);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/kpc\.yaml: error: .*link .*\[bad-kpc-yaml\]/);
  }
  expect(await runKpc(['compile', '-f', 'svc.yaml', '--kpc-yaml', 'none'], { cwd })).toMatchObject({ status: 0 });
});

test('a kpc.yaml may be a link inside the repository', async () => {
  const cwd = write({ 'shared.yaml': 'file: svc.yaml\n', 'deep/svc.yaml': svc });
  symlinkSync('../shared.yaml', join(cwd, 'deep/kpc.yaml'));
  expect(await runKpc(['compile'], { cwd: join(cwd, 'deep') })).toMatchObject({ status: 0 });
});

test('a .kpcignore that is a link out of the repository is refused', async () => {
  const cwd = write({ 'manifests/svc.yaml': svc });
  symlinkSync('../../shadow', join(cwd, 'manifests/.kpcignore'));
  const { status, stderr, stdout } = await runKpc(['compile', '-f', 'manifests'], { cwd });
  expect(status).toBe(2);
  expect(stderr).toMatch(/\.kpcignore: .*link .*\[unreadable\]/);
  expect(stdout + stderr).not.toMatch(quoted);
});

test.each([
  'file: ../shadow',
  'file: [svc.yaml, ../shadow]',
  'config: ../shadow',
  'file: link',
  'config: folder/shadow',
])('%s: nothing outside the repository is read', async (line) => {
  for (const isGit of [true, false]) {
    const cwd = write({ 'kpc.yaml': `${line}\n` }, isGit);
    symlinkSync('../shadow', join(cwd, 'link'));
    symlinkSync('..', join(cwd, 'folder'));
    const { status, stdout, stderr } = await runKpc(
      ['compile', ...(line.startsWith('config') ? ['-f', 'svc.yaml'] : [])],
      {
        cwd,
      },
    );
    expect(stdout + stderr).not.toMatch(quoted);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(/kpc\.yaml:1:\d+: error: (?:file|config) .*\[bad-kpc-yaml\]/);
  }
});

test('an absolute path out of the repository is refused, one into it is read', async () => {
  const cwd = write({});
  writeFileSync(join(cwd, 'kpc.yaml'), `config: ${join(dirname(cwd), 'shadow')}\n`);
  const refused = await runKpc(['compile', '-f', 'svc.yaml'], { cwd });
  expect(refused).toMatchObject({ status: 2, stderr: expect.stringMatching(/error: config .*\[bad-kpc-yaml\]/) });
  expect(refused.stderr).not.toMatch(quoted);
  writeFileSync(join(cwd, 'kpc.yaml'), `file: ${join(cwd, 'svc.yaml')}\n`);
  expect(await runKpc(['compile'], { cwd })).toMatchObject({ status: 0 });
});

test('a path may lead to another folder of the same repository', async () => {
  const cwd = join(write({ 'deep/kpc.yaml': 'file: ../svc.yaml\n' }), 'deep');
  expect(await runKpc(['compile'], { cwd })).toMatchObject({ status: 0 });
});

test.each(['out', 'golden'])('%s of a kpc.yaml replaces no folder around it', async (flag) => {
  const cwd = write({});
  const victim = join(dirname(cwd), 'victim');
  const made = await runKpc(['compile', '-f', 'svc.yaml', `--${flag}`, victim], { cwd });
  expect(made.status).toBe(0);
  cpSync(victim, join(cwd, 'beside'), { recursive: true });
  symlinkSync('../victim', join(cwd, 'link'));
  symlinkSync('../nowhere', join(cwd, 'dangling'));
  const before = readdirSync(dirname(cwd));
  for (const path of ['../victim', victim, 'link', 'link/deeper', 'deep/../../victim', 'dangling', 'dangling/deeper']) {
    writeFileSync(join(cwd, 'kpc.yaml'), `file: svc.yaml\ncompile:\n  ${flag}: ${path}\n`);
    const run = await runKpc(['compile', '--node', 'another'], { cwd });
    expect(run.status, path).toBe(2);
    expect(run.stderr).toMatch(new RegExp(`error: ${flag} .*\\[bad-kpc-yaml\\]`));
  }
  expect(readdirSync(dirname(cwd))).toEqual(before);
  for (const name of readdirSync(victim)) {
    expect(readFileSync(join(victim, name), 'utf8')).toBe(readFileSync(join(cwd, 'beside', name), 'utf8'));
  }
});

test.each(['file', 'config', 'out', 'golden', 'check', 'host-addresses'])(
  'a null byte in %s is named',
  async (flag) => {
    const cwd = write({ 'kpc.yaml': `compile:\n  ${flag}: "a\\0b"\n` });
    const run = await runKpc(['compile', ...(flag === 'file' ? [] : ['-f', 'svc.yaml'])], { cwd });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(new RegExp(`kpc\\.yaml:2:\\d+: error: ${flag} cannot be "a`));
  },
);

test('a path that is too long is no fault of kpc', async () => {
  const cwd = write({ 'kpc.yaml': `file: ${'x'.repeat(5000)}\n` });
  const run = await runKpc(['compile'], { cwd });
  expect(run).toMatchObject({ status: 2, stderr: expect.stringContaining('ENAMETOOLONG') });
});

test.each(['out: .git/new', 'golden: .git', 'out: link/new'])('%s: nothing in .git is replaced', async (line) => {
  const cwd = write({ 'kpc.yaml': `compile:\n  file: svc.yaml\n  ${line}\n` });
  symlinkSync('.git', join(cwd, 'link'));
  const { status, stderr } = await runKpc(['compile'], { cwd });
  expect(status).toBe(2);
  expect(stderr).toMatch(/kpc\.yaml:3:\d+: error: .* \.git.* \[bad-kpc-yaml\]/);
  expect(readdirSync(join(cwd, '.git'))).toEqual([]);
});

test('no kpc.yaml hides that it hides something', async () => {
  const cwd = write(
    { 'more/evil.yaml': svc, 'kpc.yaml': 'file: svc.yaml\nexclude: [evil.yaml]\nquiet: true\n' },
    false,
  );
  const git = (...words: readonly string[]) => execFileSync('git', words, { cwd });
  git('init', '-q');
  git('add', '.');
  git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'a');
  await runKpc(['compile', '--golden', 'golden'], { cwd });
  const markdown = ['--output', 'markdown'];
  const check = await runKpc(['compile', '--check', 'golden', ...markdown], { cwd });
  expect(check.stderr).toContain('note: from kpc.yaml: --file, --exclude, --quiet\n');
  expect(check.stdout).toMatch(/^\*\*No difference\.\*\*\n[^]*\n- Flags from kpc\.yaml: --file, --exclude, --quiet\n$/);
  const diff = await runKpc(['diff', 'HEAD:svc.yaml', 'svc.yaml', ...markdown], { cwd });
  for (const file of ['kpc.yaml', 'HEAD:/kpc.yaml']) {
    expect(diff.stderr).toContain(`note: from ${file}: --exclude, --quiet\n`);
    expect(diff.stdout).toContain(`Flags from ${file}: --exclude, --quiet\n`);
  }
  expect((await runKpc(['compile', '-q', '--check', 'golden'], { cwd })).stderr).toBe('');
});
