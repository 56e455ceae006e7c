import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/name-some.ts';
import type { DiagnosticTable, Severity } from './table.ts';

/** Why a file of a dump is left out. */
type UnreadFile =
  | { readonly problem: 'other-content'; readonly expected: string }
  /** It cannot be read as a text at all; `expected` is what its name says that it holds. */
  | { readonly problem: 'no-text'; readonly expected?: string | undefined; readonly reason: string };

function describeUnreadFile(details: UnreadFile): string {
  if (details.problem === 'other-content') return `not what ${details.expected} prints: it is left out`;
  const what = details.expected === undefined ? 'not a text' : `not what ${details.expected} prints`;
  return `${what}: ${details.reason}, and left out`;
}

/** What shows that an output was cut off. */
const cutOffSigns: readonly (readonly [RegExp, string])[] = [
  [/-save$/, 'a table without COMMIT'],
  [/^nft /, 'a table without its closing brace'],
];

interface OtherHost {
  /** What was printed there. */
  readonly outputs: readonly string[];
  readonly host: NamedHost;
  /** The host whose output is read. */
  readonly first: NamedHost;
}

interface NamedHost {
  readonly kind: string;
  readonly name: string;
}

function describeOtherHost({ outputs, host, first }: OtherHost): string {
  const printed = nameSome(outputs.map((output) => (output === 'rules' ? 'iptables' : output)));
  return `ignored: output of ${nameHost(host)} (${printed}), since ${nameHost(first)} comes first; give each node a file of its own`;
}

function nameHost({ kind, name }: NamedHost): string {
  return kind === 'Pod' ? `Pod ${name}` : name;
}

interface UnreadOutput {
  /** What printed it. */
  readonly output: string;
  readonly reason: string;
  /** Whether nothing else of the dump can be read. */
  readonly isAll: boolean;
}

function weighUnreadOutput({ isAll }: UnreadOutput): Severity {
  return isAll ? 'error' : 'warning';
}

/** Why nothing can be compared with a folder. */
export type CheckedFolderProblem =
  | {
      readonly problem:
        | 'no-folder'
        | 'missing'
        | 'empty'
        | 'no-bundle'
        | 'dump'
        | 'other-manifest'
        | 'one-node'
        | 'no-bundle-of-a-node';
    }
  | { readonly problem: 'unreadable'; readonly reason: string }
  | { readonly problem: 'fleet'; readonly example: string };

type NothingToCheck = CheckedFolderProblem & { readonly folder: string };

function describeNothingToCheck(details: NothingToCheck): string {
  const { folder } = details;
  switch (details.problem) {
    case 'no-folder':
      return 'it is not a folder: name one that kpc compile -o or --golden wrote';
    case 'missing':
      return `there is no such folder: write it first with -o ${folder}, or with --golden for git`;
    case 'unreadable':
      return `it cannot be read: ${details.reason}`;
    case 'empty':
      return `the folder is empty: write it first with -o ${folder}, or with --golden for git`;
    case 'no-bundle':
      return 'it is no bundle (it has no manifest.json) and no golden: name another folder, or write one with -o or --golden';
    case 'fleet':
      return `it holds the bundles of many nodes: use --all-nodes, or name one of them, such as ${details.example}`;
    case 'dump':
      return 'it is a dump that kpc-apply dump wrote: compare it with kpc diff';
    case 'other-manifest':
      return 'it is not a bundle, because kpc did not write its manifest.json: name another folder';
    case 'one-node':
      return 'it is the bundle of one node: name the folder of all nodes, or one node with --node';
    case 'no-bundle-of-a-node':
      return 'it holds no bundle and no golden of a node: name another folder, or write one with -o or --golden';
  }
}

type NoManifests =
  | { readonly what: 'bundle' | 'dump'; readonly path: string }
  /** What is wrong with it as a dump. */
  | { readonly what: 'unreadable'; readonly reasons: readonly string[] };

function describeNoManifests(details: NoManifests): string {
  switch (details.what) {
    case 'bundle':
      return `${details.path} is a bundle, which is compiled already: name the manifests it came from, or look at it with kpc describe -f ${details.path}`;
    case 'dump':
      return `${details.path} is what a node printed, not manifests: nothing of it is compiled; look at it with kpc describe -f ${details.path}, or compare it with kpc diff`;
    case 'unreadable':
      return details.reasons.join('; ');
  }
}

/** What is wrong with bundles, goldens and dumps: the sides of a comparison that are not manifests. */
export const sideDiagnostics = {
  'bad-bundle': {
    severity: 'error',
    meaning: 'a folder is not a bundle or a golden that kpc wrote, or was changed since',
    words: ({ path, problem }: { readonly path: string; readonly problem: string }) => `${path}: ${problem}`,
  },
  'cut-off-file': {
    severity: 'warning',
    meaning: "a tool's output is cut off",
    words: ({ expected }: { readonly expected: string }) => {
      const sign = cutOffSigns.find(([kind]) => kind.test(expected))?.[1];
      const what = sign ?? 'fewer members than the header of a set says';
      return `${what}: what ${expected} printed was cut off, and is not compared; print it again`;
    },
  },
  'dump-folder': {
    severity: 'error',
    meaning: 'a folder holds dumps of several nodes, where kpc needs one',
    words: ({ path, example }: { readonly path: string; readonly example: string }) =>
      `${path} holds dumps of nodes, not one: name one of them, such as ${example}`,
  },
  'fleet-folder': {
    severity: 'error',
    meaning: 'a folder holds the bundles of several nodes, where kpc needs one',
    words: ({ path, example }: { readonly path: string; readonly example: string }) =>
      `${path} holds the bundles of a fleet: name the folder of one node, such as ${example}, or the node with --node`,
  },
  'legacy-tables': {
    severity: 'note',
    meaning: 'iptables-legacy has rules that a dump does not show',
    words: () => 'iptables-legacy has more rules, which are not here: add what iptables-legacy-save prints',
  },
  'no-manifests': {
    severity: 'error',
    meaning: 'kpc is asked to compile a bundle or a dump, not manifests',
    words: describeNoManifests,
  },
  'no-table': {
    severity: 'note',
    meaning: 'a dump has iptables rules without the line that names their table',
    words: ({ tables }: { readonly tables: readonly string[] }) =>
      `no line such as *nat names the table of these rules: kpc takes it to be ${tables.join(' and ')}`,
  },
  'nothing-to-check': {
    severity: 'error',
    meaning: '--check names a folder that kpc cannot compare with',
    words: (details: NothingToCheck) => `--check ${details.folder}: ${describeNothingToCheck(details)}`,
  },
  'other-host': {
    severity: 'warning',
    meaning: 'a dump holds the output of several hosts, and kpc takes that of the first',
    words: describeOtherHost,
  },
  'second-listing': {
    severity: 'warning',
    meaning: "a dump holds a tool's output twice, of two nodes or two times, and kpc takes the first",
    words: ({ output, differences }: { readonly output: string; readonly differences: readonly string[] }) =>
      `a second listing of ${output}, of another node or another time, because it differs in ${nameSome(differences)}: left out; ` +
      'give each node a file of its own',
  },
  'stray-lines': {
    severity: 'note',
    meaning: 'a dump has lines that no tool printed',
    words: ({ count }: { readonly count: number }) =>
      `${formatCount(count)} ${count === 1 ? 'line' : 'lines'} that no tool printed: left out`,
  },
  'taken-whole': {
    severity: 'note',
    meaning: 'kpc takes a list of virtual servers for the whole list of a node',
    words: () =>
      'taken for all virtual servers of the node; if these are only some, put the command that printed them above them, such as ' +
      '"$ ipvsadm -Sn | grep 10.96.0.1"',
  },
  unreadable: {
    severity: 'error',
    meaning: 'a side of a comparison cannot be read',
    words: ({ path, reason }: { readonly path: string; readonly reason: string }) =>
      `${path} cannot be read: ${reason}`,
  },
  'unread-file': {
    severity: 'warning',
    meaning: "a file of a dump is not a tool's output",
    words: describeUnreadFile,
  },
  'unread-line': {
    severity: 'warning',
    meaning: 'a line of a dump cannot be read, and is left out',
    words: ({
      reason,
      more,
    }: {
      readonly reason: string;
      /** How many other lines cannot be read for the same reason. */ readonly more: number;
    }) => `left out: ${reason}${more === 0 ? '' : ` (and ${formatCount(more)} more ${more === 1 ? 'line' : 'lines'})`}`,
  },
  'unread-output': {
    severity: {
      among: ['error', 'warning'],
      weigh: weighUnreadOutput,
    },
    meaning: 'a tool printed its output in a form that lacks what kpc needs',
    words: ({ output, reason }: UnreadOutput) => `${output} ${reason}`,
  },
} satisfies DiagnosticTable;
