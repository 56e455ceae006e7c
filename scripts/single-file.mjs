// Makes single-file executables (programs with Node inside) for machines without Node. Node's own tool for single executable applications
// puts the program into a copy of Node.
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
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
// @ts-expect-error: the package has no types.
import { inject } from 'postject';
import { checksModule } from './checks-module.mjs';
import { codesModule } from './codes-module.mjs';
import { buildMark, nameBuild } from './name-build.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/**
 * @typedef {object} Choice
 * @property {string} source what runs, as TypeScript: paths count from the root of the project
 * @property {string} out the file to write
 * @property {string} node the Node that it is put into
 * @property {string} maker a Node of the same version that runs on this machine
 * @property {boolean} withCache whether to add what V8 makes of the script. Each start is 10 ms shorter; it is of that very
 *   Node on that very machine
 */

/**
 * Bundles a program into one CommonJS file, the only form that a single executable can start.
 *
 * @param {string} source as in Choice
 * @param {{ readonly isBinary: boolean }} form whether it is put into Node
 */
export async function bundleProgram(source, { isBinary }) {
  const { metafile, outputFiles } = await build({
    stdin: { contents: source, resolveDir: root, loader: 'ts' },
    absWorkingDir: root,
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    minify: true,
    mainFields: ['module', 'main'],
    plugins: [checksModule, codesModule],
    define: {
      KPC_VERSION: JSON.stringify(version),
      KPC_BUILD: JSON.stringify(buildMark),
      KPC_IS_BINARY: String(isBinary),
    },
    logLevel: 'warning',
  });
  return { text: nameBuild(outputFiles[0]?.text ?? ''), metafile };
}

/**
 * Bundles a program and puts it into a copy of Node.
 *
 * @param {Choice} choice
 * @returns {Promise<import('esbuild').Metafile>} what is in it
 */
export async function makeSingleFile({ source, out, node, maker, withCache }) {
  const work = mkdtempSync(join(tmpdir(), 'kpc-binary-'));
  try {
    const { text, metafile } = await bundleProgram(source, { isBinary: true });
    writeFileSync(join(work, 'program.cjs'), text);
    const settings = {
      main: 'program.cjs',
      output: 'program.blob',
      disableExperimentalSEAWarning: true,
      useCodeCache: withCache,
    };
    writeFileSync(join(work, 'settings.json'), JSON.stringify(settings));
    execFileSync(maker, ['--experimental-sea-config', 'settings.json'], {
      cwd: work,
      // Node reports success on stderr. If it fails, this output is part of the error.
      stdio: 'pipe',
    });
    mkdirSync(dirname(out), { recursive: true });
    // Write beside the file first, because a running program cannot be overwritten.
    const unfinished = `${out}.${process.pid}`;
    copyFileSync(node, unfinished);
    chmodSync(unfinished, 0o755);
    await inject(unfinished, 'NODE_SEA_BLOB', readFileSync(join(work, 'program.blob')), {
      // Node looks for its program after this text, which is documented and not a secret.
      sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2',
    });
    renameSync(unfinished, out);
    return metafile;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
