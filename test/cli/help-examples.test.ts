import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { commitAll } from '../support/git.ts';
import { runKpc, runKpcApply } from '../support/run-kpc.ts';
import { writeFolder } from '../support/write-folder.ts';

const commands = {
  kpc: ['compile', 'lint', 'diff', 'describe', 'trace', 'version'],
  'kpc-apply': ['doctor', 'plan', 'apply', 'confirm', 'rollback', 'verify', 'dump', 'cleanup', 'watch', 'version'],
};
const helpOf = async (program: keyof typeof commands, words: readonly string[]) =>
  (await (program === 'kpc' ? runKpc : runKpcApply)([...words, '--help'])).stdout;

const examplesIn = (help: string): readonly string[] =>
  [...help.slice(help.lastIndexOf('\nExamples:\n')).matchAll(/^ {2}\$ (.+)$/gm)].map(([, line = '']) => line);

const cases = Object.entries(commands).flatMap(([program, names]) =>
  names.map((name) => [program as keyof typeof commands, name] as const),
);

describe('the help ends with examples', () => {
  test.each(cases)('%s %s: two to four, of this command', async (program, name) => {
    const lines = examplesIn(await helpOf(program, [name]));
    expect(lines.length).toBeGreaterThanOrEqual(2);
    expect(lines.length).toBeLessThanOrEqual(4);
    for (const line of lines) expect(line).toContain(`${program} ${name}`);
  });

  test.each(cases)('%s %s: with flags that the command has', async (program, name) => {
    const help = await helpOf(program, [name]);
    const options = help.slice(help.indexOf('\nOptions:\n'), help.lastIndexOf('\nExamples:\n'));
    for (const line of examplesIn(help)) {
      const call = line.slice(line.indexOf(`${program} ${name}`));
      for (const [, flag = ''] of call.matchAll(/ (--?[a-z][a-z-]*)/g)) {
        expect(options).toMatch(new RegExp(`^ {2}.*(?<![\\w-])${flag}(?![\\w-])`, 'm'));
      }
    }
  });

  test.each(['kpc', 'kpc-apply'] as const)('%s: one for a command', async (program) => {
    expect(examplesIn(await helpOf(program, []))).toHaveLength(4);
  });
});

/** A repository with files of the names in the examples. */
async function makeRepository(): Promise<string> {
  const cwd = mkdtempSync(join(tmpdir(), 'kpc-examples-'));
  const read = (...path: readonly string[]) => readFileSync(join(fixturesFolder, ...path), 'utf8');
  const [service = '', slice = ''] = read('quickstart', 'svc.yaml').split('\n---\n');
  writeFolder(cwd, {
    'services.yaml': `${service}\n---\n${slice}`,
    'services/shop.yaml': read('cluster', 'shop.yaml'),
    'nodes.yaml': read('cluster', 'nodes.yaml'),
    'node.txt': read('dumps', 'kube-proxy-iptables-session-affinity', 'iptables-save'),
  });
  commitAll(cwd);
  await runKpc(['compile', 'services.yaml', '--proxy-mode', 'ipvs', '--golden', 'golden'], { cwd });
  commitAll(cwd);
  return cwd;
}

// Those of kpc-apply change the node; a pipe from kubectl needs a cluster.
describe('the examples of kpc run', () => {
  test.each(commands.kpc)('kpc %s', async (name) => {
    const lines = examplesIn(await helpOf('kpc', [name])).filter((line) => line.startsWith('kpc '));
    expect(lines.length).toBeGreaterThanOrEqual(2);
    const cwd = await makeRepository();
    for (const line of lines) {
      const run = await runKpc(line.split(' ').slice(1), { cwd });
      const statuses = name === 'diff' || name === 'lint' ? [0, 1] : [0];
      expect(statuses, `${line}: ${run.stderr}`).toContain(run.status);
      expect(run.stderr, line).not.toMatch(/error:/);
    }
    rmSync(cwd, { recursive: true });
  });

  test('kpc-apply version', async () => {
    for (const line of examplesIn(await helpOf('kpc-apply', ['version']))) {
      expect((await runKpcApply(line.split(' ').slice(1))).status).toBe(0);
    }
  });
});
