// Records what np-guard's netpol-analyzer says of random policy sets, with Go: npm run record:policies
//
// NETPOL_ANALYZER and NETPOL_MODELS name checkouts of github.com/np-guard/netpol-analyzer and github.com/np-guard/models. Without
// them, both are cloned from GitHub.
// @ts-check
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';

const here = import.meta.dirname;
const scratch = mkdtempSync(join(tmpdir(), 'kpc-netpol-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));

/** @type {(variable: string, repository: string, commit: string) => string} */
function checkout(variable, repository, commit) {
  const folder = join(scratch, repository);
  const given = process.env[variable];
  if (given !== undefined) cpSync(given, folder, { recursive: true });
  else {
    execFileSync('git', ['clone', '--quiet', `https://github.com/np-guard/${repository}`, folder], {
      stdio: 'inherit',
    });
    execFileSync('git', ['-C', folder, 'checkout', '--quiet', commit], { stdio: 'inherit' });
  }
  return folder;
}

const analyzer = checkout('NETPOL_ANALYZER', 'netpol-analyzer', 'e54a33430edb4a86f077544a5d15afb050e8a3c3');
const models = checkout('NETPOL_MODELS', 'models', 'v0.5.7');
const program = join(analyzer, 'cmd', 'answers');
mkdirSync(program, { recursive: true });
cpSync(join(here, 'answers.go.txt'), join(program, 'main.go'));
const go = { cwd: analyzer, maxBuffer: 2 ** 28 };
execFileSync('go', ['mod', 'edit', '-replace', `github.com/np-guard/models=${models}`], go);
execFileSync('go', ['build', '-o', join(scratch, 'answers'), './cmd/answers'], go);

const entryPoints = [join(here, 'make-policy-sets.ts')];
await build({ entryPoints, bundle: true, format: 'esm', outfile: join(scratch, 'sets.mjs'), logLevel: 'warning' });
/** @type {typeof import('./make-policy-sets.ts')} */
const { makePolicySet } = await import(join(scratch, 'sets.mjs'));
const sets = Array.from({ length: 1000 }, (_, seed) => JSON.stringify(makePolicySet(seed)));
const answers = execFileSync(join(scratch, 'answers'), { ...go, input: sets.join('\n') });
const lines = answers.toString('utf8').trimEnd().split('\n');
writeFileSync(join(here, 'answers.txt'), `${lines.map(shorten).join('\n')}\n`);

/** One bit an answer, in hexadecimal. @type {(line: string) => string} */
function shorten(line) {
  if (!/^[01]{24}$/.test(line)) throw new Error(line);
  return Number.parseInt(line, 2).toString(16).padStart(6, '0');
}
