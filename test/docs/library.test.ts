// Every program that docs/library.md shows is run, prints what it shows, and has the right types under strict.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import { afterAll, expect, test } from 'vitest';
import { fixturesFolder } from '../support/fixtures.ts';
import { readExamples, readPage, writeOutputs } from '../support/markdown.ts';
import { projectFolder, runProgram } from '../support/run-kpc.ts';

const updates = process.env['UPDATE_DOCS'] === '1';
const name = 'docs/library.md';

const folder = mkdtempSync(join(tmpdir(), 'kpc-library-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
symlinkSync(fixturesFolder, join(folder, 'fixtures'));
mkdirSync(join(folder, 'node_modules'));
symlinkSync(projectFolder, join(folder, 'node_modules', 'kube-proxy-compiler'));
symlinkSync(join(projectFolder, 'node_modules', '@types'), join(folder, 'node_modules', '@types'));

test('docs/library.md shows programs that work, and what they print', async () => {
  const page = readPage(name);
  const examples = readExamples(page, ['ts']);
  expect(examples.length).toBeGreaterThan(3);
  const printed: string[] = [];
  for (const [i, { commands }] of examples.entries()) {
    const { text } = commands;
    const file = join(folder, `example-${i}.mjs`);
    writeFileSync(file, transformSync(text, { loader: 'ts' }).code);
    const { status, stdout, stderr } = await runProgram(process.execPath, [file], { cwd: folder });
    expect({ status, stderr }, text).toEqual({ status: 0, stderr: '' });
    // A last line that is empty would show in the page.
    printed.push(stdout.replace(/\n+$/, '\n'));
  }
  const written = writeOutputs(page, examples, printed);
  if (updates) writeFileSync(join(projectFolder, name), written);
  expect(updates ? written : page).toBe(written);
});

test('all programs have the right types under strict', async () => {
  const files = readExamples(readPage(name), ['ts']).map(({ commands }, i) => {
    writeFileSync(join(folder, `example-${i}.mts`), commands.text);
    return `example-${i}.mts`;
  });
  expect(files.length).toBeGreaterThan(0);
  const tsc = join(projectFolder, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  const { status, stdout } = await runProgram(process.execPath, [tsc, ...options, ...files], { cwd: folder });
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
});
