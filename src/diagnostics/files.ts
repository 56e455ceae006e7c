import { aService, manifests, web } from './examples.ts';
import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import { escapeText, quote } from '../base/printable.ts';
import {
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
  'no-permission': 'no permission to read it',
  'too-large': ['the file is too large', 'split it into several'],
  'utf-16': ['the file is UTF-16', 'save it as UTF-8'],
  /** `how` it is packed, and what to do. */
  packed: ({ how }: Texts<'how'>) => `the file is ${how}`,
  'no-text': ({ what }: { readonly what: 'binary' | 'not UTF-8 text' }) => [
    `the file is ${what}`,
    'name YAML or JSON: kpc reads nothing else',
  ],
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
  const render = `"helm template ${chartWords} | ${into}"`;
  if (folder === undefined) return ['a Helm template', `render it first, as with ${render}`];
  if (chart === undefined) {
    return [
      count === 1 ? 'a Helm template' : `the first of ${count} Helm templates below ${folder}`,
      `render the chart first, as with ${render}${isLeftOut ? '' : ', or leave it out with --exclude'}`,
    ];
  }
  const others = exclude === undefined || isLeftOut ? '' : `, or leave it out with --exclude ${exclude}`;
  const what = count === 1 ? 'a Helm template' : `the first of ${count} Helm templates`;
  return [`${what} in the chart ${chart}`, `render it first, as with ${render}${others}`];
}

interface UnrenderedTemplate {
  /** How many files of the folder are templates; this is the first. */
  readonly count: number;
  readonly folder?: string | undefined;
  /** Whether the result lacks it already. */
  readonly isLeftOut: boolean;
  /** The placeholder, as it is written. */
  readonly mark: string;
  /** What reads manifests: "kpc compile -f -". */
  readonly into: string;
}

function describeUnrendered({ count, folder, isLeftOut, mark, into }: UnrenderedTemplate): Words {
  const more = count === 1 ? '' : ` (as in ${formatCount(count - 1)} more files of ${folder ?? 'the input'})`;
  const others = folder === undefined || isLeftOut ? '' : ', or leave it out with --exclude';
  return [
    `${quote(mark)} is a part of a template that is not filled in${more}`,
    `fill it in first, as with kubectl kustomize, envsubst or helm template, and pipe that into "${into}"${others}`,
  ];
}

interface Kustomized {
  /** Those of its fields that change the objects. */
  readonly fields: readonly string[];
  /** How many other kustomizations do so. */
  readonly more: number;
  /** How to name the folder to build on a command line. */
  readonly folderWord: string;
  /** What reads manifests: "kpc compile -f -". */
  readonly into: string;
}

function countFiles(files: number): string {
  return files === 1 ? '1 file' : `${formatCount(files)} files`;
}

type FileNames = Lists<'files'>;

/** What is wrong with files and folders, whatever they hold, and what keeps a text from being read as YAML or JSON. */
export const fileDiagnostics = {
  'empty-file': {
    severity: 'warning',
    meaning: 'a file holds no objects',
    example: () => manifests('# nothing here\n'),
    words: 'the file holds no objects',
  },
  'empty-folder': {
    severity: 'warning',
    meaning: 'a folder holds no YAML or JSON files',
    example: () => ({ words: ['compile', '-f', 'folder'], files: { 'folder/notes.txt': '' } }),
    // Others may be left out, by --exclude or a .kpcignore.
    words: ({ hasOthers }: { readonly hasOthers: boolean }) =>
      `the folder holds no files named *.yaml, *.yml or *.json${hasOthers ? ' that are not left out' : ''}`,
  },
  'helm-template': {
    severity: 'error',
    meaning: 'a file is a Helm template that is not rendered',
    example: () => manifests('apiVersion: v1\nkind: Service\nmetadata: { name: {{ .Values.name }} }\n'),
    words: describeTemplate,
  },
  'ignored-files': {
    severity: 'note',
    meaning: 'a .kpcignore leaves files out',
    example: () => ({
      words: ['compile', '-f', 'folder'],
      files: { 'folder/in.yaml': web, 'folder/old.yaml': web, 'folder/.kpcignore': 'old.yaml\n' },
    }),
    words: ({ by, files }: FileNames & Texts<'by'>) => `left out by ${by}: ${nameSome(files)}`,
  },
  kustomized: {
    severity: 'warning',
    meaning: 'a kustomization changes Services that are read as their files have them',
    example: () => ({
      words: ['compile', '-f', 'folder'],
      files: { 'folder/in.yaml': web, 'folder/kustomization.yaml': 'namePrefix: shop-\nresources: [in.yaml]\n' },
    }),
    words: ({ fields, more, folderWord, into }: Kustomized) => {
      const others = more === 0 ? '' : `, as ${more === 1 ? 'does' : 'do'} ${formatCount(more)} more`;
      return [
        `this kustomization changes Services by ${fields.join(', ')}${others}, and kpc reads them without`,
        `run "kubectl kustomize ${folderWord} | ${into}"`,
      ];
    },
  },
  'left-out': {
    severity: severityBy('problem', 'warning', { advice: 'note' }),
    meaning: '--skip-invalid leaves out a file, or objects of it, because of an error',
    example: () => manifests(web + aService('clusterIP: $ADDRESS'), '--skip-invalid'),
    words: wordsBy('problem', {
      /** `reason` is the text of the first error, and `more` the number of the others. */
      part: ({ reason, files, more }: Texts<'reason'> & Numbers<'files' | 'more'>) => {
        const others = more === 0 ? '' : ` (and ${formatCount(more)} more ${more === 1 ? 'error' : 'errors'})`;
        return `left out${files === 1 ? '' : ` ${countFiles(files)}`}: ${reason}${others}`;
      },
      all: ({ files, objects }: Numbers<'files' | 'objects'>) => {
        const again = `${formatCount(objects)} ${objects === 1 ? 'object' : 'objects'} that the input defines twice`;
        const parts = [...(files > 0 ? [`${countFiles(files)} with errors`] : []), ...(objects > 0 ? [again] : [])];
        return `the result lacks ${parts.join(' and ')} (--skip-invalid)`;
      },
      /** Nothing is left out, but could be. */
      advice: ({ files, all }: Numbers<'files' | 'all'>) => [
        `${formatCount(files)} of ${formatCount(all)} files ${files === 1 ? 'has' : 'have'} errors`,
        'leave out such files with --skip-invalid, which goes on with the others',
      ],
    }),
  },
  'skipped-files': {
    severity: 'note',
    meaning: 'a folder holds files without any Kubernetes object',
    example: () => ({
      words: ['compile', '-f', 'folder'],
      files: { 'folder/in.yaml': web, 'folder/values.yaml': 'replicas: 3\n' },
    }),
    words: ({ files }: FileNames) =>
      `skipped ${countFiles(files.length)} without any Kubernetes object: ${nameSome(files)}`,
  },
  'unrendered-template': {
    severity: 'error',
    meaning: 'a file is a template that is not rendered, or holds variables that are not filled in',
    example: () => manifests(aService(`clusterIP: $ADDRESS`)),
    words: describeUnrendered,
  },
  'unreadable-file': {
    severity: 'error',
    meaning: 'a file or folder is missing, cannot be read, or is not text',
    example: () => ({ words: ['compile', '-f', 'missing.yaml'], files: {} }),
    words: wordsBy('problem', unreadableWords),
  },
  'alias-bomb': {
    severity: 'error',
    meaning: 'YAML aliases expand a short text to more than fits in memory',
    example: () =>
      manifests(
        `a: &a [${'x, '.repeat(9)}x]\n${Array.from('bcde', (name, i) => `${name}: &${name} [${`*${'abcd'[i]}, `.repeat(9)}x]\n`).join('')}`,
      ),
    words: ({ copies, values }: Numbers<'copies' | 'values'>) => [
      `aliases multiply to ${copies} of ${values} values`,
      'write the values out',
    ],
  },
  'bad-json': {
    severity: 'error',
    meaning: 'a text begins like JSON, but is not valid JSON',
    example: () => ({
      words: ['compile', '-f', 'in.json'],
      files: { 'in.json': '{ "apiVersion": "v1" "kind": "Service" }' },
    }),
    words: wordsBy('problem', {
      invalid: ({ reason }: Texts<'reason'>) => `not valid JSON: ${reason}`,
      'text-after-json': ['text follows the JSON', 'put a line "---" before another document'],
    }),
  },
  'bad-yaml': {
    severity: 'error',
    meaning: 'a text is not valid YAML, or not YAML that kubectl reads',
    example: () => manifests('kind: Service\nmetadata: { name: web\n'),
    // `lines` are those around it, where the parser says so; what only kubectl reads in another way has none.
    words: ({ reason, lines }: Texts<'reason'> & { readonly lines?: string }) => [
      `not valid YAML: ${reason}`,
      lines === undefined
        ? 'write it in a plainer way, or leave it out'
        : (adviseOnOddSpace(lines) ??
          'check the indentation and the space after each ":", and put a text with ": ", "#" or brackets in quotes'),
    ],
  },
  'duplicate-key': {
    severity: 'error',
    meaning: 'a mapping has the same key twice',
    example: () => manifests('apiVersion: v1\nkind: Service\nkind: Service\n'),
    words: ({ isTwoObjects }: { readonly isTwoObjects?: true }) =>
      isTwoObjects
        ? ['a second object begins here without a line "---" before it', 'add that line']
        : ['this key is in the same mapping twice', 'keep one of them'],
  },
  'merge-conflict': {
    severity: 'error',
    meaning: 'Git left the marks of a merge conflict in the file',
    example: () => manifests(`<<<<<<< ours\n${web}=======\n${web}>>>>>>> theirs\n`),
    words: ['Git left a merge conflict here', 'resolve it, so that no line begins with <<<<<<<, ======= or >>>>>>>'],
  },
  'too-deep': {
    severity: 'error',
    meaning: 'lists or mappings nest deeper than in any Kubernetes object',
    example: () => manifests('- '.repeat(2000)),
    words: wordsBy('what', {
      values: 'lists and mappings nest too deeply',
      lists: ({ limit }: Numbers<'limit'>) => [
        `lists are nested more than ${limit} deep`,
        'put the objects into one list',
      ],
    }),
  },
  'yaml-tab': {
    severity: 'error',
    meaning: 'a tab indents YAML, which takes spaces only',
    example: () => manifests('kind: Service\nmetadata:\n\tname: web\n'),
    words: ['a tab is used for indentation', 'indent with spaces: YAML takes nothing else'],
  },
} satisfies DiagnosticTable;

/** What keeps a text from being read as YAML or JSON. */
export type SyntaxCode =
  'alias-bomb' | 'bad-json' | 'bad-yaml' | 'duplicate-key' | 'merge-conflict' | 'too-deep' | 'yaml-tab';
