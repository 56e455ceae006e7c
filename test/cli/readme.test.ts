import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { projectFolder, runKpc, runKpcApply, runProgram } from '../support/run-kpc.ts';

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
    const stderr: unknown = expect.stringMatching(/^kpc: note: mode ipvs: [^\n]*\n$/);
    expect(await shell(script)).toEqual({ status: 0, stdout: shown, stderr });
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

/** The flags that a text names. */
function flagsIn(text: string): ReadonlySet<string> {
  return new Set(text.match(/(?<![\w-])--[a-z][a-z-]+/g));
}

/** The flags in the first column of the tables below a heading. */
function documentedFlags(heading: string): ReadonlySet<string> {
  const start = readme.indexOf(`\n### ${heading}\n`);
  const length = readme.slice(start + 1).search(/\n##/);
  const section = readme.slice(start, start + 1 + length);
  const rows = section.match(/^\| [^|]*/gm) ?? [];
  return flagsIn(rows.join('\n'));
}

async function flagsOf(run: typeof runKpc, command: string): Promise<ReadonlySet<string>> {
  const { stdout } = await run([command, '--help']);
  return new Set([...flagsIn(stdout)].filter((flag) => flag !== '--help'));
}

describe('README has every flag, and no other, of', () => {
  test('kpc compile', async () => {
    expect(documentedFlags('kpc compile')).toEqual(await flagsOf(runKpc, 'compile'));
  });

  test.each(['diff', 'describe'])('kpc %s, besides those of compile', async (command) => {
    const [all, ofCompile] = await Promise.all([flagsOf(runKpc, command), flagsOf(runKpc, 'compile')]);
    const documented = documentedFlags(`kpc ${command}`);
    expect([...documented].filter((flag) => !all.has(flag))).toEqual([]);
    expect([...all].filter((flag) => !documented.has(flag) && !ofCompile.has(flag))).toEqual([]);
  });

  test('kpc-apply', async () => {
    const commands = ['doctor', 'plan', 'apply', 'confirm', 'rollback', 'verify', 'dump', 'cleanup', 'watch'];
    const all = await Promise.all(commands.map((command) => flagsOf(runKpcApply, command)));
    expect(documentedFlags('kpc-apply')).toEqual(new Set(all.flatMap((flags) => [...flags])));
  });
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

test('README shows the faults that were tried, each with what came of it', () => {
  const cells = (row: string) => row.split('|').map((cell) => cell.trim());
  const rows = (text: string) => text.split('\n').filter((line) => line.startsWith('|'));
  const tried = rows(readFileSync(join(projectFolder, 'docs', 'faults.md'), 'utf8')).map((row) =>
    cells(row).slice(1, 4),
  );
  const shown = rows(readme.slice(readme.indexOf('### Faults'), readme.indexOf('</details>'))).map((row) =>
    cells(row).slice(1, 4),
  );
  const isRule = ([cell]: readonly string[]) => /^-+$/.test(cell ?? '');
  expect(tried.length).toBeGreaterThan(40);
  expect(shown.filter((row) => !isRule(row))).toEqual(tried.filter((row) => !isRule(row)));
});
