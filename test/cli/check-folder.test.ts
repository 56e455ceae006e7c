import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const cwd = join(projectFolder, 'test/diff/cases/scale-deployment');
const scratch = mkdtempSync(join(tmpdir(), 'kpc-check-folder-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const at = (name: string) => join(scratch, name);

beforeAll(async () => {
  await runKpc(['compile', '-f', 'before', '-o', at('bundle')], { cwd });
  await runKpc(['compile', '-f', 'before', '--all-nodes', '-o', at('fleet')], { cwd });
  mkdirSync(at('empty'));
  mkdirSync(at('other'));
  writeFileSync(join(at('other'), 'README.md'), 'Nothing of kpc.\n');
  mkdirSync(at('web'));
  writeFileSync(join(at('web'), 'manifest.json'), '{ "name": "a web application" }\n');
  writeFileSync(at('file'), 'a file\n');
});

const ofOneNode = [
  ['nowhere', /there is no such folder \[nothing-to-check\]\n {2}help: write it first with -o .*nowhere/],
  ...(['empty', 'other', 'web'] as const).map((name) => [name, /kpc compile wrote no bundle/] as const),
  ['file', /this is a file, not a folder/],
  [
    'fleet',
    /this folder holds the bundles of many nodes \[nothing-to-check\]\n {2}help: use --all-nodes, or name one of them, such as .*fleet\/node-1/,
  ],
] as const;

const ofManyNodes = [
  ['nowhere', /there is no such folder \[nothing-to-check\]\n {2}help: write it first with -o .*nowhere/],
  ...(['empty', 'other'] as const).map((name) => [name, /kpc compile wrote no bundle/] as const),
  ['file', /this is a file, not a folder/],
  ['bundle', /this is the bundle of one node \[nothing-to-check\]\n {2}help: name the folder of all nodes/],
] as const;

async function expectRefusal(name: string, flags: readonly string[], advice: RegExp): Promise<void> {
  const run = await runKpc(['compile', '-f', 'after', '--check', at(name), ...flags], { cwd });
  expect(run).toMatchObject({ status: 2, stdout: '' });
  expect(run.stderr).toMatch(advice);
  expect(run.stderr).not.toMatch(/ENOENT|ENOTDIR|differs in/);
}

describe('kpc compile --check of a folder that has nothing to compare with', () => {
  for (const [name, advice] of ofOneNode) test(`one node: ${name}`, () => expectRefusal(name, [], advice));
  for (const [name, advice] of ofManyNodes) {
    test(`many nodes: ${name}`, () => expectRefusal(name, ['--all-nodes'], advice));
  }

  test('programs and GitHub are told too, and all that is wrong at once', async () => {
    const json = await runKpc(['compile', '-f', 'after', '--check', at('nowhere'), '--output', 'json'], { cwd });
    expect(JSON.parse(json.stdout)).toMatchObject({ findings: [{ severity: 'error', code: 'nothing-to-check' }] });
    const github = await runKpc(['compile', '-f', 'after', '--check', at('nowhere'), '--output', 'github'], { cwd });
    expect(github.stdout).toMatch(/^::error title=nothing-to-check::--check .*nowhere/);
    const both = await runKpc(['compile', '-f', 'no-such-file', '--check', at('nowhere')], { cwd });
    expect(both.stderr).toContain('no-such-file');
    expect(both.stderr).toContain('nothing-to-check');
  });

  test('what kpc-apply dump wrote was not compiled', async () => {
    const dumped = at('dumped');
    cpSync(at('bundle'), dumped, { recursive: true });
    writeFileSync(join(dumped, 'manifest.json'), '{ "formatVersion": 1, "dumped": true }\n');
    const run = await runKpc(['compile', '-f', 'after', '--check', dumped], { cwd });
    expect(run).toMatchObject({ status: 2, stdout: '' });
    expect(run.stderr).toContain('kpc compile wrote no bundle');
  });

  test('a bundle whose manifest was broken by hand still differs', async () => {
    const broken = at('broken');
    cpSync(at('bundle'), broken, { recursive: true });
    writeFileSync(join(broken, 'manifest.json'), '{');
    const run = await runKpc(['compile', '-f', 'before', '--check', broken], { cwd });
    expect(run.status).toBe(1);
    expect(run.stderr).toContain('manifest.json:');
  });

  test('files that differ without an effect are not called a difference in the kernel, nor the same', async () => {
    const [text, markdown] = await Promise.all(
      ['text', 'markdown'].map((output) =>
        runKpc(
          ['compile', '-f', 'before', '--check', at('bundle'), '--hostname-override', 'node-1', '--output', output],
          { cwd },
        ),
      ),
    );
    for (const run of [text, markdown]) {
      expect(run?.status).toBe(1);
      expect(run?.stdout).toContain('hostnameOverride');
      expect(`${run?.stdout}${run?.stderr}`).not.toMatch(/No difference|the same/);
    }
  });
});

test.for(['-o', '--golden'])(
  'with several Nodes and none named, the node of a folder (%s) is followed',
  async (form) => {
    const manifests = (port: number) =>
      ['one', 'two'].map((name) => `{ kind: Node, apiVersion: v1, metadata: { name: ${name} } }\n---\n`).join('') +
      `{ kind: Service, apiVersion: v1, metadata: { name: web }, spec: { clusterIP: 10.96.0.80, ports: [{ port: ${port} }] } }`;
    writeFileSync(at('old.yaml'), manifests(80));
    writeFileSync(at('new.yaml'), manifests(81));
    await runKpc(['compile', '-f', 'old.yaml', form, `of${form}`, '--node', 'two'], { cwd: scratch });
    const check = (file: string) => runKpc(['compile', '-f', file, '--check', `of${form}`], { cwd: scratch });
    expect(await check('old.yaml')).toMatchObject({ status: 0, stdout: '' });
    const { status, stderr } = await check('new.yaml');
    expect(status).toBe(1);
    expect(stderr).toContain(`kpc compile -f new.yaml ${form} of${form} --node two\n`);
    expect(stderr).not.toContain('[no-node]');
  },
);

test.for([
  [['--proxy-mode', 'ipvs'], 'ipvsadm'],
  [['--proxy-mode', 'iptables'], 'iptables'],
  [['--proxy-mode', 'iptables', '--ip-family', 'ipv6', '--allow-empty'], 'ip6tables'],
] as const)('compile %s: the closing hint names a file that is there', async ([flags, name]) => {
  const run = await runKpc(['compile', '-f', 'before', ...flags], { cwd });
  expect(run.stderr).toContain(`to see one, add --print ${name}.\n`);
  expect(await runKpc(['compile', '-f', 'before', ...flags, '--print', name], { cwd })).toMatchObject({ status: 0 });
});
