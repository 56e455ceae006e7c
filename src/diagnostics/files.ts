import { formatCount } from '../base/format-count.ts';
import { nameSome } from '../base/name-some.ts';
import { escapeText, quote } from '../base/wording.ts';
import type { DiagnosticTable } from './table.ts';

/** Why a file or folder cannot be read. */
export type FileProblem =
  | { readonly problem: 'url'; readonly path: string }
  | { readonly problem: 'link-outside'; readonly folder: string }
  /** `what` says which encoding or packing the file has. */
  | { readonly problem: 'no-text'; readonly what: 'binary' | 'not UTF-8 text' }
  | { readonly problem: 'packed'; readonly how: string }
  /** As the system says it. */
  | { readonly problem: 'system'; readonly reason: string }
  | { readonly problem: 'missing' | 'no-permission' | 'pattern' | 'too-large' | 'utf-16' };

function describeUnreadable(details: FileProblem): string {
  switch (details.problem) {
    case 'url':
      return `this is a URL, and kpc reads files only: pipe it in, as in "curl -sSL ${escapeText(details.path)} | kpc compile -f -"`;
    case 'pattern':
      return 'there is no such file or folder, and kpc expands no patterns: name the folder, or each file with an -f of its own';
    case 'link-outside':
      return `a link to something outside ${details.folder}: name that file or folder with -f`;
    case 'missing':
      return 'there is no such file or folder';
    case 'no-permission':
      return 'no permission to read it';
    case 'too-large':
      return 'the file is too large: split it into several';
    case 'utf-16':
      return 'the file is UTF-16: save it as UTF-8';
    case 'packed':
      return `the file is ${details.how}`;
    case 'no-text':
      return `the file is ${details.what}: kpc reads YAML and JSON`;
    case 'system':
      return details.reason;
  }
}

interface HelmTemplate {
  /** How many templates the chart or folder has; this is the first. */
  readonly count: number;
  readonly chart?: string | undefined;
  /** The folder that the user named, if the template is below it. */
  readonly folder?: string | undefined;
  /** Whether the result lacks it already. */
  readonly isLeftOut: boolean;
  /** How to name the chart on a command line. */
  readonly chartWord: string;
  /** How to leave the chart out; undefined where no pattern for it is safe in a shell. */
  readonly exclude?: string | undefined;
}

function describeTemplate({ count, chart, folder, isLeftOut, chartWord, exclude }: HelmTemplate): string {
  const render = `"helm template ${chartWord} | kpc compile -f -"`;
  if (folder === undefined) return `a Helm template: render it first, as with ${render}`;
  if (chart === undefined) {
    const what = count === 1 ? 'a Helm template' : `the first of ${count} Helm templates below ${folder}`;
    return `${what}: render the chart first, as with ${render}${isLeftOut ? '' : ', or leave it out with --exclude'}`;
  }
  const others = exclude === undefined || isLeftOut ? '' : `, or leave it out with --exclude ${exclude}`;
  const what = count === 1 ? 'a Helm template' : `the first of ${count} Helm templates`;
  return `${what} in the chart ${chart}: render it first, as with ${render}${others}`;
}

/** What a file is written for that must be rendered first. */
export type TemplateKind = 'helm' | 'go' | 'jinja' | 'erb' | 'ytt' | 'kustomize' | 'envsubst' | 'placeholder';

interface UnrenderedTemplate {
  readonly kind: Exclude<TemplateKind, 'helm'>;
  /** How many files of the folder are of that kind; this is the first. */
  readonly count: number;
  readonly folder?: string | undefined;
  /** Whether the result lacks it already. */
  readonly isLeftOut: boolean;
  /** What is to be filled in, as it is written. */
  readonly mark: string;
  /** How to name the file and its folder on a command line. */
  readonly fileWord: string;
  readonly folderWord: string;
}

function describeUnrendered(details: UnrenderedTemplate): string {
  const { count, folder, isLeftOut } = details;
  const more = count === 1 ? '' : ` (as in ${formatCount(count - 1)} more files of ${folder ?? 'the input'})`;
  return `${describeLanguage(details, more)}${folder === undefined || isLeftOut ? '' : ', or leave it out with --exclude'}`;
}

function describeLanguage({ kind, mark, fileWord, folderWord }: UnrenderedTemplate, more: string): string {
  switch (kind) {
    case 'go':
      return `a Go template${more}: render it first, as with "helm template CHART | kpc compile -f -"`;
    case 'jinja':
      return `a Jinja or Mustache template${more}: render it first, as with "jinja2 ${fileWord} | kpc compile -f -"`;
    case 'erb':
      return `an ERB template${more}: render it first, as with "erb ${fileWord} | kpc compile -f -"`;
    case 'ytt':
      return `a ytt template${more}: render it first, as with "ytt -f ${fileWord} | kpc compile -f -"`;
    case 'kustomize':
      return `${quote(mark)} is a variable that kustomize fills in${more}: compile what "kustomize build ${folderWord}" prints`;
    case 'envsubst':
      return `${quote(mark)} is a variable that is not filled in${more}: run "envsubst < ${fileWord} | kpc compile -f -"`;
    case 'placeholder':
      return `${quote(mark)} is a placeholder that is not filled in${more}: run what fills it in, and compile what that prints`;
  }
}

interface Kustomized {
  /** Those of its fields that change the objects. */
  readonly fields: readonly string[];
  /** How many other kustomizations do so. */
  readonly more: number;
  /** How to name its folder on a command line. */
  readonly folderWord: string;
}

function describeKustomized({ fields, more, folderWord }: Kustomized): string {
  const others = more === 0 ? '' : `, as ${more === 1 ? 'does' : 'do'} ${formatCount(more)} more`;
  return `this kustomization changes Services by ${fields.join(', ')}${others}, and kpc reads them without: compile what "kustomize build ${folderWord}" prints`;
}

type LeftOut =
  /** `reason` is the text of the first error, and `more` the number of the others. */
  | { readonly problem: 'part'; readonly reason: string; readonly files: number; readonly more: number }
  | { readonly problem: 'all'; readonly files: number; readonly objects: number }
  /** Nothing is left out, but could be. */
  | { readonly problem: 'advice'; readonly files: number; readonly all: number };

function describeLeftOut(details: LeftOut): string {
  const { files } = details;
  const counted = files === 1 ? '1 file' : `${formatCount(files)} files`;
  if (details.problem === 'part') {
    const { reason, more } = details;
    const others = more === 0 ? '' : ` (and ${formatCount(more)} more ${more === 1 ? 'error' : 'errors'})`;
    return `left out${files === 1 ? '' : ` ${counted}`}: ${reason}${others}`;
  }
  if (details.problem === 'advice') {
    return `${formatCount(files)} of ${formatCount(details.all)} files ${files === 1 ? 'has' : 'have'} errors: --skip-invalid leaves out such files, and goes on with the others`;
  }
  const { objects } = details;
  const again = `${formatCount(objects)} ${objects === 1 ? 'object' : 'objects'} that the input defines twice`;
  const parts = [...(files > 0 ? [`${counted} with errors`] : []), ...(objects > 0 ? [again] : [])];
  return `the result lacks ${parts.join(' and ')} (--skip-invalid)`;
}

interface FileNames {
  readonly files: readonly string[];
}

/** What is wrong with files and folders, whatever they hold. */
export const fileDiagnostics = {
  'empty-file': {
    severity: 'warning',
    meaning: 'a file holds no objects',
    words: () => 'the file holds no objects',
  },
  'empty-folder': {
    severity: 'warning',
    meaning: 'a folder holds no YAML or JSON files',
    words: ({
      hasOthers,
    }: {
      /** Whether some are left out, by --exclude or a .kpcignore. */
      readonly hasOthers: boolean;
    }) => `the folder holds no files named *.yaml, *.yml or *.json${hasOthers ? ' that are not left out' : ''}`,
  },
  'helm-template': {
    severity: 'error',
    meaning: 'a file is a Helm template that is not rendered',
    words: describeTemplate,
  },
  'ignored-files': {
    severity: 'note',
    meaning: 'a .kpcignore leaves files out',
    words: ({ by, files }: FileNames & { readonly by: string }) => `left out by ${by}: ${nameSome(files)}`,
  },
  'odd-pattern': {
    severity: 'warning',
    meaning: 'a pattern of a .kpcignore does not mean what it seems to',
    words: ({ pattern, oddity }: { readonly pattern: string; readonly oddity: string }) =>
      `the pattern ${quote(pattern)} ${oddity}`,
  },
  kustomized: {
    severity: 'warning',
    meaning: 'a kustomization changes Services that are read as their files have them',
    words: describeKustomized,
  },
  'left-out': {
    severity: {
      among: ['warning', 'note'],
      weigh: ({ problem }: LeftOut) => (problem === 'advice' ? 'note' : 'warning'),
    },
    meaning: '--skip-invalid leaves out a file, or objects of it, because of an error',
    words: describeLeftOut,
  },
  'skipped-files': {
    severity: 'note',
    meaning: 'a folder holds files without any Kubernetes object',
    words: ({ files }: FileNames) =>
      `skipped ${files.length === 1 ? '1 file' : `${formatCount(files.length)} files`} without any Kubernetes object: ${nameSome(files)}`,
  },
  'unrendered-template': {
    severity: 'error',
    meaning: 'a file is a template that is not rendered, or holds variables that are not filled in',
    words: describeUnrendered,
  },
  'unreadable-file': {
    severity: 'error',
    meaning: 'a file or folder is missing, cannot be read, or is not text',
    words: describeUnreadable,
  },
} satisfies DiagnosticTable;
