// Bundles each program into one file of dist/ that needs Node and nothing else.
//
// Starting takes as long as V8 takes to read the file, so it is minified, and what a program needs only for some commands
// it imports dynamically: esbuild keeps that in the same file, unevaluated until then. The files are CommonJS, which Node
// starts faster than ES modules, with only those of its own modules that the command at hand asks for, and in any folder.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { compileSchemas } from './compile-schemas.mjs';
import { loadLate } from './load-late.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Exports the program's main, and runs it where the file itself is what node was told to run. */
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

mkdirSync(join(root, 'dist'), { recursive: true });
writeFileSync(join(root, 'dist', 'package.json'), '{ "type": "commonjs" }\n');

for (const program of ['kpc', 'kpc-apply']) {
  const source = `src/cli/${program}.ts`;
  if (!existsSync(join(root, source))) continue;
  await build({
    stdin: { contents: entry(source), resolveDir: root, sourcefile: `${program}.entry.ts`, loader: 'ts' },
    outfile: join(root, 'dist', `${program}.js`),
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    minify: true,
    plugins: [compileSchemas, loadLate],
    // Of packages that come both ways, the ES modules: a UMD wrapper hides its imports from the bundler.
    mainFields: ['module', 'main'],
    define: { KPC_VERSION: JSON.stringify(version) },
    banner: { js: '#!/usr/bin/env node' },
    logLevel: 'warning',
  });
}
