import type { Bounded } from '../bounds.ts';
import {
  row,
  byProblem,
  severityBy,
  warningIf,
  type By,
  type None,
  type Cited,
  type Texts,
  type Numbers,
  type Lists,
} from './rows.ts';

export interface UnrenderedTemplate {
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

export type FileNames = Lists<'files'>;

/** `words`: of YAML that only the full parser reads. */
export type TooLong = Numbers<'most'> & { readonly of: Bounded };

/** `more` other kustomizations lack something, too; `folderWord` is what to build, for `into` to read. */
export interface IncompleteKustomization extends Lists<'lacks'>, Numbers<'more'>, Texts<'folderWord' | 'into'> {
  readonly isShown: boolean;
}

export type OfFolder = Texts<'folder'>;

export type Render = Texts<'tool' | 'said' | 'pipe'>;

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

export type FileProblem = By<
  'problem',
  {
    url: Texts<'path'>;
    pattern: None;
    'link-outside': Texts<'folder'>;
    'broken-link': None;
    missing: None;
    'no-text': Texts<'what'>;
    'no-git': None;
    /** In the words of git. */
    'no-repository': Texts<'said'>;
    'no-revision': Texts<'revision'> & { readonly near?: string | undefined };
    'whole-revision': Texts<'revision'>;
    'git-failed': Texts<'said'>;
    /** In the words of the operating system. */
    system: Texts<'reason'>;
  }
>;

/** Problems with files, folders and texts, and with comparison sides that are bundles, goldens or dumps. */
export const fileFindings = {
  'empty-file': row<{ readonly isFolder?: true }>('warning'),
  'not-rendered': byProblem<{
    nothing: None;
    'idle-values': None;
    'no-program': Render;
    'too-large': Render;
    'too-slow': Render;
    failed: Render;
  }>('error'),
  'ignored-files': row<FileNames & Texts<'by'>>('note'),
  'incomplete-kustomization': row<IncompleteKustomization>(warningIf(({ isShown }) => isShown)),
  // `fields` change objects, in `more` other kustomizations too. `folderWord` is what to build, for `into` to read.
  kustomized: row<Lists<'fields'> & Numbers<'more'> & Texts<'folderWord' | 'into'>>('warning'),
  'left-out': byProblem<{
    /** `error` is the first one, and `more` the number of the others. */
    part: { readonly error: Cited } & Numbers<'files' | 'more'>;
    all: Numbers<'files' | 'partial' | 'objects'>;
    /** Nothing is left out, but could be. */
    advice: Numbers<'files' | 'all'>;
  }>(severityBy('problem', 'warning', { advice: 'note' })),
  'skipped-files': row<FileNames>('note'),
  'unrendered-template': row<UnrenderedTemplate>('error'),
  'unreadable-file': row<FileProblem>('error'),
  'alias-bomb': row<Numbers<'copies' | 'values'>>('error'),
  'bad-json': row<Texts<'reason'>>('error'),
  'not-closed': row<Texts<'language' | 'sign'> & Numbers<'line'>>('error'),
  // `lines` are those around it, where the parser says so; what only kubectl reads in another way has none.
  'bad-yaml': row<Texts<'reason'> & { readonly lines?: string }>('error'),
  'duplicate-key': row<{ readonly times: number } | { readonly isTwoObjects: true }>('error'),
  'merge-conflict': row<None>('error'),
  'too-deep': row<None>('error'),
  'too-long': row<TooLong>('error'),
  'yaml-tab': row<None>('error'),
  'bad-bundle': row<Texts<'path' | 'problem'>>('error'),
  'dump-reading': byProblem<{
    'legacy-tables': None;
    filtered: Texts<'command'>;
    'no-interfaces': Texts<'command'>;
    'no-table': Lists<'tables'>;
    'stray-lines': Numbers<'lines'>;
  }>('note'),
  /** How an input was taken, and what it does not show. */
  reading: byProblem<{
    /** Of a dump, in a sentence. */
    dump: Texts<'text'>;
    'may-hold-more': Texts<'file'>;
    'manifests-left-out': { readonly error: Cited };
    'follows-release': Texts<'release'>;
    /** Two sides of two releases. */
    'two-releases': Texts<'from' | 'fromRelease' | 'to' | 'toRelease'>;
    /** As what an input was read, in a sentence. */
    'read-as': Texts<'text'>;
    /** One side shows it, and the other is taken to be alike. */
    'taken-as-other': Texts<'text'>;
    /** Services that kube-proxy skips on both sides of a comparison. */
    'skipped-on-both': Lists<'services'>;
    'taken-as-subject': Texts<'word'>;
    'misnamed-file': Texts<'file'>;
  }>(severityBy('problem', 'note', { 'may-hold-more': 'warning', 'manifests-left-out': 'warning' })),
  'nodes-folder': row<Texts<'path' | 'example'> & { readonly of: 'bundles' | 'dumps' }>('error'),
  // `beside` is another input that was given.
  'no-manifests': row<Texts<'path' | 'what'> & { readonly beside?: string | undefined }>('error'),
  'nothing-to-check': byProblem<{
    missing: OfFolder;
    'no-bundle': OfFolder;
    revision: OfFolder;
    'one-node': OfFolder;
    fleet: OfFolder & Texts<'example'>;
  }>('error'),
  'second-listing': row<Texts<'output'> & Lists<'differences'>>('warning'),
  unreadable: row<Texts<'path' | 'reason'>>('error'),
  // `expected` is the tool whose output its name promises; `reason` is why it cannot be read as text at all.
  'unread-file': row<{ readonly expected?: string | undefined; readonly reason?: string; readonly isCutOff?: true }>(
    'warning',
  ),
  // `more` other lines cannot be read for the same reason.
  'unread-line': row<Texts<'reason'> & Numbers<'more'>>('warning'),
  // `isAll`: nothing else of the dump can be read.
  'unread-output': row<Texts<'output' | 'reason'> & { readonly isAll: boolean }>(warningIf(({ isAll }) => !isAll)),
};
