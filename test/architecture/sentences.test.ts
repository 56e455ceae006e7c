// Sentences are made in src/say. Below it there are formats: rules, lines of tools, names of metrics, schemas.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import { projectFolder } from '../support/run-kpc.ts';

const source = join(projectFolder, 'src');
/** How many texts of three words or more each file below src/say has. All are of formats. */
const recorded = join(import.meta.dirname, 'sentences.txt');

/** Stands for a value in a template. */
const value = '§';

/** Three words in a row, of which one may be a value. */
const wordsInRow = /(?:^|[\s(])(?:[A-Za-z][a-z']*|§)[,:;]? (?:[a-z']+|§)[,:;]? (?:[a-z']+|§)(?![\w\-/=])/;

function isSentence(text: string): boolean {
  return wordsInRow.test(text) && (text.match(/[A-Za-z']{2,}/g) ?? []).length > 1;
}

type Tree = Readonly<Record<string, unknown>> & { readonly type: string };

function isTree(node: unknown): node is Tree {
  return typeof node === 'object' && node !== null && 'type' in node && typeof node.type === 'string';
}

/** The literal's text, with a sign for each value. */
function textOf(node: Tree): string | undefined {
  if (node.type === 'Literal') return typeof node['value'] === 'string' ? node['value'] : undefined;
  if (node.type !== 'TemplateLiteral') return undefined;
  const parts = node['quasis'] as readonly { readonly value: { readonly cooked: string } }[];
  return parts.map((part) => part.value.cooked).join(value);
}

/** The sentences of a module; descriptions in schemas (`about`) are none. */
function sentencesIn(file: string, text: string): readonly string[] {
  const found: string[] = [];
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) walk(each);
    if (!isTree(node) || node.type.startsWith('Import') || node.type === 'TSLiteralType') return;
    const callee = node['callee'] as { readonly name?: string } | undefined;
    if (node.type === 'CallExpression' && callee?.name === 'about') {
      walk((node['arguments'] as readonly unknown[]).slice(1));
      return;
    }
    const own = textOf(node);
    if (own !== undefined && isSentence(own)) found.push(own.replaceAll(value, '…'));
    for (const each of Object.values(node)) walk(each);
  };
  walk(parseSync(file, text).program);
  return found;
}

test('no sentence is made below src/say', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts') && !/^(?:say|cli)\//.test(path));
  const found = new Map(files.map((file) => [file, sentencesIn(file, readFileSync(join(source, file), 'utf8'))]));
  const lines = readFileSync(recorded, 'utf8').split('\n');
  const allowed = new Map(
    lines.flatMap((line) => {
      const [, file = '', number] = /^(\S+) (\d+)$/.exec(line) ?? [];
      return number === undefined ? [] : [[file, Number(number)] as const];
    }),
  );
  const more = [...found].filter(([file, own]) => own.length > (allowed.get(file) ?? 0));
  expect(more, 'give a code and arguments, and say them in src/say').toEqual([]);
  const fewer = [...allowed].filter(([file, number]) => (found.get(file)?.length ?? 0) < number);
  const isUpdated = process.env['UPDATE_GOLDEN'] !== undefined;
  if (isUpdated) writeFileSync(recorded, lowered(lines, found).join('\n'));
  expect(isUpdated ? [] : fewer, 'fewer than recorded: UPDATE_GOLDEN=1 lowers the numbers').toEqual([]);
});

function lowered(lines: readonly string[], found: ReadonlyMap<string, readonly string[]>): readonly string[] {
  return lines.flatMap((line) => {
    const [, file] = /^(\S+) \d+$/.exec(line) ?? [];
    if (file === undefined) return [line];
    const number = found.get(file)?.length ?? 0;
    return number === 0 ? [] : [`${file} ${number}`];
  });
}

describe('a sentence is found', () => {
  test.each([
    "return 'its one endpoint is not ready';",
    'return `${name} has no ready endpoint${why}`;',
    'const what = `with ${number} rules`;',
  ])('%s', (line) => {
    expect(sentencesIn('a.ts', line)).toHaveLength(1);
  });

  test.each([
    "import 'a b c';",
    "about('what it is for', text);",
    "const args = ['-m', 'comment'];",
    "const tool = 'iptables-save';",
  ])('none: %s', (line) => {
    expect(sentencesIn('a.ts', line)).toEqual([]);
  });
});
