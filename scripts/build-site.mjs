// Builds the playground into site/dist/playground: with "--playground", that alone; else the pages of docs too (npm run site).
// @ts-check
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { compileSchemas } from './compile-schemas.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'site/playground');
const target = join(root, 'site/dist/playground');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** @satisfies {import('esbuild').BuildOptions} */
const shared = {
  absWorkingDir: root,
  bundle: true,
  write: false,
  minify: true,
  platform: 'browser',
  target: 'es2022',
  mainFields: ['module', 'main'],
  alias: { yaml: './node_modules/yaml/browser/dist/index.js' },
  define: { KPC_VERSION: JSON.stringify(version) },
  plugins: [compileSchemas],
  // Modules that read files are on the way to what is used here. None of them is left in the result.
  external: ['node:*'],
  logLevel: 'warning',
};

/**
 * @param {string} entry
 * @param {'esm' | 'iife'} format
 * @param {Record<string, string>} [define]
 */
async function bundle(entry, format, define = {}) {
  const { outputFiles } = await build({
    ...shared,
    write: false,
    entryPoints: [join(source, `${entry}.ts`)],
    format,
    define: { ...shared.define, ...define },
  });
  const text = outputFiles[0]?.text ?? '';
  if (/["']node:/.test(text)) throw new Error(`${entry} needs a module of Node`);
  return text;
}

const files = new Map([
  ['index.html', readFileSync(join(source, 'index.html'), 'utf8')],
  ['style.css', readFileSync(join(source, 'style.css'), 'utf8')],
  ['icon.svg', readFileSync(join(source, 'icon.svg'), 'utf8')],
  ['page.js', await bundle('page', 'esm')],
  ['worker.js', await bundle('worker', 'iife')],
]);
const hash = createHash('sha256');
for (const [name, text] of files) hash.update(`${name}\0${text}\0`);
const define = {
  FILES: JSON.stringify(['./', ...files.keys()]),
  VERSION: JSON.stringify(hash.digest('hex').slice(0, 12)),
};
files.set('service-worker.js', await bundle('service-worker', 'iife', define));

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
for (const [name, text] of files) writeFileSync(join(target, name), text);
