import { byProblem, row, warningIf, type Lists, type None, type Texts } from './rows.ts';

/** Why nothing is written into a folder. */
export type FolderFault =
  | { readonly kind: 'not-a-bundle'; readonly strangers: readonly string[] }
  | { readonly kind: 'is-a-bundle' | 'is-a-golden' | 'is-no-golden' | 'is-a-file' }
  | { readonly kind: 'io'; readonly reason: string };

export type FolderProblem = FolderFault & { readonly folder: string };

export type IdleBeside =
  | 'whole-lists'
  | 'always-rules'
  | 'table'
  | 'each-protocol'
  | 'own-packets'
  | 'all-nodes'
  | 'mode-twice'
  | 'prints-tests'
  | 'prints-file';

/** Flags without effect, and why. `path` is the input, `of` its kind. */
export interface IdleFlags {
  readonly flags: readonly string[];
  readonly because:
    | { readonly kind: 'compiled-already'; readonly path: string; readonly of: string }
    | { readonly kind: 'both-compiled-already'; readonly paths: readonly [string, string] }
    | { readonly kind: 'read-apart' }
    | { readonly kind: 'one-node'; readonly path?: string | undefined; readonly of?: string | undefined }
    | { readonly kind: 'own-node'; readonly path: string }
    | { readonly kind: 'other-node'; readonly node: string; readonly path: string; readonly of: string }
    | { readonly kind: 'beside'; readonly beside: string; readonly why: IdleBeside }
    | {
        readonly kind:
          | 'own-addresses'
          | 'own-settings'
          | 'no-side'
          | 'no-names'
          | 'no-dns-names'
          | 'table-of-addresses'
          | 'table'
          | 'rules-of-dump'
          | 'always';
      };
}

export const callFindings = {
  'bad-call': byProblem<{
    // Missing arguments.
    'no-input': { readonly takes: 'manifests' | 'any' | 'cluster' | 'both-sides' };
    'no-manifests': Texts<'what'>;
    'no-tests': None;
    'nothing-to-test': None;
    'no-packet': { readonly lacks: 'packet' | 'sender' | 'destination' };
    'no-pack': None;
    'no-folder': None;
    'no-node': None;
    /** `first`: the side that was given. */
    'no-side': { readonly first?: string | undefined };
    // Arguments that cannot be used.
    'several-subjects': Lists<'words'>;
    'unknown-side': Lists<'names'> & { readonly meant: string | undefined };
    'unknown-code': Texts<'name'> & { readonly meant?: string | undefined };
    'no-node-name': Texts<'name'>;
    'other-kind': Texts<'path' | 'kind'> & { readonly asker: 'lint' | 'migrate' | 'upgrade' };
    'no-dump': Texts<'path'>;
    'second-input': Texts<'path'>;
    'nothing-in-common': Texts<'from' | 'to'>;
    'no-services': Texts<'from' | 'to'>;
    'empty-shard': Texts<'shard'>;
    'stdin-of-two-sides': None;
    'stdin-of-cluster': None;
    'stdin-kept': None;
    'idle-flag': IdleFlags;
    'flag-alone': Texts<'flag' | 'without'>;
    'flag-of-other-action': Lists<'flags'> & Texts<'action'>;
    'output-of-check': Texts<'output'>;
    'jobs-of-binary': None;
    /** The reason is its parser's. */
    value: Texts<'reason'>;
    usage: Texts<'reason'> & { readonly help?: string | undefined };
    // Changes of mode and release.
    'no-release': Texts<'release'>;
    'unknown-mode': Texts<'mode' | 'release'> & { readonly by: 'release' | 'mode' };
    'same-mode': Texts<'mode'> & { readonly isNamed: boolean };
    /** `families`: those of the input, once it was read. */
    'no-such-file': Texts<'file' | 'mode'> & { readonly families?: readonly string[] };
    'replaces-real': Texts<'folder'>;
    folder: { readonly wrong: FolderProblem };
    'no-bundle': Texts<'folder'> & Lists<'problems'>;
    'not-a-folder': Texts<'path'>;
    /** For verify. `reason`: why it cannot be read, if so. */
    'neither-bundle-nor-pack': Texts<'path'> & {
      readonly is: 'missing' | 'golden' | 'other' | 'unreadable';
      readonly reason?: string;
    };
    'no-key': Texts<'flag' | 'file' | 'reason'>;
    'too-large-to-pack': Texts<'folder'>;
    unreadable: Texts<'path' | 'reason'>;
    system: Texts<'reason'>;
    'is-there': Lists<'paths'>;
    'leads-away': Texts<'path'> & { readonly to: 'git' | 'outside' };
    'unsafe-name': Texts<'path'>;
    'program-failed': Texts<'call' | 'tool' | 'said'> & {
      readonly how: 'no-program' | 'too-large' | 'too-slow' | 'failed';
      /** Its time limit in seconds. */
      readonly limit: number;
    };
  }>('error'),
  /** `lists`: what was asked of the cluster. If a needed one is missing, nothing is done. */
  'unread-cluster': row<Lists<'kinds' | 'lists'> & { readonly isNeeded: boolean }>(
    warningIf(({ isNeeded }) => !isNeeded),
  ),
};
