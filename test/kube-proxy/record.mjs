// Records what kube-proxy programs, with Go: npm run record [-- [--release 1.36]… [--case NAME]…]
//
// Each release of kube-proxy is a Go module of its own: recorder/go-VERSION.mod. A release that has recordings is recorded for
// the cases that it has them of; a new release for all cases, and a new case for all releases.
// @ts-check
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inputFiles, readRecordings, writeRecordings } from './cases.mjs';

/**
 * @typedef {object} Source
 * @property {string} release The release that the recordings are of.
 * @property {string} modfile
 * @property {string[]} tags What is older than the newest release's interfaces: recorder/release_*.go.
 * @property {string} [gates]
 * @property {string[]} modes
 */

const allModes = ['iptables', 'ipvs', 'nftables'];
const knownModes = [...allModes, 'userspace'];

/** @type {Source[]} Newest first. */
const sources = [
  // Not out yet: 1.37 with the one feature gate that 1.38 turns on and that changes what is programmed.
  {
    release: '1.38',
    modfile: 'go.mod',
    tags: [],
    gates: 'KubeProxyNFTablesLocalhostNodePorts=true',
    modes: allModes,
  },
  { release: '1.37', modfile: 'go.mod', tags: [], modes: allModes },
  { release: '1.36', modfile: 'go-1.36.mod', tags: ['up_to_1_36'], modes: allModes },
  { release: '1.35', modfile: 'go-1.35.mod', tags: ['up_to_1_36', 'up_to_1_35'], modes: allModes },
  { release: '1.34', modfile: 'go-1.34.mod', tags: ['up_to_1_36', 'up_to_1_35'], modes: allModes },
  { release: '1.33', modfile: 'go-1.33.mod', tags: ['up_to_1_36', 'up_to_1_35', 'up_to_1_33'], modes: allModes },
  // In 1.32 and before, kpc does not follow mode nftables.
  {
    release: '1.32',
    modfile: 'go-1.32.mod',
    tags: ['up_to_1_36', 'up_to_1_35', 'up_to_1_33', 'up_to_1_32'],
    modes: ['iptables', 'ipvs'],
  },
  {
    release: '1.30',
    modfile: 'go-1.30.mod',
    tags: ['up_to_1_36', 'up_to_1_35', 'up_to_1_33', 'up_to_1_32', 'up_to_1_30'],
    modes: ['iptables', 'ipvs'],
  },
  { release: '1.25', modfile: 'go-1.25.mod', tags: ['userspace', 'up_to_1_35'], modes: ['userspace'] },
];

const { values } = parseArgs({
  options: { release: { type: 'string', multiple: true }, case: { type: 'string', multiple: true } },
});
const { inputs, states } = readRecordings();
const newCases = new Set(Object.keys(inputs).filter((name) => !isRecorded(name)));
const scratch = mkdtempSync(join(tmpdir(), 'kpc-record-'));
try {
  for (const source of sources) if (values.release?.includes(source.release) ?? true) recordRelease(source);
  writeRecordings(inputs, states);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
// All that Go says is recorded together: also what kubectl makes of YAML.
if (!values.release && !values.case) await import('../yaml/record.mjs');

/** @param {Source} source */
function recordRelease({ release, modfile, tags, gates = '', modes }) {
  const recorder = buildRecorder(modfile, tags);
  const folder = join(scratch, release);
  const cases = listCases(release);
  for (const name of cases) writeInput(join(folder, 'in', name), inputs[name] ?? {});
  const folders = cases.map((name) => join(folder, 'in', name));
  execFileSync(recorder, ['-modes', modes.join(), '-gates', gates, join(folder, 'out'), ...folders], {
    stdio: 'inherit',
  });
  for (const name of cases) {
    for (const file of readdirSync(join(folder, 'out', name))) {
      const key = `${name}/${file.slice(0, -'.txt'.length)}`;
      states[key] = inOrder({ ...states[key], [release]: readFileSync(join(folder, 'out', name, file), 'utf8') });
    }
  }
  console.log(`${release}: recorded ${cases.length} cases`);
}

/**
 * @param {string} modfile
 * @param {string[]} tags
 */
function buildRecorder(modfile, tags) {
  const recorder = join(scratch, `recorder-${modfile}`);
  if (!existsSync(recorder)) {
    const args = ['build', `-modfile=${modfile}`, '-tags', tags.join(), '-o', recorder, '.'];
    const env = { ...process.env, CGO_ENABLED: '0' };
    execFileSync('go', args, { cwd: join(import.meta.dirname, 'recorder'), env, stdio: 'inherit' });
  }
  return recorder;
}

/** @param {string} release */
function listCases(release) {
  const isNewRelease = !Object.values(states).some((recorded) => release in recorded);
  return Object.keys(inputs).filter((name) => {
    const since = /-since-1\.(\d+)$/.exec(name)?.[1] ?? '0';
    if (Number(release.slice('1.'.length)) < Number(since)) return false;
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
