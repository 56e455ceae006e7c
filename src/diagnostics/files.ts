import { describeBound, type Bounded } from '../base/bounds.ts';
import { count, formatCount } from '../base/format-count.ts';
import { joinWords, nameSome } from '../base/join-words.ts';
import { escapeText, quote, shellWord } from '../base/printable.ts';
import {
  type DetailsBy,
  type DiagnosticTable,
  type Lists,
  type Numbers,
  type Texts,
  type Wordings,
  type Words,
  row,
  severityBy,
  warningIf,
  wordsBy,
} from './diagnostic-rows.ts';
import { adviseOnOddSpace } from '../base/odd-texts.ts';

const unreadableWords = {
  url: ({ path }: Texts<'path'>) => [
    'kpc reads files, not URLs',
    `pipe it in, as in "curl -sSL ${escapeText(path)} | kpc compile -f -"`,
  ],
  pattern: [
    'there is no such file or folder, and kpc expands no patterns',
    'name the folder, or each file with an -f of its own',
  ],
  'link-outside': ({ folder }: Texts<'folder'>) => [
    `a link to something outside ${folder}`,
    'pass its target with -f as well, or leave it out with --exclude PATTERN',
  ],
  'broken-link': ['broken link: its target is missing', 'mend or remove it'],
  missing: 'there is no such file or folder',
  'no-text': ({ what }: Texts<'what'>) => [`the file is ${what}`, 'name YAML or JSON in UTF-8'],
  'no-git': [
    'there is no such file, and git, which a revision is read with, is not installed',
    'install git, or check the revision out and name its folder',
  ],
  /** In the words of git. */
  'no-repository': ({ said }: Texts<'said'>) => [
    `there is no such file, and no revision can be read: ${said}`,
    'run kpc in the working tree of the repository',
  ],
  'no-revision': ({ revision, near }: Texts<'revision'> & { readonly near?: string | undefined }) => [
    `there is no such file, and ${quote(revision)} is no revision of this repository`,
    near === undefined
      ? 'name a branch, a tag or a commit; in a shallow clone, fetch it first with "git fetch --unshallow"'
      : `did you mean ${near}?`,
  ],
  'whole-revision': ({ revision }: Texts<'revision'>) => [
    `there is no such file, and ${quote(revision)} is a revision without a path`,
    `name a file or folder in it, as ${escapeText(revision)}:PATH, or the folder that you are in, as ${escapeText(revision)}:.`,
  ],
  'git-failed': ({ said }: Texts<'said'>) => [
    `git cannot read this revision: ${said}`,
    'check the revision out and name its folder',
  ],
  /** In the words of the operating system. */
  system: ({ reason }: Texts<'reason'>) => reason,
} as const satisfies Wordings;

export type FileProblem = DetailsBy<'problem', typeof unreadableWords>;

interface UnrenderedTemplate {
  /** How many templates the chart or folder has; this is the first. */
  readonly count: number;
  readonly mark: string;
  /** The folder of the Helm chart that it is a part of. */
  readonly chart?: string | undefined;
  /** The folder that the user named, if the template is below it. */
  readonly folder?: string | undefined;
  /** Whether the result lacks it already. */
  readonly isLeftOut: boolean;
  /** What renders a chart, with its own name and its folder: "helm template web charts/web". */
  readonly render?: string | undefined;
  /** What reads manifests: "kpc compile -f -". */
  readonly into: string;
  /** How to leave the chart out; undefined if no pattern for it is safe in a shell. */
  readonly exclude?: string | undefined;
}

function describeTemplate(details: UnrenderedTemplate): Words {
  const { count: number, mark, chart, folder, isLeftOut, render, into, exclude } = details;
  const others = folder === undefined || isLeftOut ? '' : `, or leave it out with --exclude ${exclude ?? 'PATTERN'}`;
  const how =
    render === undefined
      ? `with the program that fills in such templates, and pipe what it prints into "${into}"`
      : `as with "${render} | ${into}"`;
  const help = `render it first, ${how}${others}`;
  if (chart !== undefined)
    return [
      `${number === 1 ? 'a Helm template' : `the first of ${number} Helm templates`} in the chart ${chart}`,
      help,
    ];
  const more = number === 1 ? '' : ` (as in ${count(number - 1, 'more file')} of ${folder ?? 'the input'})`;
  return [`${quote(mark)} is a part of a template that is not filled in${more}`, help];
}

type FileNames = Lists<'files'>;

/** `words`: of YAML that only the full parser reads. */
type TooLong = Numbers<'most'> & { readonly of: Bounded };

/** `more` other kustomizations lack something, too; `folderWord` is what to build, for `into` to read. */
interface IncompleteKustomization extends Lists<'lacks'>, Numbers<'more'>, Texts<'folderWord' | 'into'> {
  readonly isShown: boolean;
}

type OfFolder = Texts<'folder'>;

type Render = Texts<'tool' | 'said' | 'pipe'>;

/** Problems with files, folders and texts, and with comparison sides that are bundles, goldens or dumps. */
export const fileDiagnostics = {
  'empty-file': row('warning', ({ isFolder }: { readonly isFolder?: true }) =>
    isFolder
      ? 'the folder holds no files named *.yaml, *.yml or *.json, or all are excluded'
      : 'the file holds no objects',
  ),
  'not-rendered': row(
    'error',
    wordsBy('problem', {
      nothing: [
        '--render: no input is a chart or a kustomization',
        'name a folder with a Chart.yaml or a kustomization.yaml, or leave out --render',
      ],
      'idle-values': ['--render-values: no input is a chart', 'leave it out'],
      'no-program': ({ tool, pipe }: Render) => [`there is no ${tool} on the PATH`, `where it is, run: ${pipe}`],
      'too-large': ({ tool, pipe }: Render) => [`${tool} prints more than kpc reads`, `try: ${pipe}`],
      'too-slow': ({ tool, pipe }: Render) => [`${tool} did not end in time`, `try: ${pipe}`],
      failed: ({ tool, said, pipe }: Render) => [`${tool} failed: ${said}`, `see what it says to: ${pipe}`],
    }),
  ),
  'ignored-files': row('note', ({ by, files }: FileNames & Texts<'by'>) => `left out by ${by}: ${nameSome(files)}`),
  'incomplete-kustomization': row(
    warningIf(({ isShown }: IncompleteKustomization) => isShown),
    ({ lacks, more, folderWord, into }: IncompleteKustomization) => {
      const others = more === 0 ? '' : `, as ${more === 1 ? 'does' : 'do'} ${formatCount(more)} more`;
      return [
        `this kustomization takes ${nameSome(lacks)}, which the input does not hold${others}`,
        `run "kubectl kustomize ${folderWord} | ${into}"`,
      ];
    },
  ),
  kustomized: row(
    'warning',
    // `fields` change objects, in `more` other kustomizations too. `folderWord` is what to build, for `into` to read.
    ({ fields, more, folderWord, into }: Lists<'fields'> & Numbers<'more'> & Texts<'folderWord' | 'into'>) => {
      const others = more === 0 ? '' : `, as ${more === 1 ? 'does' : 'do'} ${formatCount(more)} more`;
      return [
        `this kustomization changes Services by ${fields.join(', ')}${others}, and kpc reads them without`,
        `run "kubectl kustomize ${folderWord} | ${into}"`,
      ];
    },
  ),
  'left-out': row(
    severityBy('problem', 'warning', { advice: 'note' }),
    wordsBy('problem', {
      /** `reason` is the text of the first error, and `more` the number of the others. */
      part: ({ reason, files, more }: Texts<'reason'> & Numbers<'files' | 'more'>) => {
        const others = more === 0 ? '' : ` (and ${count(more, 'more error')})`;
        return `left out${files === 1 ? '' : ` ${count(files, 'file')}`}: ${reason}${others}`;
      },
      all: ({ files, partial, objects }: Numbers<'files' | 'partial' | 'objects'>) => {
        const wrong = `the objects with errors of ${count(partial, 'file')}`;
        const again = `${count(objects, 'object')} that the input defines twice`;
        const parts = [
          ...(files > 0 ? [`${count(files, 'file')} with errors`] : []),
          ...(partial > 0 ? [wrong] : []),
          ...(objects > 0 ? [again] : []),
        ];
        return `the result lacks ${joinWords(parts)} (--skip-invalid)`;
      },
      /** Nothing is left out, but could be. */
      advice: ({ files, all }: Numbers<'files' | 'all'>) => [
        `${formatCount(files)} of ${formatCount(all)} files ${files === 1 ? 'has' : 'have'} errors`,
        'leave out what is wrong with --skip-invalid',
      ],
    }),
  ),
  'skipped-files': row(
    'note',
    ({ files }: FileNames) =>
      `skipped ${count(files.length, 'file')} without any Kubernetes object: ${nameSome(files)}`,
  ),
  'unrendered-template': row('error', describeTemplate),
  'unreadable-file': row('error', wordsBy('problem', unreadableWords)),
  'alias-bomb': row('error', ({ copies, values }: Numbers<'copies' | 'values'>) => [
    `aliases multiply to ${copies} of ${values} values`,
    'replace the aliases with their values',
  ]),
  'bad-json': row('error', ({ reason }: Texts<'reason'>) => `not valid JSON: ${reason}`),
  'not-closed': row('error', ({ language, sign, line }: Texts<'language' | 'sign'> & Numbers<'line'>) => [
    `not valid ${language}: the ${sign} of line ${line} is not closed`,
    `write ${sign === '{' ? '}' : sign === '[' ? ']' : sign} where it ends`,
  ]),
  'bad-yaml': row(
    'error',
    // `lines` are those around it, where the parser says so; what only kubectl reads in another way has none.
    ({ reason, lines }: Texts<'reason'> & { readonly lines?: string }) => [
      `not valid YAML: ${reason}`,
      lines === undefined
        ? 'write it in a plainer way, or leave it out'
        : (adviseOnOddSpace(lines) ??
          'check the indentation and the space after each ":", and put a text with ": ", "#" or brackets in quotes'),
    ],
  ),
  'duplicate-key': row('error', (repeated: { readonly times: number } | { readonly isTwoObjects: true }) =>
    'times' in repeated
      ? [
          `this key is in the same mapping ${repeated.times === 2 ? 'twice' : `${formatCount(repeated.times)} times`}`,
          'keep one of them',
        ]
      : ['a second object begins here without a line "---" before it', 'add that line'],
  ),
  'merge-conflict': row('error', [
    'Git left a merge conflict here',
    'resolve it, so that no line begins with <<<<<<<, ======= or >>>>>>>',
  ]),
  'too-deep': row('error', 'lists and mappings nest too deeply'),
  'too-long': row('error', ({ of, most }: TooLong) => [
    describeBound(of, most),
    of === 'words'
      ? 'split the text by lines of "---", or write it as JSON: only YAML in the plain form that kubectl prints is read to any length'
      : 'split it, and leave out what no Service needs',
  ]),
  'yaml-tab': row('error', ['a tab is used for indentation', 'indent with spaces: YAML does not allow tabs']),
  'bad-bundle': row('error', ({ path, problem }: Texts<'path' | 'problem'>) => `${path}: ${problem}`),
  'dump-reading': row(
    'note',
    wordsBy('problem', {
      'legacy-tables': ['iptables-legacy has more rules, which are not here', 'add what iptables-legacy-save prints'],
      filtered: ({ command }: Texts<'command'>) => [
        `lines such as ":FORWARD ACCEPT" lack, which ${command} prints: this is a part of its output`,
        `add all that ${command} prints`,
      ],
      'no-interfaces': ({ command }: Texts<'command'>) => [
        `${command} without -v shows no interfaces: its rules are not compared, and kpc trace takes them for a part`,
        'add what iptables-save prints, or the list with -v',
      ],
      'no-table': ({ tables }: Lists<'tables'>) =>
        `no line such as *nat names the table of these rules: kpc takes it to be ${tables.join(' and ')}`,
      'stray-lines': ({ lines }: Numbers<'lines'>) => `ignored ${count(lines, 'unrecognised line')}`,
    }),
  ),
  'nodes-folder': row(
    'error',
    ({ path, example, of }: Texts<'path' | 'example'> & { readonly of: 'bundles' | 'dumps' }) => [
      `${path} holds the ${of} of several nodes`,
      `name the folder of one node, such as ${example}${of === 'bundles' ? ', or the node with --node' : ''}`,
    ],
  ),
  'no-manifests': row(
    'error',
    // `beside` is another input that was given.
    ({ path, what, beside }: Texts<'path' | 'what'> & { readonly beside?: string | undefined }) =>
      beside === undefined
        ? [
            `${path} is a ${what}, not manifests: it cannot be compiled`,
            `look at it with kpc describe -f ${shellWord(path)}, or compare it with kpc diff`,
          ]
        : [
            `${path} is a ${what}: ${beside} cannot be beside it`,
            `look at the ${what} by itself, or compare the two with kpc diff`,
          ],
  ),
  'nothing-to-check': row(
    'error',
    wordsBy('problem', {
      missing: ({ folder }: OfFolder) => [
        `--check ${folder}: there is no such folder`,
        `write it first with -o ${folder}, or with --golden for git`,
      ],
      'no-bundle': ({ folder }: OfFolder) => [
        `--check ${folder}: kpc compile wrote no bundle and no golden there`,
        'name another folder, or write one with -o or --golden',
      ],
      revision: ({ folder }: OfFolder) => [
        `--check ${folder}: the nodes of a git revision are compared one by one`,
        'name the folder of one node in it, and the node with --node',
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
  ),
  'second-listing': row('warning', ({ output, differences }: Texts<'output'> & Lists<'differences'>) => [
    `skipped ${output} of another node or another time, which differs in ${nameSome(differences)}`,
    'use one file for each node',
  ]),
  unreadable: row('error', ({ path, reason }: Texts<'path' | 'reason'>) => `${path} cannot be read: ${reason}`),
  'unread-file': row(
    'warning',
    // `expected` is the tool whose output its name promises; `reason` is why it cannot be read as text at all.
    (details: { readonly expected?: string | undefined; readonly reason?: string; readonly isCutOff?: true }) => {
      const { expected, reason, isCutOff } = details;
      if (isCutOff) return [`what ${expected} printed is cut off: what it lacks is not known`, 'print it again'];
      const what = expected === undefined ? 'not a text' : `not what ${expected} prints`;
      return `skipped: ${what}${reason === undefined ? '' : `: ${reason}`}`;
    },
  ),
  'unread-line': row(
    'warning',
    // `more` other lines cannot be read for the same reason.
    ({ reason, more }: Texts<'reason'> & Numbers<'more'>) =>
      `skipped: ${reason}${more === 0 ? '' : ` (and ${count(more, 'more line')})`}`,
  ),
  'unread-output': row(
    warningIf(({ isAll }: { readonly isAll: boolean }) => !isAll),
    // `isAll`: nothing else of the dump can be read.
    ({ output, reason }: Texts<'output' | 'reason'> & { readonly isAll: boolean }) => `${output} ${reason}`,
  ),
} satisfies DiagnosticTable;
/** What keeps a text from being read as YAML or JSON. */
export type SyntaxCode =
  | 'alias-bomb'
  | 'bad-json'
  | 'bad-yaml'
  | 'duplicate-key'
  | 'merge-conflict'
  | 'not-closed'
  | 'too-deep'
  | 'too-long'
  | 'yaml-tab';
