import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { projectFolder, runKpc, runProgram } from '../support/run-kpc.ts';

const readme = readFileSync(join(projectFolder, 'README.md'), 'utf8');

/** The fenced blocks of README.md of one language, in order. */
function blocks(language: string): readonly string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, text = '']) => text);
}

/** A folder in which "kpc" is the built program and fixtures/ is there, as README's reader has them. */
const folder = mkdtempSync(join(tmpdir(), 'kpc-readme-'));
beforeAll(() => {
  symlinkSync(fixturesFolder, join(folder, 'fixtures'));
  mkdirSync(join(folder, 'path'));
  const kpc = join(folder, 'path', 'kpc');
  writeFileSync(kpc, `#!/bin/sh\nexec "${process.execPath}" "${join(projectFolder, 'bin', 'kpc.js')}" "$@"\n`);
  chmodSync(kpc, 0o755);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = { PATH: [join(folder, 'path'), process.env['PATH']].join(delimiter) };
const shell = (script: string) => runProgram('bash', ['-euo', 'pipefail', '-c', script], { cwd: folder, env });

describe("README's commands", () => {
  test.each(blocks('sh'))('run: %s', async (script) => {
    expect(script).toMatch(/\bkpc\b/);
    const { status, stderr } = await shell(script);
    expect(status, stderr).toBe(0);
  });

  test('the first one prints what stands below it', async () => {
    const [script = ''] = blocks('sh');
    const [shown] = blocks('text');
    expect(await shell(script)).toEqual({ status: 0, stdout: shown, stderr: '' });
  });

  test('the two for a fresh machine install, and run scripts that there are', async () => {
    expect(blocks('setup')).toEqual(['npm ci && npm run example\n', 'npm ci && npm test\n']);
    const { scripts } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    for (const [, script = ''] of readme.matchAll(/npm (?:run )?([a-z:-]+)/g)) {
      expect(['ci', ...Object.keys(scripts)]).toContain(script);
    }
    // npm test is what runs this; the example is built already.
    const example = (scripts['example'] ?? '').replace(/^.*&& node dist\/kpc\.js/, 'kpc');
    expect((await shell(example)).stdout).toContain('==> ipvsadm.restore');
  });
});

test('README has every flag of compile, and no other', async () => {
  const { stdout } = await runKpc(['compile', '--help']);
  const flags = (text: string) => new Set(text.match(/(?<![\w-])--[a-z][a-z-]+/g));
  const table = readme.slice(readme.indexOf('## Commands and flags'), readme.indexOf('| exit status'));
  const ofAnyCommand = ['--version', '--help'];
  expect(flags(table)).toEqual(new Set([...flags(stdout), ...ofAnyCommand]));
});

test('README shows the rule counts that were measured', () => {
  const measured = readFileSync(join(projectFolder, 'docs', 'rule-counts.md'), 'utf8');
  const table = measured
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .join('\n');
  expect(table).toContain('IPVS mode');
  expect(readme).toContain(table);
});
