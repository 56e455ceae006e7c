import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { projectFolder, runKpc, runProgram } from '../support/run-kpc.ts';

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
async function compare(inputs: Readonly<Record<string, string>>) {
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
    cwd: scratch,
    env: {
      ...env,
      GITHUB_ACTION_PATH: projectFolder,
      GITHUB_OUTPUT: output,
      GITHUB_STEP_SUMMARY: summary,
      RUNNER_TEMP: scratch,
    },
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

  test('builds kpc where it is, before it runs it', () => {
    expect(action.runs.steps[0]?.run).toBe('npm --prefix "$GITHUB_ACTION_PATH" ci');
  });

  test('is content where nothing changes', async () => {
    expect(await compare({ files: 'svc.yaml\n', golden: 'golden', before: 'golden' })).toMatchObject({
      status: 0,
      output: 'changed=false\n',
    });
  });

  test('marks what changes and fails', async () => {
    const run = await compare({ files: '\r\nready.yaml\r\n', golden: 'golden' });
    expect(run).toMatchObject({ status: 1, output: 'changed=true\n' });
    expect(run.stdout).toMatch(/^::error file=ready\.yaml,line=\d+/m);
  });

  test('only marks it where the workflow says so, and writes the summary', async () => {
    const run = await compare({ files: 'ready.yaml', golden: 'golden', before: 'golden', 'fail-on-change': 'false' });
    expect(run).toMatchObject({ status: 0, output: 'changed=true\n' });
    expect(run.summary).toContain('endpoint 10.244.2.11:8080 ready');
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
  const inputs = ['files', 'golden', 'before', 'node', 'config', 'host-addresses', 'flags', 'fail-on-change'];
  test.each(inputs)('takes %s for a text, whatever is in it', async (input) => {
    const run = await compare({ files: 'ready.yaml', golden: 'golden', [input]: hostile });
    expect(run.status).not.toBe(0);
    expect(existsSync(join(scratch, 'owned'))).toBe(false);
  });

  test('takes a file whose name begins with a dash', async () => {
    symlinkSync('svc.yaml', join(scratch, '--help'));
    expect(await compare({ files: '--help', golden: 'golden' })).toMatchObject({
      status: 0,
      output: 'changed=false\n',
    });
  });
});
