import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readExamples, readPage } from '../support/markdown.ts';
import { projectFolder, runProgram } from '../support/run-kpc.ts';

// What its commands print: test/docs/pages.test.ts.
const readme = readPage('README.md');
const commandsFor = (page: string, place: string) =>
  readExamples(page)
    .filter(({ commands }) => commands.words.includes(place))
    .flatMap(({ commands }) => commands.text.trimEnd().split('\n'));

describe('README', () => {
  test('is short', () => {
    expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(150);
  });

  test('shows the two commands for a fresh machine', () => {
    const commands = commandsFor(readme, 'install');
    expect(commands).toContain('npm ci && npm run example');
    expect(commands).toContain('npm ci && npm test');
  });

  test('has the programs under the names that they are installed by', () => {
    const { name, bin } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as {
      readonly name: string;
      readonly bin: Readonly<Record<string, string>>;
    };
    for (const word of [name, ...Object.keys(bin)]) expect(readme).toContain(`\`${word}\``);
  });

  test('shows commands for a node that the page on it explains, and that run in the test kernel', () => {
    const explained = commandsFor(readPage('docs/apply.md'), 'node');
    expect(explained.length).toBeGreaterThan(5);
    expect(commandsFor(readme, 'node').filter((command) => !explained.includes(command))).toEqual([]);
  });

  test('shows figures that were measured', () => {
    const measured = readPage('docs/measurements.md');
    const [status = ''] = /^## Status$.*/ms.exec(readme) ?? [];
    const figures = status.match(/\d[\d.]* m?s\b/g) ?? [];
    expect(figures).toHaveLength(2);
    expect(figures.filter((figure) => !measured.includes(figure))).toEqual([]);
  });
});

describe('npm run example', () => {
  const example = (env: Readonly<Record<string, string>>) =>
    runProgram(process.execPath, [join(projectFolder, 'scripts', 'example.mjs')], { env });

  test('shows a Service, why each endpoint is used or not, and the rules, in one screen', async () => {
    const { status, stdout, stderr } = await example({});
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('10.244.2.11:8080  worker-2  not used: not ready');
    expect(stdout).toContain('-A -t 10.96.0.80:80 -s rr\n-a -t 10.96.0.80:80 -r 10.244.1.10:8080 -m -w 1');
    expect(stdout.split('\n').length).toBeLessThan(40);
    expect(stdout).not.toContain('\u001b');
  });

  test('is in colour where that is asked for', async () => {
    expect((await example({ FORCE_COLOR: '1' })).stdout).toContain('\u001b[32m-a -t');
  });

  test('names commands that work', async () => {
    const { stdout } = await example({});
    const [described, compiled] = stdout.match(/(?<=^ {2}node bin\/kpc\.js )\S.*?(?= {3})/gm) ?? [];
    expect(described).toMatch(/^describe nginx -f \S+$/);
    expect(compiled).toMatch(/^compile -f \S+ -o \S+$/);
    const run = await runProgram(process.execPath, ['bin/kpc.js', ...(described ?? '').split(' ')]);
    expect(run.status, run.stderr).toBe(0);
  });
});

test('docs/performance.md repeats figures that were measured', () => {
  const figures = [...readPage('docs/performance.md').matchAll(/\b\d[\d.,]* (?:ms|s|MiB)\b/g)].map(
    ([figure]) => figure,
  );
  const measured = readPage('docs/measurements.md');
  expect(figures.length).toBeGreaterThan(15);
  // A column of seconds has bare numbers.
  const isMeasured = (figure: string) => measured.includes(figure) || measured.includes(` ${figure.split(' ')[0]} |`);
  expect(figures.filter((figure) => !isMeasured(figure))).toEqual([]);
});
