// Bundles kpc-mcp with the Model Context Protocol's SDK into mcp/dist/kpc-mcp.mjs, because kpc does not contain the SDK.
// @ts-check
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { checksModule } from './checks-module.mjs';
import { codesModule } from './codes-module.mjs';
import { bundledPackages, licencesOf, separator } from './licences.mjs';
import { buildMark } from './name-build.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const out = join(root, 'mcp', 'dist');
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['mcp/src/main.ts'],
  outfile: join(out, 'kpc-mcp.mjs'),
  bundle: true,
  metafile: true,
  minifySyntax: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  mainFields: ['module', 'main'],
  plugins: [checksModule, codesModule],
  // Define `require`, because some packages of the SDK are CommonJS.
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);",
  },
  define: { KPC_VERSION: JSON.stringify(version), KPC_BUILD: JSON.stringify(buildMark) },
  logLevel: 'warning',
});
chmodSync(join(out, 'kpc-mcp.mjs'), 0o755);
const licences = [
  licencesOf(root, bundledPackages([metafile])),
  licencesOf(join(root, 'mcp'), bundledPackages([metafile], 'mcp/')),
];
writeFileSync(join(out, 'THIRD-PARTY-LICENSES.txt'), licences.join(separator));
copyFileSync(join(root, 'LICENSE'), join(out, 'LICENSE'));
