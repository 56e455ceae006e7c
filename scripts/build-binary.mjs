// Makes dist/kpc-linux-x64 and dist/kpc-apply-linux-x64: each program with Node inside, for machines that have no Node. It is
// the very Node that runs this script, with the program put into it by Node's own means (single executable applications).
// @ts-check
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
// @ts-expect-error: the package has no types.
import { inject } from 'postject';
import { compileSchemas } from './compile-schemas.mjs';
import { buildMark, nameBuild } from './name-build.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

if (process.platform !== 'linux' || process.arch !== 'x64') {
  console.error(`This is ${process.platform}-${process.arch}: run it with Node for linux-x64.`);
  process.exit(2);
}

const work = mkdtempSync(join(tmpdir(), 'kpc-binary-'));
try {
  for (const program of ['kpc', 'kpc-apply']) {
    const out = join(root, 'dist', `${program}-linux-x64`);
    await buildBinary(program, out);
    console.log(`${out}: ${Math.round(statSync(out).size / 1e6)} MB`);
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}

/**
 * Puts a program into a copy of this Node.
 *
 * @param {string} program
 * @param {string} out
 */
async function buildBinary(program, out) {
  const script = join(work, `${program}.cjs`);
  await build({
    stdin: {
      contents: `
        import { main } from './src/cli/${program}/main.ts';
        main(process.argv.slice(2)).then((status) => { process.exitCode = status; });
      `,
      resolveDir: root,
      loader: 'ts',
    },
    outfile: script,
    bundle: true,
    platform: 'node',
    target: 'node20',
    // The one form that a single executable can start with.
    format: 'cjs',
    minify: true,
    mainFields: ['module', 'main'],
    define: { KPC_VERSION: JSON.stringify(version), KPC_BUILD: JSON.stringify(buildMark), KPC_IS_BINARY: 'true' },
    plugins: [compileSchemas],
    logLevel: 'warning',
  });
  writeFileSync(script, nameBuild(readFileSync(script, 'utf8')));
  const blob = join(work, `${program}.blob`);
  const config = join(work, `${program}.json`);
  // With what V8 makes of the script, each start is 10 ms shorter; it is of this very Node.
  const settings = { main: script, output: blob, disableExperimentalSEAWarning: true, useCodeCache: true };
  writeFileSync(config, JSON.stringify(settings));
  execFileSync(process.execPath, ['--experimental-sea-config', config], { stdio: ['ignore', 'ignore', 'inherit'] });
  mkdirSync(dirname(out), { recursive: true });
  // Beside it first: a program that runs cannot be written over.
  const unfinished = `${out}.${process.pid}`;
  copyFileSync(process.execPath, unfinished);
  chmodSync(unfinished, 0o755);
  await inject(unfinished, 'NODE_SEA_BLOB', readFileSync(blob), {
    // Where Node looks for a program in itself: part of its documentation, not a secret.
    sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
  });
  renameSync(unfinished, out);
}
