// Makes dist/kpc-linux-x64 and dist/kpc-apply-linux-x64 with the Node that runs this script, so it needs no network. The packages have
// both programs in one file, for x64 and arm64: see packaging/build.mjs.
// @ts-check
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeSingleFile } from './single-file.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

if (process.platform !== 'linux' || process.arch !== 'x64') {
  console.error(`This is ${process.platform}-${process.arch}: run it with Node for linux-x64.`);
  process.exit(2);
}

for (const program of ['kpc', 'kpc-apply']) {
  const out = join(root, 'dist', `${program}-linux-x64`);
  const source = `
    import { main } from './src/cli/${program}/main.ts';
    main(process.argv.slice(2)).then((status) => { process.exitCode = status; });
  `;
  await makeSingleFile({ source, out, node: process.execPath, maker: process.execPath, withCache: true });
  console.log(`${out}: ${Math.round(statSync(out).size / 1e6)} MB`);
}
