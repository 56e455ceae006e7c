// Cases, and what kube-proxy programs for them as record.mjs recorded it.
//
// cases/NAME/ has a case's input and, as MODE.txt, what the newest release that has the mode programs. node.yaml, config.yaml and ip-addr.json
// come from cases/ if a case has none. A case with a name that ends in -since-1.37 is for no older release.
// recordings.json.br has the cases with random input, and what older releases program.
// @ts-check
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';

/** @typedef {Record<string, string>} Input The text of cluster.yaml, node.yaml, config.yaml and ip-addr.json. */

/** @typedef {Record<string, Record<string, string>>} States "CASE/MODE" → release → what it programs. */

/**
 * What recordings.json.br holds. A state is a text, or the other release that programs the same.
 *
 * @typedef {object} Pack
 * @property {Record<string, Input>} inputs Of the cases with random input.
 * @property {Record<string, Record<string, string | { sameAs: string }>>} states
 */

/** The release whose recordings are files beside the scenarios. */
export const recordedRelease = '1.37';

/** The same for a mode: that of a mode that is gone is the last one that had it. */
export function recordedReleaseOf(/** @type {string} */ mode) {
  return mode === 'userspace' ? '1.25' : recordedRelease;
}

export const inputFiles = ['cluster.yaml', 'node.yaml', 'config.yaml', 'ip-addr.json'];

const casesFolder = join(import.meta.dirname, 'cases');
const packFile = join(import.meta.dirname, 'recordings.json.br');

/** The names of the cases in folders. */
function listScenarios() {
  return readdirSync(casesFolder)
    .filter((name) => existsSync(join(casesFolder, name, 'cluster.yaml')))
    .toSorted();
}

/**
 * @param {string} name
 * @returns {Input}
 */
export function scenarioInput(name) {
  return Object.fromEntries(
    inputFiles.map((file) => {
      const own = join(casesFolder, name, file);
      return [file, readFileSync(existsSync(own) ? own : join(casesFolder, file), 'utf8')];
    }),
  );
}

/** What the newest release programs for the scenarios. */
export function readScenarioStates() {
  /** @type {States} */
  const states = {};
  for (const name of listScenarios()) {
    for (const file of readdirSync(join(casesFolder, name))) {
      const mode = /^(\w+)\.txt$/.exec(file)?.[1];
      if (mode !== undefined) {
        states[`${name}/${mode}`] = { [recordedReleaseOf(mode)]: readFileSync(join(casesFolder, name, file), 'utf8') };
      }
    }
  }
  return states;
}

/**
 * All cases and what all releases program for them.
 *
 * @returns {{ inputs: Record<string, Input>, states: States }}
 */
export function readRecordings() {
  const { inputs, states: packed } = readPack();
  for (const name of listScenarios()) inputs[name] = scenarioInput(name);
  const states = readScenarioStates();
  for (const [key, recorded] of Object.entries(packed)) {
    const own = (states[key] ??= {});
    for (const [release, state] of Object.entries(recorded)) {
      const text = typeof state === 'string' ? state : own[state.sameAs];
      if (text === undefined) throw new Error(`${key}: ${release} is the same as a release without recording`);
      own[release] = text;
    }
  }
  return { inputs, states };
}

/**
 * Writes recordings that changed.
 *
 * @param {Record<string, Input>} inputs
 * @param {States} states
 */
export function writeRecordings(inputs, states) {
  const scenarios = new Set(listScenarios());
  /** @type {Pack} */
  const pack = { inputs: {}, states: {} };
  for (const name of Object.keys(inputs).toSorted()) if (!scenarios.has(name)) pack.inputs[name] = inputs[name] ?? {};
  for (const key of Object.keys(states).toSorted()) {
    const [name = '', mode = ''] = key.split('/');
    const release = recordedReleaseOf(mode);
    const { [release]: newest, ...others } = states[key] ?? {};
    const inFile = scenarios.has(name);
    if (inFile && newest !== undefined) writeFileSync(join(casesFolder, name, `${mode}.txt`), newest);
    pack.states[key] = fold({ ...(newest !== undefined && { [release]: newest }), ...others });
    if (inFile) delete pack.states[key]?.[release];
    if (Object.keys(pack.states[key] ?? {}).length === 0) delete pack.states[key];
  }
  writePack(pack);
}

/**
 * Keeps each text once: under the first release that has it.
 *
 * @param {Record<string, string>} states The newest release first.
 */
function fold(states) {
  /** @type {Map<string, string>} */
  const firstWith = new Map();
  /** @type {Pack['states'][string]} */
  const folded = {};
  for (const [release, text] of Object.entries(states)) {
    const first = firstWith.get(text);
    folded[release] = first === undefined ? text : { sameAs: first };
    if (first === undefined) firstWith.set(text, release);
  }
  return folded;
}

/** @returns {Pack} */
function readPack() {
  if (!existsSync(packFile)) return { inputs: {}, states: {} };
  return JSON.parse(brotliDecompressSync(readFileSync(packFile)).toString());
}

/**
 * Writes the pack if it says something new: versions of Node compress the same text to different bytes.
 *
 * @param {Pack} pack
 */
function writePack(pack) {
  const text = JSON.stringify(pack);
  if (existsSync(packFile) && JSON.stringify(readPack()) === text) return;
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: 11,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
  };
  writeFileSync(packFile, brotliCompressSync(text, { params }));
}
