/** What a folder of src may import, and what it is for. */
interface FolderRule {
  /** Folders of src besides itself. */
  readonly folders: readonly string[];
  /** Packages from npm, by name. */
  readonly packages: readonly string[];
  /** Modules of Node. Without any, the folder also runs in a browser. */
  readonly node: readonly string[];
}

const pure = { packages: [], node: [] } as const;

/** The import direction: a folder imports only what this table says. What comes first imports nothing of what follows. */
export const folders: Readonly<Record<string, FolderRule>> = {
  base: { folders: [], packages: ['@noble/hashes'], node: ['crypto', 'fs', 'tty'] },
  kernel: { folders: [], packages: ['ipaddr.js'], node: [] },
  'kube-proxy': { folders: ['kernel'], ...pure },
  diagnostics: { folders: ['base', 'kernel', 'kube-proxy'], ...pure },
  settings: { folders: ['base', 'kernel', 'kube-proxy', 'diagnostics'], ...pure },
  cluster: { folders: ['kernel', 'kube-proxy', 'diagnostics', 'settings'], ...pure },
  slices: { folders: ['base', 'kernel', 'diagnostics', 'cluster'], ...pure },
  iptables: { folders: ['base', 'kernel', 'kube-proxy', 'cluster'], ...pure },
  nftables: { folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'settings', 'cluster'], ...pure },
  // IPVS mode writes some of iptables mode's rules, too.
  ipvs: { folders: ['kernel', 'kube-proxy', 'cluster', 'iptables'], ...pure },
  input: {
    folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'settings', 'cluster'],
    packages: ['ajv', 'jsonc-parser', 'yaml'],
    node: ['buffer', 'fs', 'path'],
  },
  bundle: {
    folders: ['base', 'kernel', 'kube-proxy', 'diagnostics', 'settings', 'cluster'],
    packages: [],
    node: ['fs', 'fs/promises', 'path'],
  },
  packet: { folders: ['kernel'], ...pure },
  changes: { folders: ['base', 'kernel', 'kube-proxy'], ...pure },
  fleet: { folders: ['base', 'bundle'], packages: [], node: ['fs', 'fs/promises', 'path'] },
  dumps: { folders: ['kernel', 'kube-proxy'], ...pure },
  diff: { folders: ['base', 'kernel', 'kube-proxy', 'cluster', 'bundle', 'changes', 'dumps'], packages: [], node: [] },
  describe: { folders: ['base', 'kernel', 'kube-proxy', 'cluster', 'changes', 'diff'], ...pure },
  trace: {
    folders: ['base', 'kernel', 'kube-proxy', 'packet', 'cluster', 'changes', 'diff', 'describe'],
    ...pure,
  },
  equivalence: { folders: ['kernel', 'kube-proxy', 'packet', 'cluster', 'changes', 'trace'], ...pure },
  apply: {
    folders: ['base', 'kernel', 'kube-proxy', 'settings', 'bundle', 'changes'],
    packages: [],
    node: ['child_process', 'fs/promises', 'http', 'os', 'path', 'timers/promises'],
  },
  compile: {
    folders: [
      'base',
      'kernel',
      'kube-proxy',
      'diagnostics',
      'settings',
      'cluster',
      'slices',
      'ipvs',
      'iptables',
      'nftables',
      'input',
      'bundle',
      'dumps',
      'fleet',
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
      'bundle',
      'changes',
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
      'changes',
      'fleet',
      'diff',
      'describe',
      'packet',
      'trace',
      'equivalence',
      'apply',
      'sides',
    ],
    packages: ['chalk', 'diff'],
    node: [],
  },
  library: {
    folders: [
      'base',
      'kernel',
      'diagnostics',
      'settings',
      'input',
      'bundle',
      'diff',
      'compile',
      'sides',
      'report',
      'describe',
      'kube-proxy',
    ],
    ...pure,
  },
  'index.ts': { folders: ['base', 'kernel', 'kube-proxy', 'bundle', 'changes', 'diff', 'library', 'report'], ...pure },
  'cli/shared': {
    folders: ['base', 'kube-proxy', 'bundle', 'report'],
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
      'bundle',
      'changes',
      'fleet',
      'diff',
      'describe',
      'packet',
      'trace',
      'equivalence',
      'compile',
      'sides',
      'report',
      'cli/shared',
    ],
    packages: ['commander'],
    node: ['fs', 'fs/promises', 'os', 'path', 'v8'],
  },
  'cli/kpc-apply': {
    folders: ['base', 'kernel', 'settings', 'cluster', 'bundle', 'apply', 'sides', 'report', 'cli/shared'],
    packages: ['commander'],
    node: ['fs/promises', 'os', 'path'],
  },
};

/** The folder of the command line, whose folders put all the others together. Nothing else imports them. */
export const topFolder = 'cli';
