// The help of every command, on a terminal of 80 columns. UPDATE_GOLDEN=1 writes the texts.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readPrograms } from '../../packaging/programs.ts';
import { projectFolder, runKpc, runKpcApply } from '../support/run-kpc.ts';

const calls = (await readPrograms()).flatMap(({ name, commands }) => [
  [name, ''] as const,
  ...commands.map((command) => [name, command.name()] as const),
]);

describe('help', () => {
  test.each(calls)('%s %s: the short help fits a screen, and names the long one', async (program, command) => {
    const { status, stdout } = await (program === 'kpc' ? runKpc : runKpcApply)([command, '-h'].filter(Boolean));
    expect(status).toBe(0);
    expect(stdout.split('\n').length).toBeLessThanOrEqual(41);
    expect(stdout).toMatch(/--help (?:all|shows)/);
  });

  test.each(calls)('%s %s', async (program, command) => {
    const words = [...(command === '' ? [] : [command]), '--help'];
    const { status, stdout, stderr } = await (program === 'kpc' ? runKpc(words) : runKpcApply(words));
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const [text = '', examples = ''] = stdout.split('\nExamples:\n');
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(examples).not.toContain('fixtures/');
    const file = join(
      projectFolder,
      'test/cli/help',
      `${[program, command].filter((word) => word !== '').join('-')}.txt`,
    );
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, stdout);
    expect(stdout).toBe(readFileSync(file, 'utf8'));
  });

  test('of kpc compile: what one uses comes first, the settings of kube-proxy last', async () => {
    const { stdout } = await runKpc(['compile', '--help']);
    const groups = [...stdout.matchAll(/^([A-Z][\w' -]*):$/gm)].map(([, title]) => title);
    expect(groups).toEqual([
      'Arguments',
      'Options',
      'Input',
      'Many nodes',
      'Output',
      'Settings of kube-proxy',
      'Examples',
    ]);
    const [, options = ''] = /^Options:\n(.*?)\n\n/ms.exec(stdout) ?? [];
    expect(options.match(/^ {2}-/gm)?.length).toBeLessThanOrEqual(9);
  });
});
