// Builds the playground into site/dist/playground. Without "--playground", also builds the pages of docs (npm run site).
// @ts-check
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { checksModule } from './checks-module.mjs';
import { codesModule } from './codes-module.mjs';
import { homeFiles, nameOnSite, pageFiles } from '../site/.vitepress/pages.mjs';

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
  charset: 'utf8',
  platform: 'browser',
  target: 'es2022',
  mainFields: ['module', 'main'],
  plugins: [checksModule, codesModule],
  alias: { yaml: './node_modules/yaml/browser/dist/index.js' },
  define: { KPC_VERSION: JSON.stringify(version) },
  // The imported modules import others that read files, but none of these stays in the result.
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
    entryPoints: [join(source, entry)],
    format,
    define: { ...shared.define, ...define },
  });
  const text = outputFiles[0]?.text ?? '';
  if (/["']node:/.test(text)) throw new Error(`${entry} needs a module of Node`);
  return text;
}

async function buildPlayground() {
  const files = new Map([
    ['index.html', readFileSync(join(source, 'index.html'), 'utf8')],
    ['style.css', await bundle('style.css', 'esm')],
    ['icon.svg', readFileSync(join(source, 'icon.svg'), 'utf8')],
    ['theme.js', await bundle('theme.ts', 'iife')],
    ['page.js', await bundle('page.ts', 'esm')],
    ['worker.js', await bundle('worker.ts', 'iife')],
  ]);
  const hash = createHash('sha256');
  for (const [name, text] of files) hash.update(`${name}\0${text}\0`);
  const define = {
    FILES: JSON.stringify(['./', ...files.keys()]),
    VERSION: JSON.stringify(hash.digest('hex').slice(0, 12)),
  };
  files.set('service-worker.js', await bundle('service-worker.ts', 'iife', define));
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const [name, text] of files) writeFileSync(join(target, name), text);
}

const pagesFolder = join(root, 'site/.pages');
/** The pages' link to the playground's source. On the site, it leads to the built playground. */
const playground = 'site/playground/index.html';
const base = process.env['KPC_SITE_BASE'] ?? '/';

/** Copies the pages, and the files that they show or link to, to the folder that the site's generator reads. */
function collectPages() {
  rmSync(pagesFolder, { recursive: true, force: true });
  for (const file of pageFiles) {
    const to = join(pagesFolder, nameOnSite(file));
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, pageText(file));
  }
  for (const [name, file] of homeFiles)
    writeFileSync(join(pagesFolder, name), withoutWords(readFileSync(join(root, file), 'utf8')));
  mkdirSync(join(pagesFolder, 'public'), { recursive: true });
  copyFileSync(join(root, 'docs/trace.svg'), join(pagesFolder, 'public/trace.svg'));
  for (const name of readdirSync(join(root, 'docs')).filter((each) => each.endsWith('.svg'))) {
    copyFileSync(join(root, 'docs', name), join(pagesFolder, 'docs', name));
  }
}

/**
 * Removes the words after a code block's language, because they are for the tests.
 *
 * @param {string} page
 */
function withoutWords(page) {
  return page.replaceAll(/^```([a-z]+) [^\n]*$/gm, '```$1');
}

/**
 * Returns a page's text for the site.
 *
 * @param {string} file
 */
function pageText(file) {
  return withoutWords(readFileSync(join(root, file), 'utf8')).replaceAll(
    /(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)/g,
    (_, mark, text, link) => {
      const [path = '', heading] = link.split('#');
      const linked = posix.normalize(posix.join(posix.dirname(file), path));
      const anchor = heading === undefined ? '' : `#${heading}`;
      if (linked === playground) return `<a href="${base}playground/" target="_self">${text}</a>`;
      if (mark === '!') return `![${text}](${pathOnSite(file, linked)})`;
      if (pageFiles.includes(linked)) return `[${text}](${pathOnSite(file, linked)}${anchor})`;
      // Keep a link to a folder, because a folder has no page.
      if (statSync(join(root, linked)).isDirectory()) return text;
      return `[${text}](/${publish(linked)})`;
    },
  );
}

/**
 * Returns the path from a page to a file of the project, if the site has both.
 *
 * @param {string} page
 * @param {string} file
 */
function pathOnSite(page, file) {
  return posix.relative(posix.dirname(nameOnSite(page)), nameOnSite(file));
}

/**
 * Publishes a file of the project as text, if it is not a page. Returns its address on the site.
 *
 * @param {string} file
 */
function publish(file) {
  const address = `files/${file}.txt`;
  const to = join(pagesFolder, 'public', address);
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(join(root, file), to);
  return address;
}

function buildPages() {
  const vitepress = join(root, 'site/node_modules/vitepress/bin/vitepress.js');
  const { status } = spawnSync(process.execPath, [vitepress, 'build', join(root, 'site')], { stdio: 'inherit' });
  if (status !== 0) throw new Error('the pages could not be built');
}

if (!process.argv.includes('--playground')) {
  collectPages();
  buildPages();
}
await buildPlayground();
