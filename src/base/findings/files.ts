import type { BundleFault } from './bundle.ts';
import type { LineFault } from '../../kernel/lines.ts';
import type { Unread, GitFailure, ProgramProblem } from '../unread.ts';
import type { NoService } from './command-line.ts';
import type { Unlisted } from '../../kernel/ipvs/ipvs.ts';
import type { Unreached } from '../../kube-proxy/missing-jumps.ts';
import type { ModeSource, ProxyMode } from '../../kube-proxy/modes.ts';
import type { Family } from '../../kernel/address.ts';
import type { Exceeded } from '../bounds.ts';
import {
  row,
  byProblem,
  severityBy,
  warningIf,
  type By,
  type None,
  type Cited,
  type Strings,
  type Numbers,
  type Lists,
} from './rows.ts';

/** What a node's rules depend on. `modeFrom` is undefined if the user named the mode. */
export interface Grounds {
  readonly node: string | undefined;
  readonly mode: ProxyMode;
  readonly modeFrom: ModeSource | undefined;
  readonly families: readonly Family[];
  readonly assumed: readonly ('node' | 'families')[];
}

/** What shows the release that the rules follow. */
export type ReleaseShownBy =
  { readonly by: 'node'; readonly node: string } | { readonly by: 'dump'; readonly notThatOfNode: string | undefined };

/** What kpc reads a side of a comparison as. `release` is undefined if it is the newest and nothing shows it. */
export type ReadAs = By<
  'as',
  {
    manifests: { readonly grounds: Grounds; readonly release: Followed | undefined };
    'two-releases': { readonly grounds: Grounds } & Strings<'from' | 'to'>;
    bundle: { readonly grounds: Grounds; readonly release: Followed | undefined };
    golden: { readonly grounds: Grounds; readonly release: Followed | undefined };
    /** kpc-apply's dump. `more`: the tools whose output completes it. */
    'stored-dump': Strings<'node'> & Lists<'families' | 'more'> & { readonly mode: ProxyMode };
    dump: { readonly files: readonly (Strings<'name'> & Lists<'outputs'>)[] };
  }
>;

interface Followed {
  readonly release: string;
  readonly shownBy: ReleaseShownBy | undefined;
}

/** Facts that a dump lacks, and assumptions about the dump. */
export type DumpNote = By<
  'note',
  {
    /** `from` has the chains that lack the jump. `effect`: what packets lose. */
    'lost-jump': Lists<'from'> & Strings<'to' | 'table'> & { readonly effect: 'services' | 'masquerading' | 'rules' };
    unreached: Lists<'from'> & Pick<Unreached, 'to' | 'facts'>;
    /** `to` names the endpoint or chain to which no rule leads; undefined if rules lead to no endpoint at all. */
    endless: Strings<'from' | 'service'> & { readonly to: string | undefined };
    'unshown-jump': Lists<'from'> & Strings<'to' | 'command'>;
    'two-modes': { readonly logged: ProxyMode; readonly shown: ProxyMode };
    /** `isNamed` means that manifests or a log name other Services. */
    nameless: { readonly mode: ProxyMode; readonly isNamed: boolean };
    'doubtful-servers': Numbers<'servers'>;
    'foreign-servers': Numbers<'servers'>;
    'proxy-ports': { readonly mode: ProxyMode };
    incomplete: Lists<'lacks'>;
    unlisted: Strings<'by' | 'entry'> & { readonly lacks: Unlisted['lacks'] };
    'no-service': { readonly why: NoService | undefined };
  }
>;

export interface UnrenderedTemplate {
  readonly count: number;
  readonly mark: string;
  readonly chart?: string | undefined;
  /** The folder that the user named, if it is above the template. */
  readonly folder?: string | undefined;
  readonly isLeftOut: boolean;
  /** The command that renders a chart, with its name and without its folder: "helm template web". */
  readonly render?: string | undefined;
  readonly into: Into;
  /** A pattern that excludes the chart; undefined if no pattern is safe in a shell. */
  readonly exclude?: string | undefined;
}

export type FileNames = Lists<'files'>;

/**
 * The reader of a rendered folder's manifests: a command's standard input, a program that gives texts, or a comparison that renders its
 * sides itself.
 */
export type Into = ReadByCommand | RenderedPair;

/**
 * `command`: undefined for a program that gives texts. `checkouts`: the inputs in git revisions. They must be checked out, because no
 * program can build them in a revision. `file`: the file that the command names, if it cannot read standard input.
 */
export interface ReadByCommand {
  readonly command?: string | undefined;
  readonly file?: string | undefined;
  readonly checkouts?: readonly RenderedSide[] | undefined;
}

/** `compare` has the command, with its flags as in a shell. */
export interface RenderedPair extends Strings<'compare'> {
  readonly sides: readonly [RenderedSide, RenderedSide];
}

/** `name` is the side as the user named it. A side in a revision must be checked out first. */
export interface RenderedSide extends Strings<'name'> {
  readonly checkout?: { readonly revision: string; readonly path: string } | undefined;
  readonly isFolder: boolean;
}

/** `folder` is the folder to build; undefined if none is known. `into` reads the result. */
export interface ToBuild {
  readonly folder: string | undefined;
  readonly into: Into;
}

/** `more` counts other kustomizations that also lack something. */
export interface IncompleteKustomization extends Lists<'lacks'>, Numbers<'more'>, ToBuild {
  readonly isShown: boolean;
}

export interface Why {
  readonly reason: Unread;
}

export type OfFolder = Strings<'folder'>;

/** Outputs that kpc never reads, by the command or file that makes them. `nft` is a part of a table. */
export type RefusedOutput =
  | 'ipvsadm --stats'
  | 'ipvsadm -Lc'
  | 'conntrack -E'
  | 'route -n'
  | 'ifconfig'
  | 'ip link'
  | 'ipset list -o xml'
  | 'nft -j'
  | 'services.json'
  | 'nft';

/** Why an output, or a part of it, is not read. `table` has its family. */
export type UnreadOutput = By<
  'problem',
  Record<RefusedOutput | 'ipset list -t' | 'nft -S' | 'nft -t' | 'iptables-as-nft', None> & {
    dormant: Strings<'table'>;
    'hidden-tables': Strings<'command'> & Lists<'tables'>;
  }
>;

export type Render = Strings<'tool' | 'said' | 'pipe'> & { readonly how: ProgramProblem };

export type OddYaml =
  | 'text-behind-marker'
  | 'lone-end'
  | 'lone-block'
  | 'unknown-alias'
  | 'alias-in-itself'
  | 'anchor-behind-word'
  | 'long-key'
  | 'blank-spaces'
  | 'in-brackets'
  | 'same-keys'
  | 'not-of-tag'
  | 'number'
  | 'merge'
  | 'no-text';

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
    url: Strings<'path'>;
    pattern: None;
    'empty-path': None;
    'link-outside': Strings<'folder'>;
    'broken-link': None;
    missing: None;
    'no-text': { readonly what: 'UTF-16' | 'binary' | 'not UTF-8 text' };
    'no-git': None;
    'no-repository': { readonly why: GitFailure | 'no-work-tree' };
    'no-revision': Strings<'revision'> & { readonly near?: string | undefined };
    'whole-revision': Strings<'revision'>;
    'git-failed': { readonly failure: GitFailure };
    unread: Why;
  }
>;

export const fileFindings = {
  'empty-file': row<{ readonly isFolder?: true }>('warning'),
  'not-rendered': byProblem<{
    nothing: None;
    revision: Strings<'path'>;
    'idle-values': None;
    program: Render;
  }>('error'),
  'ignored-files': row<FileNames & Strings<'by'>>('note'),
  'incomplete-kustomization': row<IncompleteKustomization>(warningIf(({ isShown }) => isShown)),
  // `fields` change objects. `more` counts other kustomizations with such fields.
  kustomized: row<Lists<'fields'> & Numbers<'more'> & ToBuild>('warning'),
  'left-out': byProblem<{
    /** `error` is the first error, `more` the number of others. */
    part: { readonly error: Cited } & Numbers<'files' | 'more'>;
    all: Numbers<'files' | 'partial' | 'objects'>;
    advice: Numbers<'files' | 'all'>;
  }>(severityBy('problem', 'warning', { advice: 'note' })),
  'skipped-files': row<FileNames>('note'),
  'unrendered-template': row<UnrenderedTemplate>('error'),
  'unreadable-file': row<FileProblem>('error'),
  'alias-bomb': row<Numbers<'copies' | 'values'>>('error'),
  'bad-json': row<{ readonly reason?: string }>('error'),
  'not-closed': row<Strings<'language' | 'sign'> & Numbers<'line'>>('error'),
  // `lines` surround the fault. `sign` is the start of text that kubectl reads differently. `character` is a code point that go-yaml
  // rejects.
  'bad-yaml': row<Strings<'reason' | 'lines'> | { readonly odd: OddYaml } | Strings<'sign'> | Numbers<'character'>>(
    'error',
  ),
  'duplicate-key': row<{ readonly times: number } | { readonly isTwoObjects: true }>('error'),
  'merge-conflict': row<None>('error'),
  'too-deep': row<None>('error'),
  'too-long': row<Exceeded>('error'),
  'yaml-tab': row<None>('error'),
  'bad-bundle': row<Strings<'path'> & { readonly problem: BundleFault }>('error'),
  'dump-reading': byProblem<{
    // `command` does not print this node's kernel.
    elsewhere: Strings<'output' | 'command'>;
    'legacy-tables': None;
    // `chain` is a chain whose rules are incomplete.
    filtered: Strings<'command'> & { readonly chain?: string };
    'no-interfaces': Strings<'command'>;
    'no-table': Lists<'tables'>;
    'stray-lines': Numbers<'lines'>;
    // The first of `rules` rules of kube-proxy that kpc cannot read. `lacksPorts`: iptables printed it without its port.
    'unread-rules': Strings<'table' | 'chain'> & Numbers<'rule' | 'rules'> & { readonly lacksPorts: boolean };
  }>('note'),
  reading: byProblem<{
    dump: DumpNote;
    'may-hold-more': Strings<'file'>;
    'manifests-left-out': { readonly error: Cited };
    'follows-release': Strings<'release'>;
    'two-releases': Strings<'from' | 'fromRelease' | 'to' | 'toRelease'>;
    'releases-differ': Numbers<'behaviours'>;
    'conntrack-limit': None;
    'read-as': Strings<'name'> & { readonly what: ReadAs };
    'empty-side': Strings<'name'> & { readonly revision?: string | undefined; readonly isFolder: boolean };
    // Some items of a list in an answer.
    part: Strings<'list'> & Numbers<'skip' | 'shown' | 'all'>;
    'set-aside': None;
    'taken-nodes': Lists<'names'>;
    'taken-flags': Strings<'file'> & Lists<'flags'>;
    unshown: Strings<'name'> & Lists<'parts'> & { readonly areRules: boolean };
    'skipped-on-both': Lists<'services'>;
    untested: Lists<'leftOut' | 'listings'>;
    'taken-as-subject': Strings<'word'>;
    'misnamed-file': Strings<'file'>;
  }>(severityBy('problem', 'note', { 'may-hold-more': 'warning', 'manifests-left-out': 'warning' })),
  'nodes-folder': row<Strings<'path' | 'example'> & { readonly of: 'bundles' | 'dumps' }>('error'),
  'no-manifests': row<Strings<'path' | 'what'> & { readonly beside?: string | undefined }>('error'),
  'nothing-to-check': byProblem<{
    missing: OfFolder;
    'no-bundle': OfFolder;
    file: OfFolder;
    revision: OfFolder;
    'one-node': OfFolder;
    fleet: OfFolder & Strings<'example'>;
  }>('error'),
  // `from` is the other listing's pod or host.
  'second-listing': row<Strings<'output'> & (Lists<'differences'> | Strings<'from'>)>('warning'),
  unreadable: row<Strings<'path'> & Why>('error'),
  // `expected` is the tool that the file's name suggests. `reason` says why the file is not text.
  'unread-file': row<{
    readonly expected?: string | undefined;
    readonly reason?: Unread;
    readonly isCutOff?: true;
    readonly isEmpty?: true;
    readonly isNoListing?: true;
  }>(warningIf(({ isNoListing }) => !isNoListing)),
  'unread-line': row<Strings<'of'> & Numbers<'more'> & { readonly reason: LineFault }>('warning'),
  // `isAll` means that nothing else in the dump is readable.
  'unread-output': row<UnreadOutput & { readonly isAll: boolean }>(warningIf(({ isAll }) => !isAll)),
};
