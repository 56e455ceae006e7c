import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { kpcProgram, projectFolder, runProgram, type Run } from '../support/run-kpc.ts';

interface Step {
  readonly name?: string;
  readonly if?: string;
  readonly run?: string;
}

interface Workflow {
  readonly env: Readonly<Record<string, string>>;
  readonly jobs: { readonly golden: { readonly steps: readonly Step[] } };
}

const workflow = parse(readFileSync(join(projectFolder, 'examples/github-actions/services.yml'), 'utf8')) as Workflow;
const cases = join(projectFolder, 'test/diff/cases/flip-traffic-policy');
const scratch = mkdtempSync(join(tmpdir(), 'kpc-workflow-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The workflow names no mode. */
const assumed = '::notice title=answer-assumes::assumed: mode ipvs (nothing names a mode)\n';

test('a pull request that leaves the golden behind: marks, a report, and words', async () => {
  const repository = await makeRepository('stale');
  writeManifests(repository, 'after');
  await commit(repository, 'after');
  const { runs, files } = await runWorkflow(repository, 'stale');
  expect(runs.map(({ status }) => status)).toEqual([1, 0, 0]);
  expect(runs[0]?.stdout).toBe(
    `${assumed}::error file=services/store.yaml,line=13,col=7,title=service-differs::store/shop:http changed: ` +
      'externalTrafficPolicy Cluster → Local%0A' +
      'help: if this is intended: kpc compile -f services -f cluster --node worker-1 --golden golden/worker-1\n' +
      '::error title=state-differs::golden/worker-1 differs: ~ chain KUBE-NODE-PORT (nat): + 1 rule%0A' +
      'help: if this is intended: kpc compile -f services -f cluster --node worker-1 --golden golden/worker-1\n',
  );
  expect(files.junit).toContain('tests="2" failures="2"');
  expect(files.junit).toContain('<failure message="store/shop:http changed: externalTrafficPolicy Cluster → Local">');
  expect(files.summary).toContain('- **store/shop**: externalTrafficPolicy Cluster → Local\n');
});

test('a pull request with its golden: no mark but what is assumed, and the words all the same', async () => {
  const repository = await makeRepository('fresh');
  writeManifests(repository, 'after');
  await writeGolden(repository);
  await commit(repository, 'after');
  const { runs, files } = await runWorkflow(repository, 'fresh');
  expect(runs.map(({ status, stdout }) => ({ status, stdout }))).toEqual([
    { status: 0, stdout: assumed },
    { status: 0, stdout: '' },
  ]);
  expect(files.summary).toContain('- **store/shop**: externalTrafficPolicy Cluster → Local\n');
});

test('a pull request that changes the cluster alone: the summary says what', async () => {
  const repository = await makeRepository('cluster');
  const node = join(repository, 'cluster/node.yaml');
  const config = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n';
  writeFileSync(node, `${readFileSync(node, 'utf8')}---\n${config}`);
  await commit(repository, 'mode');
  const { runs, files } = await runWorkflow(repository, 'cluster');
  expect(runs.map(({ status }) => status)).toEqual([1, 0, 0]);
  expect(files.summary).toContain('mode: ipvs → nftables');
});

/** A repository as the workflow expects it, with its base branch. */
async function makeRepository(name: string): Promise<string> {
  const repository = join(scratch, name);
  mkdirSync(join(repository, 'tools'), { recursive: true });
  cpSync(kpcProgram, join(repository, 'tools/kpc.cjs'));
  await git(repository, 'init', '--quiet');
  writeManifests(repository, 'before');
  await writeGolden(repository);
  await commit(repository, 'before');
  await git(repository, 'update-ref', 'refs/remotes/origin/main', 'HEAD');
  return repository;
}

function writeManifests(repository: string, side: string): void {
  for (const folder of ['services', 'cluster']) mkdirSync(join(repository, folder), { recursive: true });
  const copy = (from: string, to: string) => {
    const text = readFileSync(join(cases, side, from), 'utf8');
    writeFileSync(join(repository, to), text.replaceAll('node-1', 'worker-1'));
  };
  copy('store.yaml', 'services/store.yaml');
  copy('node.yaml', 'cluster/node.yaml');
}

async function writeGolden(repository: string): Promise<void> {
  const run = await runStep(`node tools/kpc.cjs compile $INPUT --golden "$GOLDEN"`, repository, {});
  expect(run.status, run.stderr).toBe(0);
}

async function commit(repository: string, message: string): Promise<void> {
  await git(repository, 'add', '.');
  await git(repository, '-c', 'user.name=kpc', '-c', 'user.email=kpc@example.com', 'commit', '--quiet', '-m', message);
}

async function git(repository: string, ...args: readonly string[]): Promise<void> {
  const run = await runProgram('git', args, { cwd: repository });
  expect(run.status, run.stderr).toBe(0);
}

/** Runs the steps that are commands, with the conditions that GitHub would hold them to. */
async function runWorkflow(repository: string, name: string) {
  const summary = join(scratch, `${name}-summary.md`);
  const temporary = join(scratch, `${name}-temp`);
  mkdirSync(temporary);
  const env = { GITHUB_BASE_REF: 'main', GITHUB_STEP_SUMMARY: summary, RUNNER_TEMP: temporary };
  const runs: Run[] = [];
  let failed = false;
  for (const step of workflow.jobs.golden.steps) {
    if (step.run === undefined || !isDue(step, failed)) continue;
    const run = await runStep(step.run, repository, env);
    runs.push(run);
    failed ||= run.status !== 0;
  }
  const read = (file: string) => (failed ? readFileSync(file, 'utf8') : '');
  return {
    runs,
    files: { junit: read(join(repository, 'services.xml')), summary: readFileSync(summary, 'utf8') },
  };
}

function isDue(step: Step, failed: boolean): boolean {
  switch (step.if) {
    case undefined:
      return !failed;
    case 'failure()':
      return failed;
    case 'always()':
      return true;
    default:
      throw new Error(`a condition that this test does not know: ${step.if}`);
  }
}

/** As GitHub's runner does: bash, which ends at the first command that fails. */
function runStep(script: string, cwd: string, env: Readonly<Record<string, string>>): Promise<Run> {
  return runProgram('bash', ['--noprofile', '--norc', '-e', '-o', 'pipefail', '-c', script], {
    cwd,
    env: { ...workflow.env, ...env },
  });
}
