// Checks the files of a release against each other: the list of what is bundled, the licences, the manifest for krew, and the
// machine that each program is for. Prints what is wrong.
// @ts-check
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const [folder = ''] = process.argv.slice(2);
const names = readdirSync(folder);
/** @type {string[]} */
const wrong = [];

/** @param {RegExp} pattern */
function find(pattern) {
  const found = names.filter((name) => pattern.test(name));
  if (found.length !== 1) throw new Error(`${found.length} files match ${pattern}`);
  return join(folder, found[0] ?? '');
}

/**
 * @param {string} archive
 * @param {string} path
 */
function read(archive, path) {
  return execFileSync('tar', ['-xzf', archive, '-O', '--wildcards', `*/${path}`], { maxBuffer: 2 ** 30 });
}

const { components } = JSON.parse(readFileSync(find(/\.cdx\.json$/), 'utf8'));
if (components.length < 6) wrong.push(`only ${components.length} components are listed`);
/** The e_machine of an ELF file. */
const machines = { amd64: 62, arm64: 183 };
for (const [architecture, machine] of Object.entries(machines)) {
  const archive = find(new RegExp(`-${architecture}\\.tar\\.gz$`));
  const licences = read(archive, 'THIRD-PARTY-LICENSES.txt').toString().toLowerCase();
  for (const { name, version } of components) {
    if (!licences.includes(`${name} ${version}`)) wrong.push(`${archive}: no licence of ${name} ${version}`);
  }
  if (read(archive, 'kpc-apply').readUInt16LE(18) !== machine) wrong.push(`${archive}: not for ${architecture}`);
}
const { spec } = parse(readFileSync(find(/^krew-/), 'utf8'));
for (const { selector, uri, sha256, bin, files } of spec.platforms) {
  const archive = find(new RegExp(`^${uri.split('/').at(-1)}$`));
  const digest = createHash('sha256').update(readFileSync(archive)).digest('hex');
  if (sha256 !== digest) wrong.push(`krew: the checksum for ${selector.matchLabels.arch} is not that of ${archive}`);
  const held = execFileSync('tar', ['-tf', archive]).toString().split('\n');
  for (const { from } of files) if (!held.includes(from)) wrong.push(`krew: ${archive} has no ${from}`);
  if (!files.some((/** @type {{ to: string }} */ { to }) => to === bin)) wrong.push(`krew: nothing becomes ${bin}`);
}
for (const line of wrong) console.error(line);
process.exitCode = wrong.length === 0 ? 0 : 1;
