import { dump, rules, web } from './examples.ts';
import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import {
  wordsBy,
  type DiagnosticTable,
  type Words,
  type Lists,
  type Numbers,
  type Texts,
  warningIf,
} from './diagnostic-rows.ts';

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

type NamedHost = Texts<'kind' | 'name'>;

function describeOtherHost({ outputs, host, first }: OtherHost): Words {
  const printed = nameSome(outputs.map((output) => (output === 'rules' ? 'iptables' : output)));
  return [
    `ignored output of ${nameHost(host)} (${printed}), because ${nameHost(first)} comes first`,
    'give each node a file of its own',
  ];
}

function nameHost({ kind, name }: NamedHost): string {
  return kind === 'Pod' ? `Pod ${name}` : name;
}

/** What printed it, and whether nothing else of the dump can be read. */
interface UnreadOutput {
  readonly output: string;
  readonly reason: string;
  readonly isAll: boolean;
}

type OfFolder = Texts<'folder'>;

type OfPath = Texts<'path'>;

type WithExample = OfPath & Texts<'example'>;

/** What is wrong with bundles, goldens and dumps: the sides of a comparison that are not manifests. */
export const sideDiagnostics = {
  'bad-bundle': {
    severity: 'error',
    meaning: 'a folder is not a bundle or a golden that kpc wrote, or was changed since',
    example: () => ({ words: ['diff', 'bundle', 'in.yaml'], files: { 'in.yaml': web, 'bundle/manifest.json': '{}' } }),
    words: ({ path, problem }: OfPath & Texts<'problem'>) => `${path}: ${problem}`,
  },
  'cut-off-file': {
    severity: 'warning',
    meaning: "a tool's output is cut off",
    example: () => dump({ 'iptables-save': rules.replace('COMMIT\n', '') }),
    words: ({ expected }: Texts<'expected'>) => {
      const sign = cutOffSigns.find(([kind]) => kind.test(expected))?.[1];
      const what = sign ?? 'fewer members than the header of a set says';
      return [`${what}: what ${expected} printed was cut off, and is not compared`, 'print it again'];
    },
  },
  'dump-folder': {
    severity: 'error',
    meaning: 'a folder holds dumps of several nodes, where kpc needs one',
    example: () => ({
      words: ['diff', 'dumps', 'in.yaml'],
      files: { 'in.yaml': web, 'dumps/worker-1/iptables-save': rules },
    }),
    words: ({ path, example }: WithExample) => [
      `${path} holds dumps of nodes, not one`,
      `name one of them, such as ${example}`,
    ],
  },
  'fleet-folder': {
    severity: 'error',
    meaning: 'a folder holds the bundles of several nodes, where kpc needs one',
    example: () => ({
      words: ['diff', 'fleet', 'in.yaml'],
      files: { 'in.yaml': web, 'fleet/worker-1/manifest.json': '{ "formatVersion": 1 }' },
    }),
    words: ({ path, example }: WithExample) => [
      `${path} holds the bundles of a fleet`,
      `name the folder of one node, such as ${example}, or the node with --node`,
    ],
  },
  'legacy-tables': {
    severity: 'note',
    meaning: 'iptables-legacy has rules that a dump does not show',
    example: () =>
      dump({
        'iptables-save': `# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n${rules}`,
      }),
    words: ['iptables-legacy has more rules, which are not here', 'add what iptables-legacy-save prints'],
  },
  'no-manifests': {
    severity: 'error',
    meaning: 'kpc is asked to compile a bundle or a dump, not manifests',
    example: () => ({ words: ['compile', '-f', 'node.txt'], files: { 'node.txt': rules } }),
    words: wordsBy('what', {
      'bundle-beside': ({ path, other }: OfPath & Texts<'other'>) => [
        `${path} is a bundle: ${other} cannot be beside it`,
        'look at the bundle by itself, or compare the two with kpc diff',
      ],
      bundle: ({ path }: OfPath) => [
        `${path} is a bundle, which is compiled already`,
        `name the manifests it came from, or look at it with kpc describe -f ${path}`,
      ],
      dump: ({ path }: OfPath) => [
        `${path} is what a node printed, not manifests: nothing of it is compiled`,
        `look at it with kpc describe -f ${path}, or compare it with kpc diff`,
      ],
    }),
  },
  'no-table': {
    severity: 'note',
    meaning: 'a dump has iptables rules without the line that names their table',
    example: () => dump({ 'node.txt': '-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j RETURN\n' }),
    words: ({ tables }: Lists<'tables'>) =>
      `no line such as *nat names the table of these rules: kpc takes it to be ${tables.join(' and ')}`,
  },
  'nothing-to-check': {
    severity: 'error',
    meaning: '--check names a folder that kpc cannot compare with',
    example: () => ({
      words: ['compile', '-f', 'in.yaml', '--check', 'nowhere'],
      files: { 'in.yaml': web },
    }),
    words: wordsBy('problem', {
      missing: ({ folder }: OfFolder) => [
        `--check ${folder}: there is no such folder`,
        `write it first with -o ${folder}, or with --golden for git`,
      ],
      'no-bundle': ({ folder }: OfFolder) => [
        `--check ${folder}: kpc compile wrote no bundle and no golden there`,
        'name another folder, or write one with -o or --golden',
      ],
      'one-node': ({ folder }: OfFolder) => [
        `--check ${folder}: it is the bundle of one node`,
        'name the folder of all nodes, or one node with --node',
      ],
      fleet: ({ folder, example }: OfFolder & Texts<'example'>) => [
        `--check ${folder}: it holds the bundles of many nodes`,
        `use --all-nodes, or name one of them, such as ${example}`,
      ],
    }),
  },
  'other-host': {
    severity: 'warning',
    meaning: 'a dump holds the output of several hosts, and kpc takes that of the first',
    example: () =>
      dump({
        'node.txt': `root@worker-1:~# ipvsadm -Ln\nTCP  10.96.0.10:80 rr\nroot@worker-2:~# ipvsadm -Ln\nTCP  10.96.0.11:80 rr\n`,
      }),
    words: describeOtherHost,
  },
  'second-listing': {
    severity: 'warning',
    meaning: "a dump holds a tool's output twice, of two nodes or two times, and kpc takes the first",
    example: () =>
      dump({
        'node.txt': 'TCP  10.96.0.10:80 rr\n  -> 10.244.0.1:80  Masq  1  0  0\nTCP  10.96.0.10:80 rr\n',
      }),
    words: ({ output, differences }: Texts<'output'> & Lists<'differences'>) => [
      `skipped a second listing of ${output}, of another node or another time, because it differs in ${nameSome(differences)}`,
      'give each node a file of its own',
    ],
  },
  'stray-lines': {
    severity: 'note',
    meaning: 'a dump has lines that no tool printed',
    example: () => dump({ 'node.txt': `${rules}the addresses:\n$ ipset save\ncreate KUBE-CLUSTER-IP hash:ip,port\n` }),
    words: ({ count }: Numbers<'count'>) =>
      `ignored ${formatCount(count)} unrecognised ${count === 1 ? 'line' : 'lines'}`,
  },
  'taken-whole': {
    severity: 'note',
    meaning: 'kpc takes a list of virtual servers for the whole list of a node',
    example: () => dump({ 'node.txt': '-A -t 10.96.0.10:80 -s rr\n-a -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 1\n' }),
    words: [
      'treated as the complete list of virtual servers of the node',
      'if these are only some, put the command that printed them above them, such as "$ ipvsadm -Sn | grep 10.96.0.1"',
    ],
  },
  unreadable: {
    severity: 'error',
    meaning: 'a side of a comparison cannot be read',
    example: () => ({
      words: ['diff', 'bundle', 'in.yaml'],
      files: { 'in.yaml': web, 'bundle/manifest.json': '{}', 'bundle/ipset.restore/x': '' },
    }),
    words: ({ path, reason }: OfPath & Texts<'reason'>) => `${path} cannot be read: ${reason}`,
  },
  'unread-file': {
    severity: 'warning',
    meaning: "a file of a dump is not a tool's output",
    example: () => dump({ 'iptables-save': rules, 'ipset-save': 'permission denied\n' }),
    words: wordsBy('problem', {
      'other-content': ({ expected }: Texts<'expected'>) => `skipped: not what ${expected} prints`,
      /** It cannot be read as a text at all; `expected` is what its name says that it holds. */
      'no-text': ({ expected, reason }: Texts<'reason'> & { readonly expected?: string | undefined }) =>
        `skipped: ${expected === undefined ? 'not a text' : `not what ${expected} prints`}: ${reason}`,
    }),
  },
  'unread-line': {
    severity: 'warning',
    meaning: 'a line of a dump cannot be read, and is left out',
    example: () => dump({ 'iptables-save': rules.replace('COMMIT', 'nonsense\nCOMMIT') }),
    // `more` other lines cannot be read for the same reason.
    words: ({ reason, more }: Texts<'reason'> & Numbers<'more'>) =>
      `skipped: ${reason}${more === 0 ? '' : ` (and ${formatCount(more)} more ${more === 1 ? 'line' : 'lines'})`}`,
  },
  'unread-output': {
    severity: warningIf(({ isAll }: UnreadOutput) => !isAll),
    meaning: 'a tool printed its output in a form that lacks what kpc needs',
    example: () => dump({ 'node.txt': 'Chain KUBE-SERVICES (2 references)\ntarget prot opt source destination\n' }),
    words: ({ output, reason }: UnreadOutput) => `${output} ${reason}`,
  },
} satisfies DiagnosticTable;
