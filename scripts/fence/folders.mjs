// @ts-check

/**
 * What a folder of src may import.
 *
 * @typedef {object} FolderRule
 * @property {readonly string[]} folders of src, besides itself
 * @property {readonly string[]} packages from npm, by name
 * @property {readonly string[]} node modules of Node; a folder without any also runs in a browser
 */

const pure = { packages: [], node: [] };

/**
 * The import direction. A folder imports only the folders and packages that this table allows, and nothing from later rows.
 *
 * @type {Readonly<Record<string, FolderRule>>}
 */
export const folders = {
  base: {
    folders: [],
    packages: ['@noble/hashes'],
    node: ['crypto', 'fs', 'path', 'tty', 'util'],
  },
  kernel: { folders: ['base'], ...pure },
  'kube-proxy': { folders: ['kernel'], ...pure },
  // The codes, and the types of their arguments.
  'base/findings': { folders: ['base', 'kernel', 'kube-proxy'], ...pure },
  settings: { folders: ['base', 'kernel', 'kube-proxy', 'base/findings'], ...pure },
  cluster: { folders: ['kernel', 'kube-proxy', 'base/findings', 'settings'], ...pure },
  'cluster/slices': { folders: ['base', 'kernel', 'kube-proxy', 'base/findings', 'cluster'], ...pure },
  'modes/iptables': { folders: ['base', 'kernel', 'kube-proxy', 'cluster'], ...pure },
  'modes/nftables': {
    folders: ['base', 'kernel', 'kube-proxy', 'base/findings', 'settings', 'cluster'],
    ...pure,
  },
  // These modes also write some of iptables mode's arguments or rules.
  'modes/userspace': {
    folders: ['base', 'kernel', 'kube-proxy', 'base/findings', 'cluster', 'modes/iptables'],
    ...pure,
  },
  'modes/ipvs': { folders: ['kernel', 'kube-proxy', 'cluster', 'modes/iptables'], ...pure },
  input: {
    folders: ['base', 'kernel', 'kube-proxy', 'base/findings', 'settings', 'cluster'],
    packages: ['#checks', 'jsonc-parser', 'yaml'],
    node: ['buffer', 'fs', 'path', 'v8'],
  },
  programs: { folders: ['base', 'base/findings', 'input'], packages: [], node: ['child_process', 'path'] },
  git: { folders: ['base', 'base/findings', 'input', 'programs'], packages: [], node: ['fs', 'path'] },
  'ask/changes': { folders: ['kernel', 'kube-proxy'], ...pure },
  dumps: { folders: ['base', 'kernel', 'kube-proxy', 'base/findings'], packages: ['#checks'], node: [] },
  snapshot: {
    folders: ['kernel', 'kube-proxy', 'base/findings', 'cluster', 'input', 'dumps'],
    ...pure,
  },
  bundle: {
    // From snapshot, this folder imports only the type of the content of a bundle.
    folders: ['base', 'kernel', 'kube-proxy', 'base/findings', 'settings', 'cluster', 'snapshot'],
    packages: ['#checks'],
    node: ['fs', 'fs/promises', 'path'],
  },
  packet: { folders: ['kernel'], ...pure },
  'bundle/pack': {
    folders: ['base', 'base/findings', 'bundle'],
    packages: ['#checks'],
    node: ['buffer', 'crypto', 'fs', 'zlib'],
  },
  'bundle/fleet': {
    folders: ['base', 'base/findings', 'bundle'],
    packages: [],
    node: ['crypto', 'fs', 'fs/promises', 'path'],
  },
  'ask/diff': {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'base/findings',
      'settings',
      'cluster',
      'ask/changes',
      'dumps',
      'snapshot',
    ],
    packages: [],
    node: [],
  },
  'ask/describe': {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'base/findings',
      'cluster',
      'ask/changes',
      'dumps',
      'snapshot',
      'ask/diff',
    ],
    ...pure,
  },
  'ask/trace': {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'base/findings',
      'input',
      'packet',
      'cluster',
      'cluster/slices',
      'snapshot',
      'ask/diff',
      'ask/describe',
    ],
    ...pure,
  },
  'ask/equivalence': {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'base/findings',
      'settings',
      'packet',
      'cluster',
      'snapshot',
      'ask/changes',
      'ask/diff',
      'ask/trace',
    ],
    ...pure,
  },
  apply: {
    // From cluster, this folder imports only the types of the Service ports and settings in a bundle.
    folders: ['base', 'kernel', 'kube-proxy', 'base/findings', 'settings', 'cluster', 'bundle', 'ask/changes'],
    packages: ['#checks'],
    node: ['child_process', 'fs/promises', 'net', 'os', 'path', 'timers/promises'],
  },
  'snapshot/open': {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'base/findings',
      'settings',
      'cluster',
      'cluster/slices',
      'modes/ipvs',
      'modes/iptables',
      'modes/nftables',
      'modes/userspace',
      'input',
      'dumps',
      'snapshot',
      'bundle',
      'bundle/fleet',
      'ask/diff',
    ],
    ...pure,
  },
  // Bundles to apply: their owners, their signers, and whether their Services compile to their files.
  'apply/open': {
    folders: ['base', 'base/findings', 'bundle', 'bundle/pack', 'apply', 'snapshot/open'],
    packages: ['#checks'],
    node: ['fs/promises', 'path'],
  },
  // Files to open: in folders, git revisions, packs and support bundles.
  'snapshot/files': {
    folders: [
      'base',
      'kernel',
      'base/findings',
      'input',
      'programs',
      'git',
      'dumps',
      'snapshot/open',
      'bundle',
      'bundle/pack',
    ],
    packages: [],
    node: ['fs', 'path'],
  },
  'ask/lint': {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'base/findings',
      'cluster',
      'cluster/slices',
      'input',
      'packet',
      'ask/trace',
      'snapshot',
      'snapshot/open',
    ],
    ...pure,
  },
  say: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'base/findings',
      'cluster',
      'bundle',
      'ask/changes',
      'dumps',
      'snapshot',
      'ask/diff',
      'ask/describe',
      'packet',
      'ask/trace',
      'ask/equivalence',
      'apply',
      'snapshot/files',
      'ask/lint',
    ],
    packages: ['#codes', 'chalk', 'diff'],
    node: [],
  },
  library: {
    folders: [
      'base',
      'ask/lint',
      'ask/equivalence',
      'packet',
      'ask/trace',
      'base/findings',
      'settings',
      'input',
      'bundle',
      'dumps',
      'snapshot',
      'ask/diff',
      'snapshot/open',
      'say',
      'ask/describe',
      'kube-proxy',
    ],
    packages: [],
    node: [],
  },
  // The part of the library that needs files, git, kubectl and threads.
  'library/node': {
    folders: [
      'base',
      'kube-proxy',
      'base/findings',
      'settings',
      'cluster',
      'input',
      'ask/lint',
      'ask/equivalence',
      'programs',
      'git',
      'bundle',
      'bundle/fleet',
      'bundle/pack',
      'snapshot',
      'snapshot/open',
      'snapshot/files',
      'say',
      'library',
    ],
    packages: ['#checks'],
    node: ['fs', 'fs/promises', 'path', 'worker_threads'],
  },
  'library/node.ts': {
    folders: ['base', 'base/findings', 'bundle', 'snapshot', 'snapshot/files', 'say', 'library', 'library/node'],
    ...pure,
  },
  'library/index.ts': {
    folders: ['base', 'kernel', 'kube-proxy', 'bundle', 'snapshot', 'library', 'say'],
    ...pure,
  },
  'cli/shared': {
    folders: ['base', 'kube-proxy', 'say'],
    packages: ['commander'],
    node: ['fs', 'path', 'tty', 'worker_threads'],
  },
  'cli/kpc': {
    // From the folders below the library, imports only codes and the words for them.
    folders: ['base', 'base/findings', 'say', 'library', 'library/node', 'cli/shared'],
    packages: ['#codes', 'commander'],
    node: ['path'],
  },
  'cli/kpc-apply': {
    folders: ['base', 'kernel', 'base/findings', 'bundle', 'apply', 'apply/open', 'say', 'cli/shared'],
    packages: ['commander'],
    node: ['os', 'path'],
  },
  // The list of schemas from which #checks is made, and the predicates that the checks call. Nothing imports this folder by path.
  checks: {
    folders: ['base', 'kernel', 'kube-proxy', 'bundle', 'apply', 'input', 'library/node'],
    ...pure,
  },
};
