// The feature gates that each kube-proxy knows, as recorder/gates prints them, in the table that kpc reads:
// src/kube-proxy/feature-gates.recorded.ts.
// @ts-check
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @typedef {{ stage: string, default: boolean, locked: boolean, needs: string[] }} Gate */

/** @typedef {Record<string, Record<string, Gate>>} Gates Version of kube-proxy → name → gate. */

const file = join(import.meta.dirname, '..', '..', 'src', 'kube-proxy', 'feature-gates.recorded.ts');

const head = `/**
 * The feature gates of each kube-proxy, by "npm run record" from its own code: no line is written by hand. The first line has the
 * versions. A gate has a letter for each: - unknown, a alpha, b beta, s set as one likes (generally available or
 * deprecated), l locked; a capital for one that is on by default. Then the gates that it needs, since the first release in which there
 * are both, or the one after @.
 */
export const recordedGates = \``;
const tail = '`;\n';

const letters = new Map([
  ['ALPHA', 'a'],
  ['BETA', 'b'],
  ['DEPRECATED', 's'],
  ['', 's'],
]);

/** @returns {Gates} */
export function readGates() {
  if (!existsSync(file)) return {};
  const [heading = '', ...lines] = readFileSync(file, 'utf8').slice(head.length, -tail.length).trim().split('\n');
  const versions = heading.split(' ');
  /** @type {Gates} */
  const gates = Object.fromEntries(versions.map((version) => [version, {}]));
  for (const line of lines) {
    const [name = '', row = '', needs = ''] = line.split(' ');
    for (const [i, version] of versions.entries()) {
      const letter = row[i] ?? '-';
      const lower = letter.toLowerCase();
      if (letter === '-') continue;
      const stage = lower === 'a' ? 'ALPHA' : lower === 'b' ? 'BETA' : '';
      const gate = { stage, default: letter !== lower, locked: lower === 'l', needs: needs.split(',').filter(Boolean) };
      /** @type {Record<string, Gate>} */ (gates[version])[name] = gate;
    }
  }
  for (const [version, known] of Object.entries(gates)) {
    for (const gate of Object.values(known)) {
      gate.needs = gate.needs.flatMap((written) => {
        const [need = '', since = firstWithNeeds] = written.split('@');
        return isSince(version, since) && known[need] ? [need] : [];
      });
    }
  }
  return gates;
}

/** Kubernetes has had gates that need others since this release. */
const firstWithNeeds = '1.35';

/** @param {Gates} gates */
export function writeGates(gates) {
  const versions = Object.keys(gates).toSorted((a, b) => minorOf(a) - minorOf(b));
  const names = [...new Set(versions.flatMap((version) => Object.keys(gates[version] ?? {})))].toSorted();
  const lines = names.map((name) => {
    const row = versions.map((version) => letterOf(gates[version]?.[name])).join('');
    return [name, row, ...listNeeds(name, gates, versions)].join(' ');
  });
  writeFileSync(file, `${head}\n${[versions.join(' '), ...lines].join('\n')}\n${tail}`);
}

/** @param {Gate | undefined} gate */
function letterOf(gate) {
  if (!gate) return '-';
  const letter = gate.locked ? 'l' : letters.get(gate.stage);
  // AllAlpha and AllBeta would set these all the same.
  if (letter === undefined || (gate.locked && /ALPHA|BETA/.test(gate.stage)))
    throw new Error(`gate: ${JSON.stringify(gate)}`);
  return gate.default ? letter.toUpperCase() : letter;
}

/**
 * @param {string} name
 * @param {Gates} gates
 * @param {string[]} versions
 */
function listNeeds(name, gates, versions) {
  const needs = [...new Set(versions.flatMap((version) => gates[version]?.[name]?.needs ?? []))].toSorted();
  const written = needs.map((need) => {
    const needing = versions.filter((version) => gates[version]?.[name]?.needs.includes(need));
    const since = (needing[0] ?? '').replace(/^v(\d+\.\d+).*/, '$1');
    const withBoth = versions.filter((version) => gates[version]?.[name] && gates[version]?.[need]);
    const expected = withBoth.filter((version) => isSince(version, since));
    if (expected.join() !== needing.join()) throw new Error(`${name} needs ${need} in ${needing.join()} alone`);
    return withBoth.find((version) => isSince(version, firstWithNeeds)) === needing[0] ? need : `${need}@${since}`;
  });
  return written.length > 0 ? [written.join()] : [];
}

/** @param {string} version */
function minorOf(version) {
  return Number(/^v?1\.(\d+)/.exec(version)?.[1]);
}

/**
 * @param {string} version
 * @param {string} since
 */
function isSince(version, since) {
  return minorOf(version) >= minorOf(since);
}
