// Checks which modules of src import which, against the table in scripts/fence/folders.mjs. `npm run lint` runs this.
// @ts-check
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import { ResolverFactory } from 'oxc-resolver';
import { folders } from './fence/folders.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'src');
const resolver = new ResolverFactory({ conditionNames: ['node', 'import'], builtinModules: true });

/**
 * One import of a module.
 *
 * @typedef {object} Import
 * @property {string} from a file, relative to src with slashes
 * @property {string} to a file of src, `node:` and a module, or the name of a package; '' if it is none of these
 * @property {string} written as the source has it
 * @property {number} line
 * @property {boolean} isType whether nothing of it is left when the program runs
 */

/**
 * What a module imports, and the code in it that loads other code in ways that this cannot follow.
 *
 * @typedef {object} Module
 * @property {readonly Import[]} imports
 * @property {readonly string[]} refused a line of text each
 */

/** Names of functions that load code without an import. */
const loaders = new Set(
  /** @type {unknown[]} */ (['require', 'createRequire', 'getBuiltinModule', 'eval', 'Function', 'constructor']),
);

/** @typedef {{ readonly [key: string]: unknown, readonly type: string, readonly start: number }} Tree */

/**
 * @param {string} from relative to src
 * @param {string} text
 * @returns {Module}
 */
export function readModule(from, text) {
  const { program, errors } = parseSync(from, text);
  const lineOf = (/** @type {Tree} */ node) => text.slice(0, node.start).split('\n').length;
  /** @type {Import[]} */
  const imports = [];
  const refused = errors.map(({ message }) => `${from}: ${message}`);
  visit(program, (node) => {
    const loader = findLoader(node);
    if (loader !== undefined) refused.push(`${from}:${lineOf(node)} uses ${loader}: write an import`);
    if (!node['source']) return;
    const written = /** @type {Tree} */ (node['source'])['value'];
    if (typeof written !== 'string') {
      refused.push(`${from}:${lineOf(node)} imports what only the program knows: write its path as a plain string`);
      return;
    }
    const isType = [node.type, node['importKind'], node['exportKind']].some((kind) => typeKinds.has(kind));
    imports.push({ from, to: resolveImport(from, written), written, line: lineOf(node), isType });
  });
  return { imports, refused };
}

/** The type or kind of an import that leaves nothing in the running program. */
const typeKinds = new Set(/** @type {unknown[]} */ (['TSImportType', 'type']));

/**
 * @param {unknown} tree
 * @param {(node: Tree) => void} see
 */
function visit(tree, see) {
  if (typeof tree !== 'object' || tree === null) return;
  const node = /** @type {Tree} */ (tree);
  if (typeof node.type === 'string') see(node);
  // Allow a class's constructor. Any other use of this name can make functions from text.
  if (node.type === 'MethodDefinition' && node['kind'] === 'constructor') visit(node['value'], see);
  else for (const child of Object.values(node)) visit(child, see);
}

/**
 * Returns the loader that a node names, as a name or as a text.
 *
 * @param {Tree} node
 */
function findLoader(node) {
  if (node.type === 'TSExternalModuleReference') return 'require';
  const [quasi] = /** @type {readonly { readonly value: { readonly cooked: string } }[]} */ (node['quasis'] ?? []);
  const word = [node['name'], node['value'], quasi?.value.cooked].find((each) => loaders.has(each));
  return word === undefined ? undefined : String(word);
}

/**
 * @param {string} from
 * @param {string} written
 */
function resolveImport(from, written) {
  if (written === '#checks' || written === '#codes') return written;
  if (isBuiltin(written)) return written.startsWith('node:') ? written : `node:${written}`;
  const { path } = resolver.resolveFileSync(join(source, from), written);
  if (path === undefined) return '';
  const [, inPackage] = path.split(/.*[\\/]node_modules[\\/]/);
  if (inPackage !== undefined) return written.startsWith('.') ? '' : packageOf(inPackage.split(sep).join('/'));
  return path.startsWith(join(source, sep)) ? relative(source, path).split(sep).join('/') : '';
}

/**
 * Returns "@noble/hashes" for "@noble/hashes/sha2.js".
 *
 * @param {string} path
 */
function packageOf(path) {
  return path
    .split('/')
    .slice(0, path.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Rows of inner folders come before the row of the folder around them. */
const rows = Object.keys(folders).toSorted((a, b) => b.length - a.length);

/**
 * Returns the row that a file of src belongs to: the longest row that its path begins with.
 *
 * @param {string} path
 */
export function folderOf(path) {
  return rows.find((row) => path === row || path.startsWith(`${row}/`)) ?? path.split('/', 1).join('');
}

/**
 * Returns why an import breaks the table, as a line of text; undefined if it does not.
 *
 * @param {Import} each
 */
export function describeBreach({ from, to, written, line }) {
  const folder = folderOf(from);
  const rule = folders[folder];
  const place = `${from}:${line} imports ${written}`;
  if (!rule) return `${place}: the folder ${folder} is not in the table`;
  if (to === '') return `${place}, which is neither a file of src nor a package`;
  if (to.startsWith('node:')) return rule.node.includes(to.slice(5)) ? undefined : `${place}: ${folder} may not`;
  if (!/\.(?:ts|json)$/.test(to)) return rule.packages.includes(to) ? undefined : `${place}: ${folder} may not`;
  const other = folderOf(to);
  return other === folder || rule.folders.includes(other) ? undefined : `${place}: ${folder} may not`;
}

export function readModules() {
  return readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(?!json$)\w+$/.test(path))
    .map((path) => path.split(sep).join('/'))
    .map((path) => readModule(path, readFileSync(join(source, path), 'utf8')));
}

/**
 * Lists everything that breaks the table, one line each.
 *
 * @param {readonly Module[]} modules
 */
export function findBreaches(modules) {
  return modules.flatMap(({ imports, refused }) => [
    ...refused,
    ...imports.flatMap((each) => describeBreach(each) ?? []),
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const breaches = findBreaches(readModules());
  for (const breach of breaches) process.stderr.write(`src/${breach}\n`);
  if (breaches.length > 0) process.exitCode = 1;
}
