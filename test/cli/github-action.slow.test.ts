import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { commitAll } from '../support/git.ts';
import { projectFolder, runKpc, runProgram } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string; readonly required?: boolean }>>;
  readonly runs: {
    readonly using: string;
    readonly steps: readonly {
      readonly name: string;
      readonly shell: string;
      readonly run: string;
      readonly env?: Readonly<Record<string, string>>;
    }[];
  };
}

const action = parse(readFileSync(join(projectFolder, 'action.yml'), 'utf8')) as Action;
const scratch = mkdtempSync(join(tmpdir(), 'kpc-action-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const quickstart = join(projectFolder, 'fixtures', 'quickstart', 'svc.yaml');
beforeAll(async () => {
  cpSync(quickstart, join(scratch, 'svc.yaml'));
  const ready = readFileSync(quickstart, 'utf8').replace('ready: false', 'ready: true');
  writeFileSync(join(scratch, 'ready.yaml'), ready);
  const { status, stderr } = await runKpc(['compile', '-f', 'svc.yaml', '-o', 'golden'], { cwd: scratch });
  if (status !== 0) throw new Error(stderr);
});

let runs = 0;

/** The last step, as a runner would start it: the inputs in its environment, and no more than that. */
async function compare(inputs: Readonly<Record<string, string>>, changes: Readonly<Record<string, string>> = {}) {
  const step = action.runs.steps.at(-1);
  if (step === undefined) throw new Error('no step');
  const [output, summary] = ['output', 'summary'].map((name) => join(scratch, `${name}-${++runs}`)) as [string, string];
  const env = Object.fromEntries(
    Object.entries(step.env ?? {}).map(([name, value]) => {
      const input = /^\$\{\{ inputs\.([\w-]+) \}\}$/.exec(value)?.[1] ?? '';
      expect(action.inputs, value).toHaveProperty([input]);
      return [name, inputs[input] ?? action.inputs[input]?.default ?? ''];
    }),
  );
  const run = await runProgram('bash', ['--noprofile', '--norc', '-e', '-o', 'pipefail', '-c', step.run], {
    env: {
      ...env,
      GITHUB_ACTION_PATH: projectFolder,
      GITHUB_OUTPUT: output,
      GITHUB_STEP_SUMMARY: summary,
      RUNNER_TEMP: scratch,
      ...changes,
    },
    cwd: changes['PWD'] ?? scratch,
  });
  const read = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : '');
  return { ...run, output: read(output), summary: read(summary) };
}

describe('the action', () => {
  test('has no input in the text of a script', () => {
    expect(action.runs.using).toBe('composite');
    for (const { run, shell } of action.runs.steps) {
      expect(shell).toBe('bash');
      expect(run).not.toContain('${{');
    }
  });

  test('installs the built files of a package, by none of its scripts', async () => {
    const folder = mkdtempSync(join(scratch, 'package-'));
    const scripts = { preinstall: 'touch owned', install: 'touch owned', postinstall: 'touch owned' };
    writeFolder(join(folder, 'package'), {
      'package.json': JSON.stringify({ name: 'kube-proxy-compiler', version: '9.9.9', scripts }),
      'bin/kpc.js': "console.log('the package: ' + process.argv[2]);\n",
    });
    await runProgram('tar', ['-czf', 'kpc.tgz', 'package'], { cwd: folder });
    const step = action.runs.steps.find(({ name }) => name === 'Install kpc');
    const env = {
      GITHUB_ACTION_PATH: projectFolder,
      RUNNER_TEMP: folder,
      KPC_PACKAGE: 'kpc.tgz',
      KPC_REPOSITORY: 'o/r',
    };
    const words = ['--noprofile', '--norc', '-e', '-o', 'pipefail', '-c', step?.run ?? ''];
    const install = (changes: Readonly<Record<string, string>>) =>
      runProgram('bash', words, { cwd: folder, env: { ...env, ...changes } });
    expect(await install({})).toMatchObject({ status: 0 });
    const run = await compare({ files: 'svc.yaml', golden: 'golden' }, { RUNNER_TEMP: folder });
    expect(run.stdout).toContain('the package: compile');
    expect(readdirSync(folder).toSorted()).toEqual(['kpc-action', 'kpc.tgz', 'package']);
    // What is built beside the action needs no package, and a package is no option of npm.
    expect(await install({ KPC_PACKAGE: '' })).toMatchObject({ status: 0, stdout: '' });
    expect((await install({ KPC_PACKAGE: '--ignore-scripts=false' })).status).not.toBe(0);
  });

  test('only marks it where the workflow says so, and writes the summary', async () => {
    const run = await compare({ files: 'ready.yaml', golden: 'golden', before: 'golden', 'fail-on-change': 'false' });
    expect(run).toMatchObject({ status: 0, output: 'changed=true\n' });
    expect(run.summary).toContain('endpoint 10.244.2.11:8080 ready');
  });

  test('marks what changes and fails, with its packets in the summary, and how to accept it', async () => {
    const run = await compare({ files: '\r\nready.yaml\r\n', golden: 'golden', node: 'worker-1' });
    expect(run).toMatchObject({ status: 1, output: 'changed=true\n' });
    expect(run.stdout).toMatch(/^::error file=ready\.yaml,line=\d+/m);
    expect(run.summary).toContain('- **default/nginx**: endpoint 10.244.2.11:8080 ready');
    expect(run.summary).toContain('### Packets on worker-1');
    expect(run.summary).toContain('kpc trace ready.yaml --node worker-1 --from');
    expect(run.summary).toContain('kpc compile -f ready.yaml --node=worker-1 -o golden\n');
    expect(run.summary.replace(/<details>.*?<\/details>/gs, '').split('\n').length).toBeLessThan(30);
    expect(run.stdout).toContain('if this is intended: kpc compile -f ready.yaml --node=worker-1 -o golden');
  });

  test('is content where nothing changes, also of a file whose name begins with a dash', async () => {
    symlinkSync('svc.yaml', join(scratch, '--help'));
    const same = await compare({ files: '--help\n', golden: 'golden' });
    expect(same).toMatchObject({ status: 0, output: 'changed=false\n' });
    expect(same.summary).toMatch(/^\*\*No difference in .*\*\*\n\n- .*worker-1/);
  });

  test('compares with the golden of the commit before where that of the pull request is up to date', async () => {
    const cwd = mkdtempSync(join(scratch, 'pull-request-'));
    const write = (ready: boolean) => {
      cpSync(join(scratch, ready ? 'ready.yaml' : 'svc.yaml'), join(cwd, 'svc.yaml'));
      return runKpc(['compile', 'svc.yaml', '--golden', 'golden', '-q'], { cwd });
    };
    await write(false);
    commitAll(cwd);
    await write(true);
    commitAll(cwd);
    const run = await compare({ files: 'svc.yaml', golden: 'golden' }, { PWD: cwd });
    expect(run).toMatchObject({ status: 0, output: 'changed=true\n' });
    expect(run.summary).toContain('- **default/nginx**: endpoint 10.244.2.11:8080 ready');
    expect(run.summary).not.toContain('accept');
    // One of manifests, of a revision.
    const before = await compare({ files: 'svc.yaml', before: 'HEAD^1:svc.yaml' }, { PWD: cwd });
    expect(before).toMatchObject({ status: 0, output: 'changed=true\n' });
    expect(before.summary).toContain('endpoint 10.244.2.11:8080 ready');
  });

  test('hands on the flags, one in each line', async () => {
    const flags = '--proxy-mode\niptables\n';
    const run = await compare({ files: 'svc.yaml', golden: 'golden', flags });
    expect(run).toMatchObject({ status: 1, output: 'changed=true\n' });
    expect((await compare({ files: 'svc.yaml', golden: 'golden', flags: '--no-such-flag' })).status).toBe(2);
  });

  test.each([
    [{ files: '\n \n'.trim(), golden: 'golden' }, 'names no manifests'],
    [{ files: 'svc.yaml' }, 'Give the input "golden", "before", or both'],
  ])('says what it lacks: %j', async (inputs, message) => {
    expect(await compare(inputs)).toMatchObject({ status: 2, stdout: expect.stringContaining(message), output: '' });
  });

  const hostile = `-$(touch owned)\`touch owned\`'; touch owned; '"; touch owned; " && touch owned`;
  test('takes each input for a text, whatever is in it', async () => {
    // In the place of kpc: writes what it gets, and says that the golden has changed.
    const folder = mkdtempSync(join(scratch, 'recorder-'));
    symlinkSync(join(projectFolder, 'scripts'), join(folder, 'scripts'));
    const calls = join(folder, 'calls');
    const write = `require('node:fs').appendFileSync('${calls}', JSON.stringify(process.argv.slice(2)) + '\\n')`;
    writeFolder(folder, { 'bin/kpc.js': `${write};\nprocess.exitCode = 1;\n`, 'package.json': '{}' });
    const names = ['files', 'golden', 'before', 'node', 'config', 'host-addresses', 'flags', 'fail-on-change'];
    const inputs = Object.fromEntries(names.map((name) => [name, `${name}${hostile}`]));
    const run = await compare(inputs, { GITHUB_ACTION_PATH: folder });
    expect(run.status).toBe(1);
    expect(existsSync(join(scratch, 'owned'))).toBe(false);
    const [check] = readFileSync(calls, 'utf8').split('\n');
    const named = ['node', 'config', 'host-addresses'].map((name) => `--${name}=${inputs[name]}`);
    expect(JSON.parse(check ?? '')).toEqual([
      'compile',
      '-f',
      inputs['files'],
      ...named,
      inputs['flags'],
      `--check=${inputs['golden']}`,
      '--output=github',
    ]);
  });
});
