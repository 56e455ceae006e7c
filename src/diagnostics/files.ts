import { run, aService, manifests, web } from './examples.ts';
import { count, formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import { escapeText, quote } from '../base/printable.ts';
import {
  row,
  severityBy,
  type DetailsBy,
  type DiagnosticTable,
  type Lists,
  type Numbers,
  type Texts,
  type Wordings,
  type Words,
  wordsBy,
} from './diagnostic-rows.ts';
import { adviseOnOddSpace } from '../base/odd-texts.ts';

/** The words for a file or folder that cannot be read, by `problem`. */
const unreadableWords = {
  url: ({ path }: Texts<'path'>) => [
    'this is a URL, and kpc reads files only',
    `pipe it in, as in "curl -sSL ${escapeText(path)} | kpc compile -f -"`,
  ],
  pattern: [
    'there is no such file or folder, and kpc expands no patterns',
    'name the folder, or each file with an -f of its own',
  ],
  'link-outside': ({ folder }: Texts<'folder'>) => [
    `a link to something outside ${folder}`,
    'name what it leads to with -f, too, or leave it out with --exclude PATTERN',
  ],
  'broken-link': ['a broken link: what it leads to is not there', 'mend or remove it'],
  missing: 'there is no such file or folder',
  'no-text': ({ what }: Texts<'what'>) => [`the file is ${what}`, 'name YAML or JSON in UTF-8: kpc reads nothing else'],
  /** As the system says it. */
  system: ({ reason }: Texts<'reason'>) => reason,
} as const satisfies Wordings;

/** Why a file or folder cannot be read. */
export type FileProblem = DetailsBy<'problem', typeof unreadableWords>;

interface HelmTemplate {
  /** How many templates the chart or folder has; this is the first. */
  readonly count: number;
  readonly chart?: string | undefined;
  /** The folder that the user named, if the template is below it. */
  readonly folder?: string | undefined;
  /** Whether the result lacks it already. */
  readonly isLeftOut: boolean;
  /** The chart's own name and its folder, as on a command line. */
  readonly chartWords: string;
  /** What reads manifests: "kpc compile -f -". */
  readonly into: string;
  /** How to leave the chart out; undefined if no pattern for it is safe in a shell. */
  readonly exclude?: string | undefined;
}

function describeTemplate({ count, chart, folder, isLeftOut, chartWords, into, exclude }: HelmTemplate): Words {
  const where = chart !== undefined ? ` in the chart ${chart}` : folder === undefined ? '' : ` below ${folder}`;
  const others = folder === undefined || isLeftOut ? '' : `, or leave it out with --exclude ${exclude ?? 'PATTERN'}`;
  return [
    count === 1 ? `a Helm template${chart === undefined ? '' : where}` : `the first of ${count} Helm templates${where}`,
    `render it first, as with "helm template ${chartWords} | ${into}"${others}`,
  ];
}

/** `mark` is the placeholder, as it is written. */
type UnrenderedTemplate = Pick<HelmTemplate, 'count' | 'folder' | 'isLeftOut' | 'into'> & Texts<'mark'>;

function describeUnrendered({ count, folder, isLeftOut, mark, into }: UnrenderedTemplate): Words {
  const more = count === 1 ? '' : ` (as in ${formatCount(count - 1)} more files of ${folder ?? 'the input'})`;
  const others = folder === undefined || isLeftOut ? '' : ', or leave it out with --exclude';
  return [
    `${quote(mark)} is a part of a template that is not filled in${more}`,
    `fill it in first, as with kubectl kustomize, envsubst or helm template, and pipe that into "${into}"${others}`,
  ];
}

type FileNames = Lists<'files'>;

/** What is wrong with files and folders, whatever they hold, and what keeps a text from being read as YAML or JSON. */
export const fileDiagnostics = {
  'empty-file': row('warning', {
    meaning: 'a file holds no objects',
    example: manifests('# nothing here\n'),
    words: 'the file holds no objects',
  }),
  'empty-folder': row('warning', {
    meaning: 'a folder holds no YAML or JSON files',
    example: run('compile -f folder', { 'folder/notes.txt': '' }),
    words: 'the folder holds no files named *.yaml, *.yml or *.json, or all are left out',
  }),
  'helm-template': row('error', {
    meaning: 'a file is a Helm template that is not rendered',
    example: manifests('apiVersion: v1\nkind: Service\nmetadata: { name: {{ .Values.name }} }\n'),
    words: describeTemplate,
  }),
  'ignored-files': row('note', {
    meaning: 'a .kpcignore leaves files out',
    example: run('compile -f folder', {
      'folder/in.yaml': web,
      'folder/old.yaml': web,
      'folder/.kpcignore': 'old.yaml\n',
    }),
    words: ({ by, files }: FileNames & Texts<'by'>) => `left out by ${by}: ${nameSome(files)}`,
  }),
  kustomized: row('warning', {
    meaning: 'a kustomization changes Services that are read as their files have them',
    example: run('compile -f folder', {
      'folder/in.yaml': web,
      'folder/kustomization.yaml': 'namePrefix: shop-\nresources: [in.yaml]\n',
    }),
    // The `fields` that change objects, how many `more` kustomizations do so, the folder to build, and what reads manifests.
    words: ({ fields, more, folderWord, into }: Lists<'fields'> & Numbers<'more'> & Texts<'folderWord' | 'into'>) => {
      const others = more === 0 ? '' : `, as ${more === 1 ? 'does' : 'do'} ${formatCount(more)} more`;
      return [
        `this kustomization changes Services by ${fields.join(', ')}${others}, and kpc reads them without`,
        `run "kubectl kustomize ${folderWord} | ${into}"`,
      ];
    },
  }),
  'left-out': row(severityBy('problem', 'warning', { advice: 'note' }), {
    meaning: '--skip-invalid leaves out a file, or objects of it, because of an error',
    example: manifests(web + aService('clusterIP: $ADDRESS'), '--skip-invalid'),
    words: wordsBy('problem', {
      /** `reason` is the text of the first error, and `more` the number of the others. */
      part: ({ reason, files, more }: Texts<'reason'> & Numbers<'files' | 'more'>) => {
        const others = more === 0 ? '' : ` (and ${count(more, 'more error')})`;
        return `left out${files === 1 ? '' : ` ${count(files, 'file')}`}: ${reason}${others}`;
      },
      all: ({ files, objects }: Numbers<'files' | 'objects'>) => {
        const again = `${count(objects, 'object')} that the input defines twice`;
        const parts = [...(files > 0 ? [`${count(files, 'file')} with errors`] : []), ...(objects > 0 ? [again] : [])];
        return `the result lacks ${parts.join(' and ')} (--skip-invalid)`;
      },
      /** Nothing is left out, but could be. */
      advice: ({ files, all }: Numbers<'files' | 'all'>) => [
        `${formatCount(files)} of ${formatCount(all)} files ${files === 1 ? 'has' : 'have'} errors`,
        'leave out such files with --skip-invalid, which goes on with the others',
      ],
    }),
  }),
  'skipped-files': row('note', {
    meaning: 'a folder holds files without any Kubernetes object',
    example: run('compile -f folder', { 'folder/in.yaml': web, 'folder/values.yaml': 'replicas: 3\n' }),
    words: ({ files }: FileNames) =>
      `skipped ${count(files.length, 'file')} without any Kubernetes object: ${nameSome(files)}`,
  }),
  'unrendered-template': row('error', {
    meaning: 'a file is a template that is not rendered, or holds variables that are not filled in',
    example: manifests(aService(`clusterIP: $ADDRESS`)),
    words: describeUnrendered,
  }),
  'unreadable-file': row('error', {
    meaning: 'a file or folder is missing, cannot be read, or is not text',
    example: run('compile -f missing.yaml', {}),
    words: wordsBy('problem', unreadableWords),
  }),
  'alias-bomb': row('error', {
    meaning: 'YAML aliases expand a short text to more than fits in memory',
    example: manifests(
      `a: &a [${'x, '.repeat(9)}x]\n${Array.from('bcde', (name, i) => `${name}: &${name} [${`*${'abcd'[i]}, `.repeat(9)}x]\n`).join('')}`,
    ),
    words: ({ copies, values }: Numbers<'copies' | 'values'>) => [
      `aliases multiply to ${copies} of ${values} values`,
      'write the values out',
    ],
  }),
  'bad-json': row('error', {
    meaning: 'a text begins like JSON, but is not valid JSON',
    example: run('compile -f in.json', { 'in.json': '{ "apiVersion": "v1" "kind": "Service" }' }),
    words: ({ reason }: Texts<'reason'>) => `not valid JSON: ${reason}`,
  }),
  'bad-yaml': row('error', {
    meaning: 'a text is not valid YAML, or not YAML that kubectl reads',
    example: manifests('kind: Service\nmetadata: { name: web\n'),
    // `lines` are those around it, where the parser says so; what only kubectl reads in another way has none.
    words: ({ reason, lines }: Texts<'reason'> & { readonly lines?: string }) => [
      `not valid YAML: ${reason}`,
      lines === undefined
        ? 'write it in a plainer way, or leave it out'
        : (adviseOnOddSpace(lines) ??
          'check the indentation and the space after each ":", and put a text with ": ", "#" or brackets in quotes'),
    ],
  }),
  'duplicate-key': row('error', {
    meaning: 'a mapping has the same key twice',
    example: manifests('apiVersion: v1\nkind: Service\nkind: Service\n'),
    words: ({ isTwoObjects }: { readonly isTwoObjects?: true }) =>
      isTwoObjects
        ? ['a second object begins here without a line "---" before it', 'add that line']
        : ['this key is in the same mapping twice', 'keep one of them'],
  }),
  'merge-conflict': row('error', {
    meaning: 'Git left the marks of a merge conflict in the file',
    example: manifests(`<<<<<<< ours\n${web}=======\n${web}>>>>>>> theirs\n`),
    words: ['Git left a merge conflict here', 'resolve it, so that no line begins with <<<<<<<, ======= or >>>>>>>'],
  }),
  'too-deep': row('error', {
    meaning: 'lists or mappings nest deeper than in any Kubernetes object',
    example: manifests('- '.repeat(2000)),
    words: 'lists and mappings nest too deeply',
  }),
  'yaml-tab': row('error', {
    meaning: 'a tab indents YAML, which takes spaces only',
    example: manifests('kind: Service\nmetadata:\n\tname: web\n'),
    words: ['a tab is used for indentation', 'indent with spaces: YAML takes nothing else'],
  }),
} satisfies DiagnosticTable;

/** What keeps a text from being read as YAML or JSON. */
export type SyntaxCode =
  'alias-bomb' | 'bad-json' | 'bad-yaml' | 'duplicate-key' | 'merge-conflict' | 'too-deep' | 'yaml-tab';
