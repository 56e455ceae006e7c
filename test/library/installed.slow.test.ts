// The library as a program finds it that installs the tarball: from JavaScript, from TypeScript, and in a bundle.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createContext, runInContext } from 'node:vm';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyCheckout, npm, pack, type Packed } from '../support/pack.ts';
import { projectFolder, runProgram, type Run } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-installed-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const folder = join(scratch, 'program');
const quickstart = join(projectFolder, 'fixtures', 'quickstart');
const expected = readFileSync(join(quickstart, 'expected-ipvs', 'ipvsadm.restore'), 'utf8');

let packed: Packed;
beforeAll(async () => {
  const home = join(scratch, 'home');
  const checkout = copyCheckout(join(scratch, 'checkout'));
  packed = await pack(home, checkout);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const installed = await npm(home, folder, 'install', join(checkout, packed.filename));
  if (installed.status !== 0) throw new Error(installed.stderr);
});

test('is small', () => {
  expect(packed.size).toBeLessThan(2_000_000);
});

/** What every program does after it has imported the library. */
const use = `
const manifests = [{ name: 'svc.yaml', text: readFileSync(${JSON.stringify(join(quickstart, 'svc.yaml'))}, 'utf8') }];
const { bundle, diagnostics } = compile({ manifests, proxyMode: 'ipvs' });
if (!bundle) throw new Error(JSON.stringify(diagnostics));
process.stdout.write(bundle.files.get('ipvsadm.restore') ?? 'no such file');
`;

function run(file: string, text: string): Promise<Run> {
  writeFileSync(join(folder, file), text);
  return runProgram(process.execPath, [join(folder, file)], { cwd: folder });
}

test.each([
  [
    'an ES module',
    'program.mjs',
    "import { readFileSync } from 'node:fs';\nimport { compile } from 'kube-proxy-compiler';",
  ],
  [
    'CommonJS',
    'program.cjs',
    "const { readFileSync } = require('node:fs');\nconst { compile } = require('kube-proxy-compiler');",
  ],
])('compiles from %s', async (_, file, imports) => {
  expect(await run(file, imports + use)).toEqual({ status: 0, stdout: expected, stderr: '' });
});

const withFiles = `
void (async () => {
  const svc = ${JSON.stringify(join(quickstart, 'svc.yaml'))};
  const { bundle, diagnostics } = await compile(svc, { proxyMode: 'ipvs' });
  if (!bundle) throw new Error(JSON.stringify(diagnostics));
  await write('written', bundle.side);
  const { snapshots } = await open('written');
  const { same } = await check('written', bundle.side);
  const changed = await check('written', (await compile(svc, { proxyMode: 'ipvs', masqueradeAll: true })).bundle.side);
  console.log(snapshots.map(({ kind }) => kind).join(), same, changed.files.join());
  await check('nowhere', bundle.side).catch((error) => console.log(error instanceof Refusal));
})();
`;

test.each([
  ['an ES module', 'files.mjs', "import { check, compile, open, Refusal, write } from 'kube-proxy-compiler/node';"],
  ['CommonJS', 'files.cjs', "const { check, compile, open, Refusal, write } = require('kube-proxy-compiler/node');"],
])('reads and writes files from %s', async (_, file, imports) => {
  rmSync(join(folder, 'written'), { recursive: true, force: true });
  const stdout = 'bundle true manifest.json,iptables.restore\ntrue\n';
  expect(await run(file, imports + withFiles)).toEqual({ status: 0, stdout, stderr: '' });
});

const typed = `
import { checkFleet, open as openPaths, verifyBundle, writeFleet, type OpenOptions } from 'kube-proxy-compiler/node';
import {
  compile, compileFleet, diff, formatDiff, open, releases,
  type CompileOptions, type CompileResult, type Finding, type Difference, type KernelState, type NamedText, type Snapshot,
} from 'kube-proxy-compiler';

const manifests: readonly NamedText[] = [{ name: 'svc.yaml', text: '' }];
const options: CompileOptions = { manifests, proxyMode: 'ipvs', ipFamily: 'dual', masqueradeAll: true };
const result: CompileResult = compile(options);
const faults: readonly Finding[] = result.diagnostics.filter(({ severity }) => severity === 'error');
export const lines: readonly (number | undefined)[] = faults.map(({ place }) => place?.line);
const side: Snapshot | undefined = result.bundle?.side;
export const state: KernelState | undefined = side?.state;
export const stored: Snapshot | undefined = open(new Map<string, string>(), { name: 'b' }).snapshots[0];
export const difference: Difference | undefined = side && stored ? diff(side, stored, { foreign: true }) : undefined;
export const text: string = side && stored ? formatDiff(side, stored, 'markdown', { limit: 5 }) : '';
for (const { node, files } of compileFleet({ manifests, nodes: ['a'] }).bundles ?? []) node.concat(files.get('a') ?? '');
export const [first]: readonly string[] = releases;

const asked: OpenOptions = { proxyMode: 'nftables', hostAddresses: 'addresses.json', exclude: ['*.json'] };
export const opened: Promise<readonly Snapshot[]> = openPaths(['a.yaml', 'main:b'], asked).then(({ snapshots }) => snapshots);
export const same: Promise<boolean> = writeFleet('nodes', 'a.yaml').then(() => checkFleet('nodes', 'a.yaml')).then((found) => found.same);
export const refused: Promise<readonly string[] | undefined> = verifyBundle('a.tgz', ['kpc.pub']).then(({ problems }) => problems);

// @ts-expect-error: it is a path here
openPaths('a.yaml', { config: { name: 'a', text: '' } });
// @ts-expect-error: there is no such family
compile({ manifests, ipFamily: 'ipv5' });
// @ts-expect-error: a path is no text
compile({ manifests: ['svc.yaml'] });
// @ts-expect-error: manifests are what is compiled
compile({});
// @ts-expect-error: where nothing compiles there is no bundle
result.bundle.files;
`;

const tsc = join(projectFolder, 'node_modules', 'typescript', 'bin', 'tsc');

// Without the types of Node and of a browser: the library's own do not need them. All declarations are checked, too.
const strict = [
  '--noEmit',
  '--strict',
  '--exactOptionalPropertyTypes',
  '--noUncheckedIndexedAccess',
  '--types',
  '',
  '--lib',
  'es2022',
];

test.each([
  ['an ES module of Node', 'program.mts', ['--module', 'nodenext', '--target', 'es2022']],
  ['CommonJS', 'program.cts', ['--module', 'nodenext', '--target', 'es2022']],
  ['a bundler', 'bundled.ts', ['--module', 'esnext', '--moduleResolution', 'bundler', '--target', 'es2022']],
])('has types for %s', async (_, file, options) => {
  writeFileSync(join(folder, file), typed);
  const checked = await runProgram(process.execPath, [tsc, ...strict, '--skipLibCheck', 'false', ...options, file], {
    cwd: folder,
  });
  expect(checked).toEqual({ status: 0, stdout: '', stderr: '' });
});

test('a wrong type is found', async () => {
  writeFileSync(
    join(folder, 'wrong.mts'),
    "import { compile } from 'kube-proxy-compiler';\nexport const x: number = compile({ manifests: [] });\n",
  );
  const args = [tsc, ...strict, '--module', 'nodenext', '--target', 'es2022', 'wrong.mts'];
  const { status, stdout } = await runProgram(process.execPath, args, { cwd: folder });
  expect(status).not.toBe(0);
  expect(stdout).toContain("Type 'CompileResult' is not assignable to type 'number'");
});

test('runs in a browser from what a bundler makes of it, and as the file alone', async () => {
  const program = `
    const { bundle, diagnostics } = compile({ manifests: [{ name: 'svc.yaml', text }], proxyMode: 'iptables' });
    globalThis.printed = bundle ? bundle.files.get('iptables.restore') : JSON.stringify(diagnostics);`;
  for (const from of ['kube-proxy-compiler', join(folder, 'node_modules/kube-proxy-compiler/dist/browser.mjs')]) {
    const { outputFiles, warnings } = await build({
      stdin: { contents: `import { compile } from ${JSON.stringify(from)};${program}`, resolveDir: folder },
      bundle: true,
      write: false,
      platform: 'browser',
      format: 'iife',
    });
    expect(warnings).toEqual([]);
    const text = readFileSync(join(quickstart, 'svc.yaml'), 'utf8');
    const context = createContext({ TextEncoder, TextDecoder, text });
    runInContext(outputFiles[0]?.text ?? '', context);
    expect(context['printed']).toBe(readFileSync(join(quickstart, 'expected-iptables', 'iptables.restore'), 'utf8'));
  }
});
