import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc, runKpcApply } from '../support/run-kpc.ts';
import { writeFolder, type Files } from '../support/write-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-wrong-flags-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

let count = 0;

const service =
  'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: 10.96.0.1, ports: [{ port: 80 }] }\n';

function write(files: Files = {}): string {
  return writeFolder(join(scratch, String(++count)), { 'in.yaml': service, ...files });
}

/** What is said of a kpc.yaml: line, column and code. */
function placesIn(stderr: string): string[] {
  return [...stderr.matchAll(/^kpc\.yaml:(\d+:\d+): error: .* \[([a-z-]+)\]$/gm)].map(
    ([, at, code]) => `${at} ${code}`,
  );
}

const wrongYaml = [
  'nodee: a',
  'proxy-mode: foo',
  'ip-family: v4',
  'cluster-cidr: 10.0.0.0/33',
  'ipvs-tcp-timeout: soon',
  'kubernetes-version: 9.9x',
  'service-cluster-ip-range: x',
  'nodeport-addresses: [y1]',
  'iptables-masquerade-bit: 77',
  'masquerade-all: maybe',
  'namespace: A',
  'assume-endpoints: zz',
  '',
].join('\n');

const wrongPlaces = [
  '1:1 bad-kpc-yaml',
  '2:13 bad-value',
  '3:12 bad-kpc-yaml',
  '4:15 bad-value',
  '5:19 bad-value',
  '6:21 bad-value',
  '7:27 bad-value',
  '8:21 bad-value',
  '9:26 bad-value',
  '10:17 bad-kpc-yaml',
  '11:12 bad-value',
  '12:19 bad-value',
];

describe('a kpc.yaml with many faults', () => {
  test.each([
    ['compile', ['compile', '-f', 'in.yaml']],
    ['diff', ['diff', 'in.yaml', 'in.yaml']],
    ['migrate', ['migrate', '-f', 'in.yaml']],
  ])('is told of all of them in one run of kpc %s', async (_, args) => {
    const run = await runKpc(args, { cwd: write({ 'kpc.yaml': wrongYaml }) });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(placesIn(run.stderr)).toEqual(wrongPlaces);
  });

  test('is told of in JSON, too', async () => {
    const cwd = write({ 'kpc.yaml': wrongYaml });
    const { status, stdout } = await runKpc(['compile', '-f', 'in.yaml', '--output', 'json'], { cwd });
    expect(status).toBe(2);
    const told = findingsOf(stdout).map(({ place, code }) => `${place?.line}:${place?.column} ${code}`);
    expect(told).toEqual(wrongPlaces);
  });

  test.each([
    ['a text that is no YAML', 'node: [', 'not-closed'],
    ['a key twice', 'node: a\nnode: b\n', 'duplicate-key'],
    ['a key twice in JSON', '{"node": "a", "node": "b"}', 'duplicate-key'],
    ['no mapping', '- node\n', 'bad-kpc-yaml'],
  ])('is told of in JSON: %s', async (_, text, code) => {
    const cwd = write({ 'kpc.yaml': text });
    const { status, stdout } = await runKpc(['compile', '-f', 'in.yaml', '--output', 'json'], { cwd });
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ findings: [{ code, place: { file: 'kpc.yaml' } }] });
  });

  test('may ask for JSON itself', async () => {
    const cwd = write({ 'kpc.yaml': 'output: json\nnodee: a\n' });
    const { stdout } = await runKpc(['compile', '-f', 'in.yaml'], { cwd });
    expect(JSON.parse(stdout)).toMatchObject({ findings: [{ code: 'bad-kpc-yaml' }] });
  });

  test('does not hide what the command line has wrong', async () => {
    const cwd = write({ 'kpc.yaml': 'nodee: a\n' });
    const { status, stderr } = await runKpc(['compile', '-f', 'in.yaml', '--ip-family', 'v4', '--cluster-cidr', 'x'], {
      cwd,
    });
    expect(status).toBe(2);
    expect(stderr).toContain("option '--ip-family <family>' argument 'v4' is invalid");
    expect(stderr).toContain('--cluster-cidr cannot be "x"');
    expect(stderr).toMatch(/--nodee \[bad-kpc-yaml\]/);
  });
});

describe('wrong values on the command line', () => {
  test('are all told in one run', async () => {
    const flags = ['--ip-family', 'v4', '--output', 'yaml', '--print', 'zz', '--proxy-mode', 'foo', '--node', 'a_b'];
    const { status, stdout, stderr } = await runKpc(['compile', '-f', 'in.yaml', ...flags, '--shard', '3/3'], {
      cwd: write(),
    });
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr.match(/^error: .*/gm)).toEqual([
      expect.stringContaining("option '--ip-family <family>' argument 'v4' is invalid"),
      expect.stringContaining("option '--output <format>' argument 'yaml' is invalid"),
      expect.stringContaining("option '--print <file>' argument 'zz' is invalid"),
      expect.stringContaining('--node cannot be "a_b"'),
      expect.stringContaining('--proxy-mode cannot be "foo"'),
      expect.stringContaining('--shard cannot be "3/3"'),
    ]);
  });

  test('are told beside a flag that kpc does not have', async () => {
    const { status, stderr } = await runKpc(['compile', '--ip-family', 'v4', '-f', 'in.yaml', '--nodee', 'a'], {
      cwd: write(),
    });
    expect(status).toBe(2);
    expect(stderr).toContain("argument 'v4' is invalid");
    expect(stderr).toContain("unknown option '--nodee'");
  });

  test('keep a command from running', async () => {
    const cwd = write();
    const { status, stderr } = await runKpc(['compile', '-f', 'in.yaml', '-o', 'out', '--ip-family', 'v4'], { cwd });
    expect(status).toBe(2);
    expect(stderr).toMatch(
      /^error: option '--ip-family <family>' argument 'v4' is invalid \[bad-call\]\n {2}help: .*\n$/,
    );
    expect(await runKpc(['describe', 'out'], { cwd })).toMatchObject({ status: 2 });
  });

  test('are all told by kpc-apply, too, which does nothing then', async () => {
    const { status, stdout, stderr } = await runKpcApply([
      'watch',
      'none',
      '--sync-period',
      'x',
      '--drain-timeout',
      'y',
    ]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr.match(/is invalid/g)?.length ?? 0).toBe(2);
  });
});

describe('a flag that takes one value', () => {
  const refused = (flag: string, help: RegExp) => ({
    status: 2,
    stdout: '',
    stderr: expect.stringMatching(
      new RegExp(
        `^error: option '(-., )?${flag} .*' argument '.*' is invalid \\[bad-(call|usage)\\]\\n {2}help: ${help.source}\\n$`,
      ),
    ),
  });

  test.each([
    [['lint', '--node', 'w1', '--node', 'w2'], '--node'],
    [['lint', '--proxy-mode', 'ipvs', '--proxy-mode=iptables'], '--proxy-mode'],
    [['trace', '--to', 'web', '--from', 'pod', '--from', 'node'], '--from'],
    [['compile', '-o', 'a', '--out', 'b'], '--out'],
    [['describe', '--output', 'text', '--output', 'text', '--output', 'wide'], '--output'],
    [['lint', '--cluster-cidr', '10.0.0.0/8', '--cluster-cidr', '11.0.0.0/8'], '--cluster-cidr'],
  ])('is refused if it is given twice: %s', async ([command = '', ...flags], flag) => {
    expect(await runKpc([command, ...flags, '-f', 'in.yaml'], { cwd: write() })).toMatchObject(
      refused(flag, /the flag is given twice and takes one value: name ".*" or ".*"/),
    );
  });

  test('may be given twice with the same value, and a list with several', async () => {
    const flags = ['--node', 'w1', '--node', 'w1', '--exclude', 'a', '--exclude', 'b'];
    const run = await runKpc(['lint', 'in.yaml', ...flags], { cwd: write() });
    expect(run.stderr).not.toContain('bad-call');
  });

  test.each([
    ['lint', '--node'],
    ['lint', '--proxy-mode'],
    ['lint', '--detect-local-mode'],
    ['lint', '--exclude'],
    ['describe', '--nodeport-addresses'],
    ['describe', '--host-addresses'],
    ['trace', '--in-interface'],
    ['compile', '--check'],
  ])('is refused if it is empty: kpc %s %s', async (command, flag) => {
    expect(await runKpc([command, 'in.yaml', flag, ''], { cwd: write() })).toMatchObject(
      refused(flag, /check that the shell variable for it is set, or leave the flag out/),
    );
  });

  test('is refused by kpc-apply too', async () => {
    expect(await runKpcApply(['doctor', '--state-dir', 'a', '--state-dir', 'b'])).toMatchObject(
      refused('--state-dir', /the flag is given twice.*/),
    );
    expect(await runKpcApply(['doctor', '--state-dir', ''])).toMatchObject(refused('--state-dir', /check that.*/));
  });
});
