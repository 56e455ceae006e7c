// Makes the module #codes: the texts of the codes for kpc explain, SARIF, completion and docs. It is made from fixtures/codes when a
// program is built and when tests run, so a program needs none of these files.
//
// fixtures/codes/CODE holds the meaning of a code of kpc:
//   about.yaml   meaning; advice, if the message does not say what to do; for a rule of kpc lint, why and reports (links); files, if
//                the example's files are not shown by name with in.yaml first
//   example/     files, and the command that gives the message in this folder
//   said.txt     the message
//   passes/      for a rule of kpc lint: like example, but with correct files that look much the same
// about-kpc-apply.yaml holds the meaning and advice of an error of kpc-apply. A file NAME.mjs in example or passes makes the file NAME:
// its default export is the text.
// @ts-check
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parse } from 'yaml';

/** @typedef {typeof import('../src/say/codes-module.d.ts')} Module */
/** @typedef {import('../src/say/codes-module.d.ts').Example} Example */

export const codesFolder = join(dirname(fileURLToPath(import.meta.url)), '../fixtures/codes');

/**
 * Reads the command in a folder, and the files that the command reads.
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

/** Limit on the lines shown of a file, because some examples have files that are too large for kpc. */
const mostLines = 20;
const longestLine = 120;

/** @param {string} text */
function cutText(text) {
  const lines = text.trimEnd().split('\n', mostLines + 1);
  const shown = lines.map((line) => (line.length > longestLine ? `${line.slice(0, longestLine)}…` : line));
  return [...shown.slice(0, mostLines), ...(shown.length > mostLines ? ['…'] : [])].join('\n');
}

/**
 * Formats an example: the files as a reader sees them, the command, and the message.
 *
 * @param {Example} example
 * @param {string} said
 */
function show({ words, files }, said) {
  const indent = (/** @type {string} */ text) => text.replace(/^(?=.)/gm, '    ');
  const inputs = Object.entries(files).map(([name, text]) => `${name}:\n\n${indent(cutText(text))}\n\n`);
  return `${inputs.join('')}$ kpc ${words.join(' ')}\n\n${indent(said)}`;
}

/** Longer texts are cut, because no program should contain them. A message about very long files has such an example. */
const longest = 100_000;

/**
 * Reads fixtures/codes.
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
 * The plugin for programs.
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
 * The plugin for Vitest.
 *
 * @type {import('vitest/config').Plugin}
 */
export const codesInTests = {
  name: 'codes',
  enforce: 'pre',
  resolveId: (id) => (id === '#codes' ? '\0codes' : undefined),
  load: (id) => (id === '\0codes' ? moduleText() : undefined),
};
