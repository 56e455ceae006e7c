// The texts of the codes, for kpc explain, SARIF, completion and docs: the module #codes, made of fixtures/codes when a program is
// built, and when tests run. A program needs none of its files.
//
// fixtures/codes/CODE holds what a code of kpc means:
//   about.yaml   meaning; advice, if the message does not say what to do; of a rule of kpc lint, why and reports (links); files, if
//                those of the example are not to be shown in the order of their names with in.yaml first
//   example/     files, and the command that gives the message in this folder
//   said.txt     the message
//   passes/      of a rule of kpc lint: the same as example, with files that are right, though they look much like its own
// about-kpc-apply.yaml there is the meaning and the advice of an error of kpc-apply. A file NAME.mjs in example or passes makes the
// file NAME: its default export is the text.
// @ts-check
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parse } from 'yaml';

/** @typedef {typeof import('../src/say/codes-module.d.ts')} Module */
/** @typedef {import('../src/say/codes-module.d.ts').Example} Example */

export const codesFolder = join(dirname(fileURLToPath(import.meta.url)), '../fixtures/codes');

/**
 * The command of a folder, and the files that it reads.
 *
 * @param {string} folder
 * @param {readonly string[]} [order] of the files
 * @returns {Promise<Example>}
 */
export async function readExample(folder, order) {
  /** @type {Map<string, string>} */
  const files = new Map();
  let words = '';
  for (const below of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, below);
    if (!statSync(path).isFile()) continue;
    const name = below.split(sep).join('/');
    if (name === 'command') words = readFileSync(path, 'utf8').trim();
    else if (!name.endsWith('.mjs')) files.set(name, readFileSync(path, 'utf8'));
    else files.set(name.slice(0, -'.mjs'.length), (await import(pathToFileURL(path).href)).default);
  }
  const names = order ?? [...files.keys()].sort(byName);
  return {
    words: words.split(' ').slice(1),
    files: Object.fromEntries(names.map((name) => [name, files.get(name) ?? ''])),
  };
}

/**
 * @param {string} a
 * @param {string} b
 */
function byName(a, b) {
  const [first, second] = [a, b].map((name) => (/(?:^|\/)in\.yaml$/.test(name) ? `0${name}` : `1${name}`));
  return /** @type {string} */ (first) < /** @type {string} */ (second) ? -1 : 1;
}

/** The most lines to show of a file: some examples show what is too large. */
const mostLines = 20;
const longestLine = 120;

/** @param {string} text */
function cutText(text) {
  const lines = text.trimEnd().split('\n', mostLines + 1);
  const shown = lines.map((line) => (line.length > longestLine ? `${line.slice(0, longestLine)}…` : line));
  return [...shown.slice(0, mostLines), ...(shown.length > mostLines ? ['…'] : [])].join('\n');
}

/**
 * The files of an example as a reader sees them, the command, and what it says.
 *
 * @param {Example} example
 * @param {string} said
 */
function show({ words, files }, said) {
  const indent = (/** @type {string} */ text) => text.replace(/^(?=.)/gm, '    ');
  const inputs = Object.entries(files).map(([name, text]) => `${name}:\n\n${indent(cutText(text))}\n\n`);
  return `${inputs.join('')}$ kpc ${words.join(' ')}\n\n${indent(said)}`;
}

/** Longer texts are in no program: a message about very long files has an example of that length. */
const longest = 100_000;

/**
 * What fixtures/codes holds.
 *
 * @returns {Promise<Module>}
 */
export async function readCodes() {
  /** @type {Record<'codes' | 'examples' | 'failures', Record<string, object>>} */
  const { codes, examples, failures } = { codes: {}, examples: {}, failures: {} };
  for (const code of readdirSync(codesFolder).sort()) {
    const pathOf = (/** @type {string} */ name) => join(codesFolder, code, name);
    const read = (/** @type {string} */ name) => parse(readFileSync(pathOf(name), 'utf8'));
    if (existsSync(pathOf('about-kpc-apply.yaml'))) failures[code] = read('about-kpc-apply.yaml');
    if (!existsSync(pathOf('about.yaml'))) continue;
    const { files: order, ...about } = read('about.yaml');
    const { words, files } = await readExample(pathOf('example'), order);
    const said = existsSync(pathOf('said.txt')) ? readFileSync(pathOf('said.txt'), 'utf8') : '';
    codes[code] = { ...about, shown: show({ words, files }, said) };
    const held = Object.entries(files).map(([name, text]) => [name, text.length > longest ? cutText(text) : text]);
    examples[code] = { words, files: Object.fromEntries(held) };
  }
  return /** @type {Module} */ (/** @type {unknown} */ ({ codes, examples, failures }));
}

async function moduleText() {
  const parts = Object.entries(await readCodes());
  return parts.map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};\n`).join('');
}

/**
 * For the programs.
 *
 * @type {import('esbuild').Plugin}
 */
export const codesModule = {
  name: 'codes',
  setup(build) {
    build.onResolve({ filter: /^#codes$/ }, () => ({ path: 'codes', namespace: 'codes', sideEffects: false }));
    build.onLoad({ filter: /./, namespace: 'codes' }, async () => ({ contents: await moduleText() }));
  },
};

/**
 * For Vitest.
 *
 * @type {import('vitest/config').Plugin}
 */
export const codesInTests = {
  name: 'codes',
  enforce: 'pre',
  resolveId: (id) => (id === '#codes' ? '\0codes' : undefined),
  load: (id) => (id === '\0codes' ? moduleText() : undefined),
};
