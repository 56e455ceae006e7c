// The list of codes in docs/diagnostics.md is made of the sources, with an example of each from the fixtures.
// UPDATE_DOCS=1 writes it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readPage } from '../support/markdown.ts';
import { fixturesFolder } from '../support/fixtures.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { expectWrittenPage, plainText, tableRow } from '../support/written-page.ts';

const begin = '<!-- codes: written by npm run docs -->';
const end = '<!-- end of codes -->';

function filesBelow(folder: string, name: RegExp): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => name.test(path))
    .toSorted()
    .map((path) => join(folder, path));
}

/** The codes that the sources give: as a field, or as what a function that reports takes first or after a place. */
function codesInSources(): readonly string[] {
  const codes = new Set<string>();
  for (const file of filesBelow(join(projectFolder, 'src'), /\.ts$/)) {
    const text = readFileSync(file, 'utf8');
    const uses = [
      /\bcode: '([a-z]+(?:-[a-z]+)+)'/g,
      /\b(?:error|warn|atKey|warnOfFile|note)\((?:[^()]|\([^()]*\))*?'([a-z]+(?:-[a-z]+)+)'/g,
      /\bnew Failure\(\s*'([a-z]+(?:-[a-z]+)+|busy|conflict)'/g,
      // Schemas and tables of the readers name a code and no more.
      ...(/src.(?:input|cluster|settings)./.test(file) ? [/'((?:bad|no)-[a-z]+(?:-[a-z]+)*)'/g] : []),
    ];
    for (const use of uses) for (const [, code = ''] of text.matchAll(use)) codes.add(code);
  }
  return [...codes].toSorted();
}

/** Code → what is said, as the fixtures and the faults that were tried have it. */
function exampleTexts(): ReadonlyMap<string, string> {
  const examples = new Map<string, string>();
  const add = (code: string, text: string) => examples.has(code) || examples.set(code, text);
  for (const file of filesBelow(fixturesFolder, /(?:diagnostics|notes|warnings)\.txt$/)) {
    const lines = readFileSync(file, 'utf8').matchAll(/(?:error|warning|note): (.*) \[([a-z-]+)\]$/gm);
    for (const [, text = '', code = ''] of lines) add(code, text);
  }
  for (const [, text = '', code = ''] of readPage('docs/faults.md').matchAll(/\| ([^|]*?) \[([a-z-]+)\] —/g)) {
    add(code, text.replaceAll('\\', ''));
  }
  return examples;
}

function codeList(): string {
  const examples = exampleTexts();
  const codes = codesInSources();
  const rows = codes.flatMap((code) => {
    const text = examples.get(code);
    return text === undefined ? [] : [tableRow([`\`${code}\``, plainText(text)])];
  });
  const others = codes.filter((code) => !examples.has(code)).map((code) => `\`${code}\``);
  return ['| code | for example |', '| --- | --- |', ...rows, '', `Further codes: ${others.join(', ')}.`].join('\n');
}

test('docs/diagnostics.md lists every code', async () => {
  const page = readPage('docs/diagnostics.md');
  const [before = '', rest = ''] = page.split(begin);
  const [, after = ''] = rest.split(end);
  await expectWrittenPage('docs/diagnostics.md', `${before}${begin}\n\n${codeList()}\n\n${end}${after}`);
});

test('every code that a fixture shows is listed', () => {
  const codes = new Set(codesInSources());
  expect(codes.size).toBeGreaterThan(60);
  expect([...exampleTexts().keys()].filter((code) => !codes.has(code))).toEqual([]);
});
