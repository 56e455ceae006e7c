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
 * The import direction: a folder imports only what this table says. What comes first imports nothing of what follows.
 *
 * @type {Readonly<Record<string, FolderRule>>}
 */
export const folders = {
  base: { folders: [], packages: ['@noble/hashes'], node: ['crypto', 'fs', 'path', 'tty'] },
  kernel: { folders: [], ...pure },
  'kube-proxy': { folders: ['kernel'], ...pure },
  diagnostics: { folders: ['base', 'kernel', 'kube-proxy'], ...pure },
  settings: { folders: ['base', 'kernel', 'kube-proxy', 'diagnostics'], ...pure },
  cluster: { folders: ['kernel', 'kube-proxy', 'diagnostics', 'settings'], ...pure },
  'cluster/slices': { folders: ['base', 'kernel', 'diagnostics', 'cluster'], ...pure },
  'modes/iptables': { folders: ['base', 'kernel', 'kube-proxy', 'cluster'], ...pure },
  'modes/nftables': {
    folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'settings', 'cluster'],
    ...pure,
  },
  // These write some of iptables mode's arguments, or rules, too.
  'modes/userspace': { folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'cluster', 'modes/iptables'], ...pure },
  'modes/ipvs': { folders: ['kernel', 'kube-proxy', 'cluster', 'modes/iptables'], ...pure },
  input: {
    folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'settings', 'cluster'],
    packages: ['jsonc-parser', 'yaml'],
    node: ['buffer', 'fs', 'path'],
  },
  programs: { folders: ['base', 'diagnostics', 'input'], packages: [], node: ['child_process', 'path'] },
  git: { folders: ['base', 'diagnostics', 'input', 'programs'], packages: [], node: ['fs', 'path'] },
  bundle: {
    folders: ['base', 'kernel', 'kube-proxy', 'settings', 'cluster'],
    packages: [],
    node: ['fs', 'fs/promises', 'path'],
  },
  packet: { folders: ['kernel'], ...pure },
  changes: { folders: ['base', 'kernel', 'kube-proxy'], ...pure },
  'bundle/pack': { folders: ['base', 'bundle'], packages: [], node: ['buffer', 'crypto', 'fs', 'zlib'] },
  'bundle/fleet': { folders: ['base', 'bundle'], packages: [], node: ['crypto', 'fs', 'fs/promises', 'path'] },
  // Of cluster, the types of what a side was compiled from.
  dumps: { folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'cluster'], ...pure },
  diff: {
    folders: ['base', 'kernel', 'kube-proxy', 'cluster', 'changes', 'dumps'],
    packages: [],
    node: [],
  },
  describe: { folders: ['base', 'kernel', 'kube-proxy', 'cluster', 'changes', 'dumps', 'diff'], ...pure },
  trace: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'diagnostics',
      'input',
      'packet',
      'cluster',
      'changes',
      'dumps',
      'diff',
      'describe',
    ],
    ...pure,
  },
  equivalence: {
    folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'packet', 'cluster', 'trace'],
    ...pure,
  },
  apply: {
    // Of cluster, the types of Service ports and settings, which a bundle holds.
    folders: ['base', 'kernel', 'kube-proxy', 'settings', 'cluster', 'bundle', 'changes'],
    packages: [],
    node: ['child_process', 'fs/promises', 'net', 'os', 'path', 'timers/promises'],
  },
  compile: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'diagnostics',
      'settings',
      'cluster',
      'cluster/slices',
      'modes/ipvs',
      'modes/iptables',
      'modes/nftables',
      'modes/userspace',
      'input',
      'programs',
      'git',
      'bundle',
      'dumps',
      'bundle/fleet',
    ],
    packages: [],
    node: ['fs', 'path'],
  },
  sides: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'diagnostics',
      'settings',
      'cluster',
      'input',
      'git',
      'bundle',
      'bundle/pack',
      'dumps',
      'diff',
      'apply',
      'compile',
    ],
    packages: [],
    node: ['fs', 'path'],
  },
  lint: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'diagnostics',
      'cluster',
      'cluster/slices',
      'input',
      'changes',
      'packet',
      'trace',
      'compile',
      'sides',
    ],
    ...pure,
  },
  report: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'diagnostics',
      'cluster',
      'bundle',
      'changes',
      'bundle/fleet',
      'dumps',
      'diff',
      'describe',
      'packet',
      'trace',
      'equivalence',
      'apply',
      'sides',
      'lint',
    ],
    packages: ['chalk', 'diff'],
    node: [],
  },
  library: {
    folders: [
      'base',
      'lint',
      'equivalence',
      'trace',
      'diagnostics',
      'settings',
      'input',
      'bundle',
      'dumps',
      'diff',
      'compile',
      'sides',
      'report',
      'describe',
      'kube-proxy',
    ],
    ...pure,
  },
  'library/index.ts': {
    folders: ['base', 'kernel', 'kube-proxy', 'bundle', 'dumps', 'describe', 'library', 'report'],
    ...pure,
  },
  'cli/shared': {
    folders: ['base', 'kube-proxy', 'report'],
    packages: ['commander'],
    node: ['fs', 'path', 'tty', 'worker_threads'],
  },
  'cli/kpc': {
    folders: [
      'base',
      'kube-proxy',
      'diagnostics',
      'settings',
      'cluster',
      'input',
      'programs',
      'git',
      'bundle',
      'changes',
      'bundle/fleet',
      'bundle/pack',
      'dumps',
      'diff',
      'describe',
      'packet',
      'trace',
      'equivalence',
      'compile',
      'sides',
      'lint',
      'report',
      'library',
      'cli/shared',
    ],
    packages: ['commander'],
    node: ['fs', 'fs/promises', 'os', 'path', 'worker_threads'],
  },
  'cli/kpc-apply': {
    folders: ['base', 'kernel', 'cluster', 'bundle', 'bundle/pack', 'apply', 'sides', 'report', 'cli/shared'],
    packages: ['commander'],
    node: ['fs/promises', 'os', 'path'],
  },
};
