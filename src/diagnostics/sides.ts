import { run, dump, rules, web } from './examples.ts';
import { count } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import {
  row,
  wordsBy,
  type DetailsBy,
  type DiagnosticTable,
  type Wordings,
  type Words,
  type Lists,
  type Numbers,
  type Texts,
  warningIf,
} from './diagnostic-rows.ts';

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

type OfFolder = Texts<'folder'>;

const writeIt = 'write it first with -o or --golden, or name another folder';

/** The words for a folder that nothing can be compared with, by `problem`. */
const uncheckedWords = {
  missing: ({ folder }: OfFolder) => [
    `--check ${folder}: there is no such folder`,
    `write it first with -o ${folder}, or with --golden for git`,
  ],
  'no-bundle': ({ folder }: OfFolder) => [`--check ${folder}: it is no bundle and no golden`, writeIt],
  'no-bundle-of-a-node': ({ folder }: OfFolder) => [
    `--check ${folder}: it holds no bundle and no golden of a node`,
    `${writeIt}; the bundle of one node is compared with --node`,
  ],
  fleet: ({ folder, example }: OfFolder & Texts<'example'>) => [
    `--check ${folder}: it holds the bundles of many nodes`,
    `use --all-nodes, or name one of them, such as ${example}`,
  ],
  unreadable: ({ folder, reason }: OfFolder & Texts<'reason'>) => `--check ${folder}: it cannot be read: ${reason}`,
} as const satisfies Wordings;

/** Why nothing can be compared with a folder. */
export type CheckedFolderProblem = WithoutFolder<DetailsBy<'problem', typeof uncheckedWords>>;

type WithoutFolder<Details> = Details extends OfFolder ? Omit<Details, 'folder'> : never;

type OfPath = Texts<'path'>;

/** What is wrong with bundles, goldens and dumps: the sides of a comparison that are not manifests. */
export const sideDiagnostics = {
  'bad-bundle': row('error', {
    meaning: 'a folder is not a bundle or a golden that kpc wrote, or was changed since',
    example: run('diff bundle in.yaml', { 'in.yaml': web, 'bundle/manifest.json': '{}' }),
    words: ({ path, problem }: OfPath & Texts<'problem'>) => `${path}: ${problem}`,
  }),
  'cut-off-file': row('warning', {
    meaning: "a tool's output is cut off",
    example: dump({ 'iptables-save': rules.replace('COMMIT\n', '') }),
    words: ({ expected }: Texts<'expected'>) => [
      `what ${expected} printed was cut off, and is not compared`,
      'print it again',
    ],
  }),
  'many-nodes': row('error', {
    meaning: 'a folder holds bundles or dumps of several nodes, where kpc needs one',
    example: run('diff dumps in.yaml', { 'in.yaml': web, 'dumps/worker-1/iptables-save': rules }),
    words: ({ path, what, example }: OfPath & Texts<'what' | 'example'>) => [
      `${path} holds ${what} of nodes, not one`,
      `name one of them, such as ${example}, or the node with --node`,
    ],
  }),
  'legacy-tables': row('note', {
    meaning: 'iptables-legacy has rules that a dump does not show',
    example: dump({
      'iptables-save': `# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n${rules}`,
    }),
    words: ['iptables-legacy has more rules, which are not here', 'add what iptables-legacy-save prints'],
  }),
  'no-manifests': row('error', {
    meaning: 'kpc is asked to compile a bundle or a dump, not manifests',
    example: run('compile -f node.txt', { 'node.txt': rules }),
    words: ({ path, what }: OfPath & Texts<'what'>) => [
      `${path} is a ${what}, not manifests: nothing of it is compiled`,
      `look at it with kpc describe -f ${path}, or compare it with kpc diff`,
    ],
  }),
  'no-table': row('note', {
    meaning: 'a dump has iptables rules without the line that names their table',
    example: dump({ 'node.txt': '-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j RETURN\n' }),
    words: ({ tables }: Lists<'tables'>) =>
      `no line such as *nat names the table of these rules: kpc takes it to be ${tables.join(' and ')}`,
  }),
  'nothing-to-check': row('error', {
    meaning: '--check names a folder that kpc cannot compare with',
    example: run('compile -f in.yaml --check nowhere', { 'in.yaml': web }),
    words: wordsBy('problem', uncheckedWords),
  }),
  'other-host': row('warning', {
    meaning: 'a dump holds the output of several hosts, and kpc takes that of the first',
    example: dump({
      'node.txt': `root@worker-1:~# ipvsadm -Ln\nTCP  10.96.0.10:80 rr\nroot@worker-2:~# ipvsadm -Ln\nTCP  10.96.0.11:80 rr\n`,
    }),
    words: describeOtherHost,
  }),
  'second-listing': row('warning', {
    meaning: "a dump holds a tool's output twice, of two nodes or two times, and kpc takes the first",
    example: dump({
      'node.txt': 'TCP  10.96.0.10:80 rr\n  -> 10.244.0.1:80  Masq  1  0  0\nTCP  10.96.0.10:80 rr\n',
    }),
    words: ({ output, differences }: Texts<'output'> & Lists<'differences'>) => [
      `skipped a second listing of ${output}, of another node or another time, because it differs in ${nameSome(differences)}`,
      'give each node a file of its own',
    ],
  }),
  'stray-lines': row('note', {
    meaning: 'a dump has lines that no tool printed',
    example: dump({ 'node.txt': `${rules}the addresses:\n$ ipset save\ncreate KUBE-CLUSTER-IP hash:ip,port\n` }),
    words: ({ lines }: Numbers<'lines'>) => `ignored ${count(lines, 'unrecognised line')}`,
  }),
  'taken-whole': row('note', {
    meaning: 'kpc takes a list of virtual servers for the whole list of a node',
    example: dump({ 'node.txt': '-A -t 10.96.0.10:80 -s rr\n-a -t 10.96.0.10:80 -r 10.244.0.1:8080 -m -w 1\n' }),
    words: [
      'treated as the complete list of virtual servers of the node',
      'if these are only some, put the command that printed them above them, such as "$ ipvsadm -Sn | grep 10.96.0.1"',
    ],
  }),
  'unread-file': row('warning', {
    meaning: "a file of a dump is not a tool's output",
    example: dump({ 'iptables-save': rules, 'ipset-save': 'permission denied\n' }),
    // `expected` is what its name says that it holds; `reason`, why it cannot be read as a text at all.
    words: ({ expected, reason }: { readonly expected: string | undefined; readonly reason?: string }) =>
      `skipped: ${expected === undefined ? 'not a text' : `not what ${expected} prints`}${reason === undefined ? '' : `: ${reason}`}`,
  }),
  'unread-line': row('warning', {
    meaning: 'a line of a dump cannot be read, and is left out',
    example: dump({ 'iptables-save': rules.replace('COMMIT', 'nonsense\nCOMMIT') }),
    // `more` other lines cannot be read for the same reason.
    words: ({ reason, more }: Texts<'reason'> & Numbers<'more'>) =>
      `skipped: ${reason}${more === 0 ? '' : ` (and ${count(more, 'more line')})`}`,
  }),
  'unread-output': row(
    warningIf(({ isAll }: { readonly isAll: boolean }) => !isAll),
    {
      meaning: 'a tool printed its output in a form that lacks what kpc needs',
      example: dump({ 'node.txt': 'Chain KUBE-SERVICES (2 references)\ntarget prot opt source destination\n' }),
      // `isAll`: nothing else of the dump can be read.
      words: ({ output, reason }: Texts<'output' | 'reason'> & { readonly isAll: boolean }) => `${output} ${reason}`,
    },
  ),
} satisfies DiagnosticTable;
