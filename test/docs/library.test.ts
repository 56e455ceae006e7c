// Every program that docs/library.md shows is run, prints what it shows, and has the right types under strict.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
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

/** What each of these programs prints: one process runs them, one after the other. */
async function runAll(kind: string, programs: readonly string[]): Promise<readonly string[]> {
  const files = programs.map((text, i) => {
    const file = join(folder, `${kind}-${i}.mjs`);
    writeFileSync(file, transformSync(text, { loader: 'ts' }).code);
    return file;
  });
  const end = '===== the end of a program =====\n';
  const runner = join(folder, 'runner.mjs');
  writeFileSync(
    runner,
    `for (const file of process.argv.slice(2)) { await import(file); console.log(${JSON.stringify(end.trim())}); }`,
  );
  const { status, stdout, stderr } = await runProgram(process.execPath, [runner, ...files], { cwd: folder });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.split(end).slice(0, -1);
}

const page = readPage(name);
const examples = readExamples(page, ['ts']);
const comments = commentedExamples();
/** What all of them print, by one process. */
const printedByAll = runAll('example', [...examples.map(({ commands }) => commands.text), ...comments]);

test('docs/library.md shows programs that work, and what they print', async () => {
  expect(examples.length).toBeGreaterThan(3);
  const outputs = (await printedByAll).slice(0, examples.length);
  // A last line that is empty would show in the page.
  const printed = outputs.map((stdout) => stdout.replace(/\n+$/, '\n'));
  const written = writeOutputs(page, examples, printed);
  if (updates) writeFileSync(join(projectFolder, name), written);
  expect(updates ? written : page).toBe(written);
});

/** The programs in the comments of the library. */
function commentedExamples(): readonly string[] {
  const sources = join(projectFolder, 'src', 'library');
  const files = readdirSync(sources).filter((file) => file.endsWith('.ts'));
  return files.flatMap((file) => {
    const text = readFileSync(join(sources, file), 'utf8').replaceAll(/^ \* ?/gm, '');
    return [...text.matchAll(/^```ts\n([^]*?)^```/gm)].map(([, program = '']) => program);
  });
}

test('the programs in the comments of the library work', async () => {
  expect(comments.length).toBeGreaterThan(3);
  const outputs = (await printedByAll).slice(examples.length);
  for (const [i, text] of comments.entries()) {
    // What the comment at the end of a line says is printed.
    const said = [...text.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, words = '']) => words);
    expect(outputs[i]?.trimEnd().split('\n'), text).toEqual(said);
  }
});

test('an error of the library is a stack trace with lines, and no line of the library is long', async () => {
  const file = join(folder, 'thrower.mjs');
  writeFileSync(file, "import { compile } from 'kube-proxy-compiler';\ncompile({ manifests: [{ name: 'a' }] });\n");
  const { status, stderr } = await runProgram(process.execPath, [file], { cwd: folder });
  expect(status).toBe(1);
  expect(stderr.length).toBeLessThan(3000);
  expect(stderr).toMatch(/at checkText \(.*library\.js:\d+:\d+\)/);
  for (const bundle of ['library.js', 'browser.mjs', 'kpc.js', 'kpc-apply.js']) {
    const lines = readFileSync(join(projectFolder, 'dist', bundle), 'utf8').split('\n');
    expect(lines.length, bundle).toBeGreaterThan(1000);
  }
});

test('the ES module and the CommonJS module export the same', async () => {
  const names = (file: string) => `
    const { default: _, 'module.exports': __, __esModule: ___, ...rest } = await import('${join(projectFolder, 'dist', file)}');
    console.log(Object.keys(rest).toSorted().join());`;
  const [esm, cjs] = await runAll('module', ['index.mjs', 'index.js'].map(names));
  expect(esm).toBe(cjs);
  expect(esm?.trim().split(',')).toContain('migrate');
});

test('all programs have the right types under strict', async () => {
  const programs = [...examples.map(({ commands }) => commands.text), ...comments];
  const files = programs.map((text, i) => {
    writeFileSync(join(folder, `example-${i}.mts`), text);
    return `example-${i}.mts`;
  });
  expect(files.length).toBeGreaterThan(0);
  const tsc = join(projectFolder, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  const { status, stdout } = await runProgram(process.execPath, [tsc, ...options, ...files], { cwd: folder });
  expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
});
