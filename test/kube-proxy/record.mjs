// Records what kube-proxy programs, with Go: npm run record [-- [--release 1.36]… [--case NAME]…]
//
// Each release of kube-proxy is a Go module of its own: recorder/go-VERSION.mod. A release that has recordings is recorded for
// the cases that it has them of; a new release for all cases, and a new case for all releases.
// @ts-check
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inputFiles, readRecordings, writeRecordings } from './cases.mjs';
import { readConfigurations, writeConfigurations } from './configurations.mjs';
import { readGates, writeGates } from './gates-table.mjs';

/**
 * @typedef {object} Source
 * @property {string} release The release that the recordings are of.
 * @property {string} [modfile] Undefined for a release that is built by recorder/newer-go.sh, of the newest version that there is.
 * @property {string[]} modes None where only the feature gates are recorded.
 */

const allModes = ['iptables', 'ipvs', 'nftables'];
const knownModes = [...allModes, 'userspace'];
// In 1.32 and before, kpc does not follow mode nftables.
const olderModes = ['iptables', 'ipvs'];

/** @type {Source[]} Newest first. */
const sources = [
  { release: '1.38', modes: allModes },
  { release: '1.37', modfile: 'go.mod', modes: allModes },
  { release: '1.36', modfile: 'go-1.36.mod', modes: allModes },
  { release: '1.35', modfile: 'go-1.35.mod', modes: allModes },
  { release: '1.34', modfile: 'go-1.34.mod', modes: allModes },
  { release: '1.33', modfile: 'go-1.33.mod', modes: allModes },
  { release: '1.32', modfile: 'go-1.32.mod', modes: olderModes },
  { release: '1.31', modfile: 'go-1.31.mod', modes: [] },
  { release: '1.30', modfile: 'go-1.30.mod', modes: olderModes },
  { release: '1.25', modfile: 'go-1.25.mod', modes: ['userspace'] },
];

/** The last releases before kube-proxy's interfaces changed: recorder/*_up_to_*.go. */
const lastBeforeChanges = [30, 32, 33, 35, 36, 37];

/** @param {string} release */
function tagsOf(release) {
  if (release === '1.25') return ['userspace', 'up_to_1_35'];
  return lastBeforeChanges.filter((last) => minorOf(release) <= last).map((last) => `up_to_1_${last}`);
}

/** @param {string} release */
function minorOf(release) {
  return Number(release.slice('1.'.length));
}

const { values } = parseArgs({
  options: { release: { type: 'string', multiple: true }, case: { type: 'string', multiple: true } },
});
const { inputs, states } = readRecordings();
const gates = readGates();
const configurations = readConfigurations();
const newCases = new Set(Object.keys(inputs).filter((name) => !isRecorded(name)));
const recorder = join(import.meta.dirname, 'recorder');
const scratch = mkdtempSync(join(tmpdir(), 'kpc-record-'));
try {
  for (const source of sources) if (values.release?.includes(source.release) ?? true) recordRelease(source);
  writeRecordings(inputs, states);
  writeGates(gates);
  writeConfigurations(configurations);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
// All that Go says is recorded together: also what kubectl makes of YAML.
if (!values.release && !values.case) await import('../yaml/record.mjs');

/** @param {Source} source */
function recordRelease(source) {
  const { release, modfile, modes } = source;
  const version = modfile === undefined ? newestVersion(release) : versionIn(modfile);
  const programs = build(source, version);
  for (const known of Object.keys(gates)) if (known.startsWith(`v${release}.`)) delete gates[known];
  gates[version] = JSON.parse(execFileSync(join(programs, 'gates'), { encoding: 'utf8' }));
  for (const { text, refusals } of release === '1.25' ? [] : configurations) {
    const said = execFileSync(join(programs, 'start'), {
      encoding: 'utf8',
      input: text,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    refusals[release] = said.trim();
  }
  const folder = join(scratch, release);
  const cases = modes.length === 0 ? [] : listCases(release);
  for (const name of cases) writeInput(join(folder, 'in', name), inputs[name] ?? {});
  const folders = cases.map((name) => join(folder, 'in', name));
  if (cases.length > 0) {
    const args = ['-modes', modes.join(), join(folder, 'out'), ...folders];
    execFileSync(join(programs, 'recorder'), args, { stdio: 'inherit' });
  }
  for (const name of cases) {
    for (const file of readdirSync(join(folder, 'out', name))) {
      const key = `${name}/${file.slice(0, -'.txt'.length)}`;
      states[key] = inOrder({ ...states[key], [release]: readFileSync(join(folder, 'out', name, file), 'utf8') });
    }
  }
  console.log(`${release}: recorded ${version}, ${cases.length} cases`);
}

/**
 * The newest version of a release that the module proxy has: go lists them by age.
 *
 * @param {string} release
 */
function newestVersion(release) {
  const listed = execFileSync('go', ['list', '-m', '-versions', 'k8s.io/kubernetes'], {
    cwd: tmpdir(),
    encoding: 'utf8',
  });
  const found = listed
    .trim()
    .split(' ')
    .findLast((version) => version.startsWith(`v${release}.`));
  if (found === undefined) throw new Error(`no version of Kubernetes ${release}`);
  return found;
}

/** @param {string} modfile */
function versionIn(modfile) {
  return /k8s\.io\/kubernetes (v\S+)/.exec(readFileSync(join(recorder, modfile), 'utf8'))?.[1] ?? '';
}

/**
 * Builds the recorder's programs, and returns their folder.
 *
 * @param {Source} source
 * @param {string} version
 */
function build({ release, modfile, modes }, version) {
  const out = join(scratch, `programs-${release}`, '/');
  /** @type {NodeJS.ProcessEnv} */
  const env = { ...process.env, CGO_ENABLED: '0' };
  let flags = [`-modfile=${modfile}`];
  if (modfile === undefined) {
    const newer = join(scratch, `sources-${release}`);
    execFileSync(join(recorder, 'newer-go.sh'), [version.slice(1), newer], { stdio: 'inherit' });
    flags = ['-mod=mod', `-modfile=${join(newer, 'go.mod')}`, `-overlay=${join(newer, 'overlay.json')}`];
    env['GOEXPERIMENT'] = 'jsonv2';
  }
  const packages = ['./gates', ...(release === '1.25' ? [] : ['./start']), ...(modes.length === 0 ? [] : ['.'])];
  mkdirSync(out, { recursive: true });
  execFileSync('go', ['build', ...flags, '-tags', tagsOf(release).join(), '-o', out, ...packages], {
    cwd: recorder,
    env,
    stdio: 'inherit',
  });
  return out;
}

/** @param {string} release */
function listCases(release) {
  const isNewRelease = !Object.values(states).some((recorded) => release in recorded);
  return Object.keys(inputs).filter((name) => {
    const since = /-since-1\.(\d+)$/.exec(name)?.[1] ?? '0';
    if (minorOf(release) < Number(since)) return false;
    if (values.case) return values.case.includes(name);
    return isNewRelease || newCases.has(name) || isRecorded(name, release);
  });
}

/**
 * @param {string} name
 * @param {string} [release] Any, if there is none.
 */
function isRecorded(name, release) {
  return knownModes.some((mode) => {
    const recorded = states[`${name}/${mode}`];
    return release === undefined ? recorded !== undefined : recorded?.[release] !== undefined;
  });
}

/**
 * The newest release first.
 *
 * @param {Record<string, string>} recorded
 */
function inOrder(recorded) {
  return Object.fromEntries(Object.entries(recorded).toSorted(([a], [b]) => (a > b ? -1 : 1)));
}

/**
 * @param {string} folder
 * @param {import('./cases.mjs').Input} input
 */
function writeInput(folder, input) {
  mkdirSync(folder, { recursive: true });
  for (const file of inputFiles) writeFileSync(join(folder, file), input[file] ?? '');
}
