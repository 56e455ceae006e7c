// Writes docs/releases.md from the table in src/kube-proxy/releases.ts (npm run docs:releases).
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

const { outputFiles } = await build({
  entryPoints: [join(root, 'scripts/releases/page.ts')],
  bundle: true,
  format: 'esm',
  platform: 'node',
  write: false,
});
const [page] = /** @type {[import('esbuild').OutputFile]} */ (outputFiles);
const { writePage } = await import(`data:text/javascript;base64,${Buffer.from(page.contents).toString('base64')}`);
writeFileSync(join(root, 'docs', 'releases.md'), writePage());
