import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import type { checkSync } from 'recheck';
import { expect, test } from 'vitest';
import { isFull } from '../support/rounds.ts';
import { projectFolder } from '../support/run-kpc.ts';

// The build for browsers has neither a process nor a thread of its own.
const { resolve } = createRequire(import.meta.url);
const searcher = resolve('recheck/lib/browser.js');
const recheck = createRequire(import.meta.url)(searcher) as { readonly checkSync: typeof checkSync };

/**
 * No limit is a time, so that the answer is the same on every machine. Small ones: what has no short automaton is tried with
 * fewer texts, which finds all that its usual limits found here, in a fifth of the time.
 */
const limits = {
  timeout: null,
  incubationTimeout: null,
  attackTimeout: null,
  maxNFASize: 1500,
  maxIteration: 2,
  maxInitialGenerationSize: 60,
  maxGenerationSize: 30,
  maxAttackStringSize: 30_000,
  incubationLimit: 10_000,
  attackLimit: 3_000_000,
};

interface Pattern {
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

type Tree = { readonly [key: string]: unknown; readonly type?: string; readonly start?: number };

/** All regular expressions of a source: literals, and what `RegExp` is given. What is put into a template counts as "x". */
function listPatterns(file: string, text: string): readonly Pattern[] {
  const found: Pattern[] = [];
  const place = ({ start }: Tree) => `${file}:${text.slice(0, start).split('\n').length}`;
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) node.forEach(visit);
    else if (typeof node === 'object' && node !== null) {
      const tree = node as Tree;
      if (isLiteral(tree)) {
        found.push({ place: place(tree), source: tree.regex.pattern, flags: tree.regex.flags });
        return;
      }
      if (isConstructed(tree)) {
        const [source, flags] = tree.arguments.map(fixedText);
        found.push({ place: place(tree), source: source ?? '(a*)*$', flags: flags ?? '' });
      }
      Object.values(tree).forEach(visit);
    }
  };
  visit(parseSync(file, text).program);
  return found;
}

function isLiteral(
  node: Tree,
): node is Tree & { readonly regex: { readonly pattern: string; readonly flags: string } } {
  return node.type === 'Literal' && node['regex'] !== undefined && node['regex'] !== null;
}

function isConstructed(node: Tree): node is Tree & { readonly arguments: readonly Tree[] } {
  const isCall = node.type === 'NewExpression' || node.type === 'CallExpression';
  return isCall && (node['callee'] as Tree)['name'] === 'RegExp';
}

/** The text of a literal or a template; undefined for what only the program knows. */
function fixedText(node: Tree): string | undefined {
  if (node.type === 'Literal') return String(node['value']);
  if (node.type !== 'TemplateLiteral') return undefined;
  return (node['quasis'] as readonly { readonly value: { readonly cooked: string } }[])
    .map(({ value }) => value.cooked)
    .join('x');
}

/** Whether some text takes longer than in proportion to its length: squares of it, or worse. */
function isSlow({ source, flags }: Pattern): boolean {
  return /[*+{]/.test(source) && recheck.checkSync(source, flags, limits).status !== 'safe';
}

const folder = join(projectFolder, 'src');
const patterns = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .flatMap((path) => listPatterns(path, readFileSync(join(folder, path), 'utf8')));

/**
 * Patterns that this searcher found safe with these limits, as text: the answer is the same each time, and takes seconds of CPU time.
 * A line says what searched, then each pattern has one. UPDATE_GOLDEN=1 writes the file; `npm run test:all` searches all anew.
 */
const record = join(projectFolder, 'test/architecture/safe-patterns.txt');
const searched = `${createHash('sha256').update(readFileSync(searcher)).digest('hex')} ${JSON.stringify(limits)}`;
const keyOf = ({ source, flags }: Pattern): string => JSON.stringify([source, flags]);

function readSafe(text: string): ReadonlySet<string> {
  const [by, ...keys] = text.split('\n');
  return new Set(by === searched ? keys : []);
}

test('no regular expression takes longer than in proportion to its text', () => {
  expect(patterns.length).toBeGreaterThan(300);
  const updates = process.env['UPDATE_GOLDEN'] === '1';
  const safe = isFull || updates ? new Set() : readSafe(readFileSync(record, 'utf8'));
  const different = [...new Map(patterns.map((pattern) => [keyOf(pattern), pattern])).values()];
  expect(different.filter((pattern) => !safe.has(keyOf(pattern)) && isSlow(pattern))).toEqual([]);
  if (updates) writeFileSync(record, `${[searched, ...different.map(keyOf).toSorted()].join('\n')}\n`);
}, 3_600_000);

test('what another searcher, or other limits, found safe is searched anew', () => {
  const key = keyOf({ place: '', source: 'a+', flags: 'g' });
  expect(readSafe(`${searched}\n${key}\n`).has(key)).toBe(true);
  expect(readSafe(`${searched}\n${key}\n`).has(keyOf({ place: '', source: 'a+', flags: '' }))).toBe(false);
  expect(readSafe(`${searched.replace('"maxIteration":2', '"maxIteration":1')}\n${key}\n`).size).toBe(0);
  expect(readSafe(`0${searched}\n${key}\n`).size).toBe(0);
});

test.each([
  ['blanks in front of anything', String.raw`const x = /^(\S+)\s*=\s*(.*)$/;`],
  ['a start at each character', String.raw`text.replace(/ +$/, '')`],
  ['a start at each word', String.raw`text.matchAll(/src=(\S+) dst=(\S+)/g)`],
  ['nested', String.raw`/^(?:\w+,?)*$/.test(text)`],
  ['of a template', 'new RegExp(`^${name} *(a*)*$`)'],
  ['what is not fixed', 'RegExp(name)'],
])('slow: %s', (_, text) => {
  const found = listPatterns('slow.ts', text);
  expect(found).toHaveLength(1);
  expect(found.filter(isSlow)).toEqual(found);
});
