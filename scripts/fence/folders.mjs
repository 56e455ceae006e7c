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
  base: { folders: [], packages: ['@noble/hashes'], node: ['crypto', 'fs', 'tty'] },
  kernel: { folders: [], ...pure },
  'kube-proxy': { folders: ['kernel'], ...pure },
  diagnostics: { folders: ['base', 'kernel', 'kube-proxy'], ...pure },
  'kube-proxy/settings': { folders: ['base', 'kernel', 'kube-proxy', 'diagnostics'], ...pure },
  cluster: { folders: ['kernel', 'kube-proxy', 'diagnostics', 'kube-proxy/settings'], ...pure },
  'cluster/slices': { folders: ['base', 'kernel', 'diagnostics', 'cluster'], ...pure },
  'modes/iptables': { folders: ['base', 'kernel', 'kube-proxy', 'cluster'], ...pure },
  'modes/nftables': {
    folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'kube-proxy/settings', 'cluster'],
    ...pure,
  },
  // IPVS mode writes some of iptables mode's rules, too.
  'modes/ipvs': { folders: ['kernel', 'kube-proxy', 'cluster', 'modes/iptables'], ...pure },
  input: {
    folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'kube-proxy/settings', 'cluster'],
    packages: ['ajv', 'jsonc-parser', 'yaml'],
    node: ['buffer', 'fs', 'path'],
  },
  bundle: {
    folders: ['base', 'kernel', 'kube-proxy', 'kube-proxy/settings', 'cluster'],
    packages: [],
    node: ['fs', 'fs/promises', 'path'],
  },
  packet: { folders: ['kernel'], ...pure },
  'diff/changes': { folders: ['base', 'kernel', 'kube-proxy'], ...pure },
  'bundle/pack': { folders: ['base', 'bundle'], packages: [], node: ['crypto', 'fs/promises', 'zlib'] },
  'bundle/fleet': { folders: ['base', 'bundle'], packages: [], node: ['crypto', 'fs', 'fs/promises', 'path'] },
  dumps: { folders: ['base', 'kernel', 'kube-proxy', 'diagnostics'], ...pure },
  diff: {
    folders: ['base', 'kernel', 'kube-proxy', 'cluster', 'diff/changes', 'dumps'],
    packages: [],
    node: [],
  },
  describe: { folders: ['base', 'kernel', 'kube-proxy', 'cluster', 'diff/changes', 'dumps', 'diff'], ...pure },
  'packet/trace': {
    folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'packet', 'cluster', 'diff/changes', 'diff', 'describe'],
    ...pure,
  },
  'packet/equivalence': {
    folders: ['base', 'kernel', 'kube-proxy', 'packet', 'cluster', 'packet/trace'],
    ...pure,
  },
  apply: {
    folders: ['base', 'kernel', 'kube-proxy', 'kube-proxy/settings', 'bundle', 'diff/changes'],
    packages: [],
    node: ['child_process', 'fs/promises', 'http', 'os', 'path', 'timers/promises'],
  },
  compile: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'diagnostics',
      'kube-proxy/settings',
      'cluster',
      'cluster/slices',
      'modes/ipvs',
      'modes/iptables',
      'modes/nftables',
      'input',
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
      'kube-proxy/settings',
      'cluster',
      'input',
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
  report: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'diagnostics',
      'cluster',
      'bundle',
      'diff/changes',
      'bundle/fleet',
      'diff',
      'describe',
      'packet',
      'packet/trace',
      'packet/equivalence',
      'apply',
      'sides',
    ],
    packages: ['chalk', 'diff'],
    node: [],
  },
  library: {
    folders: [
      'base',
      'diagnostics',
      'kube-proxy/settings',
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
    folders: ['base', 'kernel', 'kube-proxy', 'bundle', 'diff', 'describe', 'library', 'report'],
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
      'kube-proxy/settings',
      'cluster',
      'input',
      'bundle',
      'diff/changes',
      'bundle/fleet',
      'bundle/pack',
      'dumps',
      'diff',
      'describe',
      'packet',
      'packet/trace',
      'packet/equivalence',
      'compile',
      'sides',
      'report',
      'cli/shared',
    ],
    packages: ['commander'],
    node: ['fs', 'fs/promises', 'os', 'path', 'v8', 'worker_threads'],
  },
  'cli/kpc-apply': {
    folders: [
      'base',
      'kernel',
      'kube-proxy/settings',
      'cluster',
      'bundle',
      'bundle/pack',
      'apply',
      'sides',
      'report',
      'cli/shared',
    ],
    packages: ['commander'],
    node: ['fs/promises', 'os', 'path'],
  },
};
