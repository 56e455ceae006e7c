import { manifests, aService, web } from './examples.ts';
import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/join-words.ts';
import { escapeText, quote } from '../base/printable.ts';
import {
  severityBy,
  wordsBy,
  type DetailsBy,
  type DiagnosticTable,
  type Words,
  type Wordings,
} from './diagnostic-rows.ts';

/** The words for a file or folder that cannot be read, by `problem`. */
const unreadableWords = {
  url: ({ path }: { readonly path: string }) => [
    'this is a URL, and kpc reads files only',
    `pipe it in, as in "curl -sSL ${escapeText(path)} | kpc compile -f -"`,
  ],
  pattern: [
    'there is no such file or folder, and kpc expands no patterns',
    'name the folder, or each file with an -f of its own',
  ],
  'link-outside': ({ folder }: { readonly folder: string }) => [
    `a link to something outside ${folder}`,
    'name what it leads to with -f, too, or leave it out with --exclude PATTERN',
  ],
  'broken-link': ['a broken link: what it leads to is not there', 'mend or remove it'],
  missing: 'there is no such file or folder',
  'no-permission': 'no permission to read it',
  'too-large': ['the file is too large', 'split it into several'],
  'utf-16': ['the file is UTF-16', 'save it as UTF-8'],
  /** `how` it is packed, and what to do. */
  packed: ({ how }: { readonly how: string }) => `the file is ${how}`,
  'no-text': ({ what }: { readonly what: 'binary' | 'not UTF-8 text' }) => [
    `the file is ${what}`,
    'name YAML or JSON: kpc reads nothing else',
  ],
  /** As the system says it. */
  system: ({ reason }: { readonly reason: string }) => reason,
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
  /** How to leave the chart out; undefined where no pattern for it is safe in a shell. */
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
  /** What is to be filled in, as it is written. */
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

interface FileNames {
  readonly files: readonly string[];
}

/** What is wrong with files and folders, whatever they hold. */
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
    words: ({ by, files }: FileNames & { readonly by: string }) => `left out by ${by}: ${nameSome(files)}`,
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
      part: ({ reason, files, more }: { readonly reason: string; readonly files: number; readonly more: number }) => {
        const others = more === 0 ? '' : ` (and ${formatCount(more)} more ${more === 1 ? 'error' : 'errors'})`;
        return `left out${files === 1 ? '' : ` ${countFiles(files)}`}: ${reason}${others}`;
      },
      all: ({ files, objects }: { readonly files: number; readonly objects: number }) => {
        const again = `${formatCount(objects)} ${objects === 1 ? 'object' : 'objects'} that the input defines twice`;
        const parts = [...(files > 0 ? [`${countFiles(files)} with errors`] : []), ...(objects > 0 ? [again] : [])];
        return `the result lacks ${parts.join(' and ')} (--skip-invalid)`;
      },
      /** Nothing is left out, but could be. */
      advice: ({ files, all }: { readonly files: number; readonly all: number }) => [
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
} satisfies DiagnosticTable;
