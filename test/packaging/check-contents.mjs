// Checks the files of a release against each other: the list of what is bundled, the licences, the manifest for krew, and the
// machine that each program is for. Prints what is wrong.
// @ts-check
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { archiveName, folderName, platforms } from '../../packaging/assets.mjs';

const [folder = ''] = process.argv.slice(2);
const names = readdirSync(folder);
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
/** @type {string[]} */
const wrong = [];

/** @param {RegExp} pattern */
function find(pattern) {
  const found = names.filter((name) => pattern.test(name));
  if (found.length !== 1) throw new Error(`${found.length} files match ${pattern}`);
  return join(folder, found[0] ?? '');
}

/**
 * The names of the files in an archive, without folders.
 *
 * @param {string} archive
 */
function list(archive) {
  const [command = '', ...words] = archive.endsWith('.zip') ? ['unzip', '-Z1', archive] : ['tar', '-tf', archive];
  const held = execFileSync(command, words).toString().split('\n');
  return held.filter((name) => name !== '' && !name.endsWith('/'));
}

/**
 * @param {string} archive
 * @param {string} path
 */
function read(archive, path) {
  const name = `${folderName(version)}/${path}`;
  const [command = '', ...words] = archive.endsWith('.zip')
    ? ['unzip', '-p', archive, name]
    : ['tar', '-xzf', archive, '-O', name];
  return execFileSync(command, words, { maxBuffer: 2 ** 30 });
}

/** What says which processor a program is for, of each system: ELF, Mach-O, and PE, whose header is elsewhere. */
const machines = {
  linux: { at: () => 18, amd64: 62, arm64: 183, file: 'kpc' },
  darwin: { at: () => 4, amd64: 7, arm64: 12, file: 'lib/node' },
  windows: {
    at: (/** @type {Buffer} */ program) => program.readUInt32LE(0x3c) + 4,
    amd64: 0x8664,
    arm64: 0xaa64,
    file: 'kpc.exe',
  },
};

for (const platform of platforms) {
  const archive = join(folder, archiveName(version, platform));
  const { components } = JSON.parse(read(archive, 'kpc.cdx.json').toString());
  if (components.length < 6) wrong.push(`${archive}: only ${components.length} components are listed`);
  const licences = read(archive, 'THIRD-PARTY-LICENSES.txt').toString().toLowerCase();
  for (const { name, version: used } of components) {
    if (!licences.includes(`${name} ${used}`)) wrong.push(`${archive}: no licence of ${name} ${used}`);
  }
  for (const name of ['LICENSE', 'schemas/kpc.yaml.schema.json']) {
    if (read(archive, name).length === 0) wrong.push(`${archive}: ${name} is empty`);
  }
  const { at, file, ...known } = machines[platform.os];
  const program = read(archive, file);
  if (program.readUInt16LE(at(program)) !== known[platform.arch]) wrong.push(`${archive}: not for ${platform.arch}`);
  if (platform.os === 'windows' && program.includes('DigiCert')) wrong.push(`${archive}: signed by another`);
  if (platform.os === 'darwin' && !program.includes('Node.js Foundation')) wrong.push(`${archive}: not signed`);
}
const { spec } = parse(readFileSync(find(/^krew-/), 'utf8'));
for (const { selector, uri, sha256, bin, files } of spec.platforms) {
  const archive = join(folder, uri.split('/').at(-1));
  const digest = createHash('sha256').update(readFileSync(archive)).digest('hex');
  if (sha256 !== digest) wrong.push(`krew: the checksum for ${selector.matchLabels.arch} is not that of ${archive}`);
  const held = list(archive);
  for (const { from } of files) {
    const isThere = held.some((name) => name === from || (from.endsWith('/*') && dirname(name) === dirname(from)));
    if (!isThere) wrong.push(`krew: ${archive} has no ${from}`);
  }
  if (!held.includes(`${folderName(version)}/${bin}`)) wrong.push(`krew: ${archive} has no ${bin}`);
}

for (const line of wrong) console.error(line);
process.exitCode = wrong.length === 0 ? 0 : 1;
