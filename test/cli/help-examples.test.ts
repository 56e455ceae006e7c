import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { projectFolder, runKpc, runKpcApply } from '../support/run-kpc.ts';

const commands = {
  kpc: ['compile', 'diff', 'describe', 'trace', 'version'],
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

// Those of kpc-apply change the node; a pipe from kubectl needs a cluster.
describe('the examples of kpc run', () => {
  test.each(commands.kpc)('kpc %s', async (name) => {
    const lines = examplesIn(await helpOf('kpc', [name])).filter((line) => line.startsWith('kpc '));
    expect(lines.length).toBeGreaterThanOrEqual(2);
    for (const line of lines) {
      const run = await runKpc(line.split(' ').slice(1), { cwd: projectFolder });
      const statuses = name === 'diff' ? [0, 1] : [0];
      expect(statuses, `${line}: ${run.stderr}`).toContain(run.status);
      expect(run.stderr, line).not.toMatch(/error:/);
    }
    rmSync('/tmp/kpc-bundle', { recursive: true, force: true });
  });

  test('kpc-apply version', async () => {
    for (const line of examplesIn(await helpOf('kpc-apply', ['version']))) {
      expect((await runKpcApply(line.split(' ').slice(1))).status).toBe(0);
    }
  });
});
