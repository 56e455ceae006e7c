// Bundles each program into one file in dist/ that needs only Node. Bundles the library into one file for Node, one for browsers and one
// with files, with its declarations.
//
// Starting takes as long as V8 takes to read the file, so the file is minified. Modules that only some commands need are imported
// dynamically; esbuild keeps them in the same file, unevaluated until then. The files are CommonJS, which Node starts faster than ES
// modules, and load only those modules of Node that a command needs. The same sources give the same bytes, in any folder.
//
// Runs on `npm ci`, before the package is packed (prepare), and by `npm run build`.
// @ts-check
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const { build } = await import('esbuild').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('kpc is built from its sources, which takes esbuild: run "npm ci --include=dev".');
  process.exit(1);
});
const { checksModule } = await import('./checks-module.mjs');
const { codesModule } = await import('./codes-module.mjs');
const { buildMark, nameBuild } = await import('./name-build.mjs');
const { bundledPackages, licencesOf } = await import('./licences.mjs');
const { writeTypes } = await import('./write-types.mjs');

/**
 * Returns a program that exports its main, and runs it if Node was started with this file.
 *
 * @param {string} source
 */
function entry(source) {
  return `
    import { main } from './${source}';
    export { main };
    async function run() {
      process.exitCode = await main(process.argv.slice(2));
    }
    if (require.main === module) void run();
  `;
}

/**
 * Writes a file in dist/ by renaming, so that a program that runs meanwhile reads the old file or the new one.
 *
 * @param {string} name
 * @param {string | Uint8Array} content
 */
function writeOutput(name, content) {
  const path = join(root, 'dist', name);
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, content);
  renameSync(unfinished, path);
}

/**
 * Escapes characters that are not ASCII, which esbuild leaves in regular expressions. With one such character, V8 keeps the
 * whole program in twice the memory, which takes longer to read.
 *
 * @param {string} text
 */
function toAscii(text) {
  return text.replace(/[^\0-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** @satisfies {import('esbuild').BuildOptions} */
const shared = {
  absWorkingDir: root,
  bundle: true,
  write: false,
  metafile: true,
  minify: true,
  // Use short lines, because Node prints the line of an uncaught error.
  lineLimit: 160,
  // Prefer ES modules if a package has both, because a UMD wrapper hides its imports from the bundler.
  mainFields: ['module', 'main'],
  // Use the browser's modules. For Node, this package has CommonJS modules, all of which the bundler would keep, and which load more of
  // Node's modules.
  alias: { yaml: './node_modules/yaml/browser/dist/index.js' },
  plugins: [checksModule, codesModule],
  define: { KPC_VERSION: JSON.stringify(version), KPC_BUILD: JSON.stringify(buildMark) },
  logLevel: 'warning',
};

mkdirSync(join(root, 'dist'), { recursive: true });
writeOutput('package.json', '{ "type": "commonjs" }\n');

/** @type {import('esbuild').Metafile[]} */
const metafiles = [];
for (const program of ['kpc', 'kpc-apply']) {
  const { outputFiles, metafile } = await build({
    ...shared,
    write: false,
    metafile: true,
    stdin: {
      contents: entry(`src/cli/${program}/main.ts`),
      resolveDir: root,
      sourcefile: `${program}.entry.ts`,
      loader: 'ts',
    },
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    banner: { js: '#!/usr/bin/env node' },
  });
  metafiles.push(metafile);
  for (const { text } of outputFiles) writeOutput(`${program}.js`, nameBuild(toAscii(text)));
}

// Keep the names of the sources, so that a stack trace in another program can be read.
const textsEntry = 'src/library/index.ts';
const whole = `export * as texts from './${textsEntry}'; export * from './src/library/node.ts';`;
const library = await build({
  ...shared,
  stdin: { contents: whole, resolveDir: root, sourcefile: 'library.js.entry.ts', loader: 'ts' },
  write: false,
  metafile: true,
  minify: false,
  minifySyntax: true,
  minifyWhitespace: true,
  // Wrappers of CommonJS modules name each module's file. This keeps the names the same in any folder, even if node_modules is a link.
  preserveSymlinks: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
});
metafiles.push(library.metafile);
for (const { contents } of library.outputFiles) writeOutput('library.js', contents);
// All entries are in one file, because they share nearly all of it, and a program that uses several has one library.
const { texts, ...withFiles } = createRequire(import.meta.url)(join(root, 'dist/library.js'));
for (const [name, exported, from] of /** @type {const} */ ([
  ['index.js', texts, `require('./library.js').texts`],
  ['node.js', withFiles, `require('./library.js')`],
])) {
  const names = Object.keys(exported);
  const list = names.map((each) => `exports.${each} = library.${each};\n`).join('');
  writeOutput(name, `'use strict';\nconst library = ${from};\n${list}`);
}
writeOutput(
  'index.mjs',
  `import library from './library.js';\nexport const { ${Object.keys(texts).join(', ')} } = library.texts;\n`,
);
const forBrowsers = await build({
  ...shared,
  entryPoints: [textsEntry],
  write: false,
  metafile: true,
  platform: 'browser',
  target: 'es2022',
  format: 'esm',
});
for (const { contents } of forBrowsers.outputFiles) writeOutput('browser.mjs', contents);
metafiles.push(forBrowsers.metafile);
writeOutput('THIRD-PARTY-LICENSES.txt', licencesOf(root, bundledPackages(metafiles)));
writeTypes(root, ['src/library/index.ts', 'src/library/node.ts'], join(root, 'dist/types'));
