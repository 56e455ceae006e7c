import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { applyPatch, parsePatch } from 'diff';
import { afterAll, describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { kpcProgram, runKpc, runProgram } from '../support/run-kpc.ts';
import { findingsOf, resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-compile-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const quickstart = join(fixturesFolder, 'quickstart');
const svc = join(quickstart, 'svc.yaml');
const expected = readFolder(join(quickstart, 'expected-ipvs'));

/** A new folder's path: nothing is there yet. */
let folders = 0;
const freshPath = () => join(scratch, String(++folders));

function readFolder(folder: string): Readonly<Record<string, string>> {
  return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}

/** Writes quickstart's manifest with something changed in it. */
function writeChanged(from: string | RegExp, to: string): string {
  const before = readFileSync(svc, 'utf8');
  const after = before.replace(from, to);
  expect(after).not.toBe(before);
  const file = `${freshPath()}.yaml`;
  writeFileSync(file, after);
  return file;
}

describe('where the result goes', () => {
  test('to stdout, each file under a heading, when nothing else is asked for', async () => {
    const { status, stdout } = await runKpc(['compile', '-f', svc]);
    expect(status).toBe(0);
    const files = stdout.split(/^==> (\S+): .* <==\n/m).slice(1);
    const shown = Object.fromEntries(
      files.flatMap((name, i) => (i % 2 === 0 ? [[name, (files[i + 1] ?? '').replace(/\n\n$/, '\n')]] : [])),
    );
    expect(shown).toEqual(expected);
  });

  test('one file to stdout with --print', async () => {
    const names = { ipvsadm: 'ipvsadm.restore', ip: 'ip.batch', manifest: 'manifest.json', modules: 'modules.conf' };
    for (const [name, file] of Object.entries(names)) {
      expect(await runKpc(['compile', '-f', svc, '--proxy-mode', 'ipvs', '--print', name])).toEqual({
        status: 0,
        stdout: expected[file],
        stderr: '',
      });
    }
  });

  test('--print of a file that the mode does not have is an error', async () => {
    const run = await runKpc(['compile', '-f', svc, '--proxy-mode', 'iptables', '--print', 'ipvsadm']);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr.match(/\[[a-z-]+\]/g)).toEqual(['[bad-call]']);
  });

  test('to a folder with -o, whose parents are made', async () => {
    const out = join(freshPath(), 'nodes', 'worker-1');
    const { status, stdout, stderr } = await runKpc(['compile', '-f', svc, '--proxy-mode', 'ipvs', '-o', out]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
    expect(stderr).toMatch(/^1 Service \(1 port\) on node worker-1, mode ipvs, ipv4: .*\nWritten to .*\n$/);
    expect(readFolder(out)).toEqual(expected);
  });

  test('-o, --print and --check exclude each other', async () => {
    for (const pair of [
      ['-o', 'x', '--print', 'ip'],
      ['-o', 'x', '--check', 'x'],
      ['--print', 'ip', '--check', 'x'],
    ]) {
      const run = await runKpc(['compile', '-f', svc, ...pair], { cwd: scratch });
      expect(run).toMatchObject({ status: 2, stdout: '' });
      expect(run.stderr.match(/\[[a-z-]+\]/g)).toEqual(['[bad-call]']);
    }
  });

  test('all of a large result passes through a pipe', async () => {
    const many = Array.from({ length: 300 }, (_, i) => {
      const spec = { clusterIP: `10.97.${i >> 8}.${i & 255}`, ports: [{ port: 80 }] };
      return JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name: `s-${i}` }, spec });
    });
    const { status, stdout } = await runKpc(['compile', '-f', '-', '--print', 'services'], {
      stdin: many.join('\n---\n'),
    });
    expect(status).toBe(0);
    expect(JSON.parse(stdout).services).toHaveLength(300);
  });

  test('a reader that leaves early is no error', async () => {
    const run = await runProgram('sh', [
      '-c',
      '"$0" "$1" compile -f "$2" | head -n 1',
      process.execPath,
      kpcProgram,
      svc,
    ]);
    expect(run.stdout).toMatch(/^==> ipvsadm\.restore/);
    expect(run.stderr).not.toMatch(/EPIPE|at /);
  });

  test('neither is one that leaves before all was written', async () => {
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' } };
    const spec = {
      clusterIP: '10.97.0.1',
      ports: Array.from({ length: 5000 }, (_, i) => ({ port: i + 1, name: `p-${i}` })),
    };
    const script = '"$0" "$1" compile -f - --print ipvsadm | head -n 1; echo "${PIPESTATUS[0]}"';
    const run = await runProgram('bash', ['-c', script, process.execPath, kpcProgram], {
      stdin: JSON.stringify({ ...service, spec }),
    });
    expect(run.stdout).toBe('-A -t 10.97.0.1:1 -s rr\n0\n');
    expect(run.stderr).not.toMatch(/EPIPE|\bat /);
  });

  test.runIf(existsSync('/dev/full'))(
    'a full disk under stdout is said in a line, with a status of its own',
    async () => {
      const script = '"$0" "$1" compile -f "$2" --proxy-mode ipvs --print manifest >/dev/full';
      const run = await runProgram('sh', ['-c', script, process.execPath, kpcProgram, svc]);
      expect(run).toEqual({ status: 2, stdout: '', stderr: expect.stringMatching(/^error: ENOSPC[^\n]*\n$/) });
    },
  );
});

describe('-o replaces a folder as a whole or not at all', () => {
  test('files of the bundle before are gone', async () => {
    const out = freshPath();
    await runKpc(['compile', '-f', svc, '-o', out]);
    const { status } = await runKpc(['compile', '-f', svc, '--proxy-mode', 'iptables', '-o', out]);
    expect(status).toBe(0);
    expect(readFolder(out)).toEqual(readFolder(join(quickstart, 'expected-iptables')));
  });

  test('bad input leaves it as it was', async () => {
    const out = freshPath();
    await runKpc(['compile', '-f', svc, '-o', out]);
    const run = await runKpc(['compile', '-f', writeChanged('port: 80', 'port: 80000'), '-o', out]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(readFolder(out)).toEqual(expected);
  });

  test('a folder with other files is left alone', async () => {
    const out = freshPath();
    mkdirSync(out);
    writeFileSync(join(out, 'thesis.txt'), 'ten years of work\n');
    const run = await runKpc(['compile', '-f', svc, '-o', out]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain('thesis.txt');
    expect(readFolder(out)).toEqual({ 'thesis.txt': 'ten years of work\n' });
  });

  test('a link goes on pointing where it did', async () => {
    const [real, link] = [freshPath(), freshPath()];
    await runKpc(['compile', '-f', svc, '--proxy-mode', 'iptables', '-o', real]);
    symlinkSync(real, link);
    expect(await runKpc(['compile', '-f', svc, '-o', link])).toMatchObject({ status: 0 });
    expect(readFolder(real)).toEqual(expected);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
  });

  test('what cannot be written says why, and leaves nothing behind', async () => {
    const parent = freshPath();
    mkdirSync(parent);
    writeFileSync(join(parent, 'file'), '');
    const run = await runKpc(['compile', '-f', svc, '--proxy-mode', 'ipvs', '-o', join(parent, 'file', 'bundle')]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: cannot write .*\n$/);
    expect(readFolder(parent)).toEqual({ file: '' });
  });

  test('nothing but the folder is left beside it', async () => {
    const parent = freshPath();
    await runKpc(['compile', '-f', svc, '-o', join(parent, 'bundle')]);
    await runKpc(['compile', '-f', svc, '-o', join(parent, 'bundle')]);
    expect(readdirSync(parent)).toEqual(['bundle']);
  });
});

describe('--check', () => {
  test('exits 0 where nothing differs, and says what a bundle does not record', async () => {
    const run = await runKpc(['compile', '-f', svc, '--check', join(quickstart, 'expected-ipvs')]);
    const stderr = expect.stringContaining('default/nginx') as string;
    expect(run).toMatchObject({ status: 0, stdout: '', stderr });
  });

  test('prints a unified diff from the folder to the fresh bundle and exits 1', async () => {
    const out = freshPath();
    await runKpc(['compile', '-f', svc, '-o', out]);
    const before = readFolder(out);
    const changed = writeChanged('targetPort: 8080', 'targetPort: 8080\n      protocol: UDP');
    const { status, stdout, stderr } = await runKpc(['compile', '-f', changed, '--check', out]);
    expect(status).toBe(1);
    expect(stderr).toContain('differs in');
    expect(readFolder(out)).toEqual(before);
    const fresh = freshPath();
    await runKpc(['compile', '-f', changed, '-o', fresh]);
    expect(applyAll(before, stdout, out)).toEqual(readFolder(fresh));
  });

  test('shows files that one side does not have', async () => {
    const { status, stdout } = await runKpc(
      ['compile', '-f', 'svc.yaml', '--proxy-mode', 'iptables', '--check', 'expected-ipvs'],
      { cwd: quickstart },
    );
    expect(status).toBe(1);
    expect(stdout).toMatch(/^--- a\/expected-ipvs\/ipvsadm\.restore\n\+\+\+ \/dev\/null$/m);
  });

  test('names what is in the folder and of no bundle', async () => {
    const out = freshPath();
    await runKpc(['compile', '-f', svc, '-o', out]);
    writeFileSync(join(out, 'notes.txt'), '');
    const run = await runKpc(['compile', '-f', svc, '--check', out]);
    expect(run).toMatchObject({ status: 1, stdout: `Only in ${out}: notes.txt\n` });
    const { stdout } = await runKpc(['compile', '-f', svc, '--check', out, '--output', 'json']);
    expect(resultOf(stdout)).toMatchObject({ same: false, files: ['notes.txt'] });
  });

  test('a folder that is not there is an error, not a difference', async () => {
    const run = await runKpc(['compile', '-f', svc, '--check', join(scratch, 'nowhere')]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/error: --check .*nowhere.* \[nothing-to-check\]\n {2}help: .* -o /);
  });
});

/** Applies the patches of a unified diff, as patch(1) would, to the files of a folder. */
function applyAll(
  files: Readonly<Record<string, string>>,
  patches: string,
  folder: string,
): Readonly<Record<string, string | false>> {
  const patched = parsePatch(patches).map((patch): [string, string | false] => {
    const name = (patch.newFileName ?? '').replace(`b${folder}/`, '');
    return [name, applyPatch(files[name] ?? '', patch)];
  });
  return { ...files, ...Object.fromEntries(patched) };
}

describe('input', () => {
  test('from stdin', async () => {
    const run = await runKpc(['compile', '-f', '-', '--proxy-mode', 'ipvs', '--print', 'ipvsadm'], {
      stdin: readFileSync(svc, 'utf8'),
    });
    expect(run).toEqual({ status: 0, stdout: expected['ipvsadm.restore'], stderr: '' });
  });

  test('from files, folders and stdin together', async () => {
    const [service = '', slice = '', node = ''] = readFileSync(svc, 'utf8').split(/^---$/m);
    const folder = freshPath();
    mkdirSync(folder);
    writeFileSync(join(folder, 'slice.yaml'), slice);
    const file = `${freshPath()}.yml`;
    writeFileSync(file, node);
    const run = await runKpc(
      ['compile', '-f', folder, '-f', '-', '-f', file, '--proxy-mode', 'ipvs', '--print', 'ipvsadm'],
      {
        stdin: service,
      },
    );
    expect(run).toEqual({ status: 0, stdout: expected['ipvsadm.restore'], stderr: '' });
  });

  test('of a folder as Kubernetes mounts a ConfigMap: each file once, through its links', async () => {
    const folder = freshPath();
    mkdirSync(join(folder, '..2026_11_21'), { recursive: true });
    writeFileSync(join(folder, '..2026_11_21', 'svc.yaml'), readFileSync(svc, 'utf8'));
    symlinkSync('..2026_11_21', join(folder, '..data'));
    symlinkSync(join('..data', 'svc.yaml'), join(folder, 'svc.yaml'));
    const run = await runKpc(['compile', '-f', folder, '--proxy-mode', 'ipvs', '--print', 'ipvsadm']);
    expect(run).toEqual({ status: 0, stdout: expected['ipvsadm.restore'], stderr: '' });
  });

  test('is not read through a link that leads out of its folder', async () => {
    const folder = freshPath();
    mkdirSync(folder);
    writeFileSync(`${folder}-secret`, 'not for all\n');
    symlinkSync(`${folder}-secret`, join(folder, 'a.yaml'));
    const run = await runKpc(['compile', '-f', folder, '-f', svc]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    const { stdout } = await runKpc(['compile', '-f', folder, '-f', svc, '--output', 'json']);
    expect(findingsOf(stdout, 'unreadable-file')).toMatchObject([
      { arguments: { problem: 'link-outside', folder }, place: { file: join(folder, 'a.yaml') } },
    ]);
    expect(run.stderr).not.toContain('not for all');
  });

  test('is read behind a link out of its folder if that is named, too, as the help says; a broken link is named so', async () => {
    const folder = freshPath();
    mkdirSync(folder);
    symlinkSync(svc, join(folder, 'a.yaml'));
    const args = ['compile', '-f', folder, '--proxy-mode', 'ipvs', '--print', 'ipvsadm'];
    expect((await runKpc(args)).stderr).toMatch(/\[unreadable-file\]\n {2}help: .* -f /);
    const whole = { status: 0, stdout: expected['ipvsadm.restore'], stderr: '' };
    expect(await runKpc([...args, '-f', svc])).toEqual(whole);
    expect(await runKpc([...args, '-f', svc, '--exclude', 'a.yaml'])).toMatchObject({ status: 0 });
    symlinkSync('nowhere.yaml', join(folder, 'b.yaml'));
    const broken = await runKpc([...args, '-f', svc]);
    expect(broken.stderr).toMatch(/b\.yaml: error: .*\[unreadable-file\]/);
    const { stdout } = await runKpc(['compile', '-f', folder, '-f', svc, '--output', 'json']);
    expect(findingsOf(stdout, 'unreadable-file')).toMatchObject([
      { arguments: { problem: 'broken-link' }, place: { file: join(folder, 'b.yaml') } },
    ]);
  });

  test('twice is to be left out by a pattern of which no help is empty', async () => {
    const folder = freshPath();
    for (const name of ['a', 'b b']) {
      mkdirSync(join(folder, name), { recursive: true });
      writeFileSync(join(folder, name, 'svc.yaml'), readFileSync(svc, 'utf8'));
    }
    const run = await runKpc(['compile', '-f', folder]);
    expect(run.stderr).toMatch(/\[duplicate-object\](?:\n.*)*\n {2}help: .*--exclude PATTERN\n/);
  });

  test('of many other kinds is ignored, and the note counts objects and kinds', async () => {
    const others = Array.from({ length: 7 }, (_, i) => `---\napiVersion: example.com/v1\nkind: Kind${i}\n`);
    const stdin = `${readFileSync(svc, 'utf8')}${others.join('')}${others.join('')}`;
    const run = await runKpc(['compile', '-f', '-', '--proxy-mode', 'ipvs', '--print', 'ipvsadm'], { stdin });
    expect(run.stderr).toContain('2 Kind4s, and 4 objects of 2 other kinds [skipped-kinds]');
  });

  test('from stdin is bytes, not whatever they could mean', async () => {
    const run = await runProgram('sh', [
      '-c',
      'printf "a: \\377" | "$0" "$1" compile -f -',
      process.execPath,
      kpcProgram,
    ]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/error: .*UTF-8.* \[unreadable-file\]/);
  });

  test('without a Service is refused, unless that is asked for', async () => {
    const pod = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}}';
    const run = await runKpc(['compile', '-f', '-', '--print', 'ipvsadm'], { stdin: pod });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/error: .*\[nothing-programmed\]\n {2}help: .*--allow-empty/);
    const asked = await runKpc(['compile', '-f', '-', '--print', 'ipvsadm', '--allow-empty'], { stdin: pod });
    expect(asked).toMatchObject({ status: 0, stdout: '' });
  });

  test("with kube-proxy's ConfigMap goes by it", async () => {
    const config = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: iptables\n';
    const map = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', data: { 'config.conf': config } });
    const run = await runKpc(['compile', '-f', '-', '-f', svc, '--print', 'ipvsadm'], { stdin: map });
    expect(run).toMatchObject({ status: 2, stderr: expect.stringMatching(/ipvsadm\.restore.*\[bad-call\]/) });
  });

  test.each([
    ['a name that no node has', '--node', 'A B;rm'],
    ['a name in the configuration that no node has', '--hostname-override', 'a\n::error::b'],
  ])('for %s is refused', async (_, ...flags) => {
    const run = await runKpc(['compile', '-f', svc, ...flags]);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toMatch(/^error: --(node|hostname-override) .*\[bad-value\]\n {2}help: .*\n$/);
  });

  test('that looks like a command to GitHub is not printed as one', async () => {
    const run = await runKpc(['compile', '-f', '-'], { stdin: '::stop-commands::x ##[error]y\n' });
    expect(run.stderr).toMatch(/^ {2}·:stop-commands::x ##·error\]y$/m);
    expect(run.stderr).not.toMatch(/^\s*::|##\[/m);
  });

  test('is asked for where there is none', async () => {
    const run = await runKpc(['compile']);
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain('-f');
  });

  test.each([['-o', 'out'], ['--print', 'ipvsadm'], ['--check', '.'], []])(
    'that is bad gives status 2 and no output with %s',
    async (...flags) => {
      const run = await runKpc(['compile', '-f', 'manifests', ...flags], {
        cwd: join(fixturesFolder, 'bad-several-files'),
      });
      expect(run).toMatchObject({ status: 2, stdout: '' });
      expect(run.stderr.match(/^manifests\/[abc]\.yaml:\d+:\d+: error: /gm)).toHaveLength(3);
      expect(run.stderr).not.toContain('\u001B');
    },
  );
});

describe('--output json, for programs', () => {
  test('gives the files, the manifest and the diagnostics', async () => {
    const { status, stdout } = await runKpc(['compile', '-f', svc, '--proxy-mode', 'ipvs', '--output', 'json']);
    expect(status).toBe(0);
    const result: unknown = resultOf(stdout);
    expect(findingsOf(stdout)).toEqual([]);
    expect(result).toEqual({ manifest: JSON.parse(expected['manifest.json'] ?? ''), files: expected });
  });

  test('names the folder instead of the files where they are written to one', async () => {
    const folder = freshPath();
    const { stdout } = await runKpc(['compile', '-f', svc, '--output', 'json', '-o', folder]);
    expect(resultOf(stdout)).toMatchObject({ folder });
    expect(resultOf(stdout)).not.toHaveProperty('files');
    expect(readFolder(folder)).toEqual(expected);
  });

  test('of bad input gives the diagnostics alone, with their places', async () => {
    const bad = writeChanged('port: 80 ', 'port: 70000 ');
    const { status, stdout } = await runKpc(['compile', '-f', bad, '--output', 'json']);
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toEqual({
      kpc: expect.any(String),
      command: 'kpc compile',
      snapshots: [],
      findings: [
        {
          severity: 'error',
          code: 'bad-value',
          text: expect.stringContaining('70000'),
          help: expect.any(String),
          arguments: {
            field: 'port',
            found: { type: 'number', value: 70_000 },
            types: ['integer', 'null'],
            expected: expect.any(String),
          },
          place: { file: bad, line: 12, column: 13 },
        },
      ],
    });
  });

  test('github and junit go with --check', async () => {
    const { status, stdout, stderr } = await runKpc(['compile', '-f', svc, '--output', 'junit']);
    expect(stdout).toMatch(/<failure message="--output junit .*--check">/);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^error: --output junit .*--check \[bad-call\]\n {2}help: .*--check\n$/);
  });
});
