import type { SkipReason } from '../../kube-proxy/skipped.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import type { BundleFault } from './bundle.ts';
import type { Unread, ProgramProblem } from '../unread.ts';
import { byProblem, row, warningIf, type Lists, type None, type Strings } from './rows.ts';

export type FolderFault =
  | { readonly kind: 'not-a-bundle'; readonly strangers: readonly string[] }
  | { readonly kind: 'is-a-bundle' | 'is-a-golden' | 'is-no-golden' | 'is-a-file' | 'is-no-pack' | 'is-in-bundle' }
  | { readonly kind: 'io'; readonly reason: Unread };

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

/** Flags without effect, and the reason. `path` is the input and `of` its kind. */
export interface IdleFlags {
  readonly flags: readonly string[];
  readonly because:
    | { readonly kind: 'compiled-already'; readonly path: string; readonly of: string }
    | { readonly kind: 'both-compiled-already'; readonly paths: readonly [string, string] }
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
    // Arguments are missing.
    'no-input': { readonly takes: 'manifests' | 'any' | 'cluster' | 'both-sides' };
    'no-manifests': Strings<'what'>;
    'no-tests': None;
    /** `skipped`: the Services, if kube-proxy programs none of them. `listings`: the commands whose output would settle an outcome. */
    'nothing-to-test': Lists<'listings'> & {
      readonly skipped: readonly { readonly service: string; readonly why: SkipReason }[];
    };
    'no-packet': { readonly lacks: 'packet' | 'sender' | 'destination' };
    'no-pack': None;
    'no-folder': None;
    'no-node': None;
    'no-shared-node': Strings<'from' | 'to'>;
    'same-name': Strings<'what' | 'name'>;
    'no-side': { readonly first?: string | undefined };
    // Arguments cannot be used.
    'several-subjects': Lists<'words'>;
    'unknown-side': Lists<'names'> & { readonly meant: string | undefined };
    'unknown-code': Strings<'name'> & { readonly meant?: string | undefined };
    'no-node-name': Strings<'name'>;
    'no-dump': Strings<'path'>;
    'second-input': Strings<'path'>;
    'nothing-in-common': Strings<'from' | 'to'>;
    /** Sentences that say why the receiver of every packet is unknown. */
    'nothing-known': Lists<'reasons'>;
    'settings-as-files': Strings<'from' | 'to'> & Lists<'settings'>;
    'no-services': Strings<'from' | 'to'> & Lists<'notCompared'> & { readonly compared: 'services' | 'packets' };
    'empty-shard': Strings<'shard'>;
    'stdin-of-two-sides': None;
    'stdin-of-cluster': None;
    'stdin-kept': None;
    'render-kept': None;
    'idle-flag': IdleFlags;
    'flag-alone': Strings<'flag' | 'without'>;
    'flag-of-other-action': Lists<'flags'> & Strings<'action'>;
    'output-of-check': Strings<'output'>;
    'jobs-of-binary': None;
    // A program calls the library wrongly.
    'no-option': Strings<'name'> & { readonly near: string | undefined };
    'not-one-of': Strings<'option'> & Lists<'values'>;
    'wrong-argument': Strings<'what'> & {
      readonly is: 'object' | 'string' | 'filled' | 'text' | 'texts' | 'snapshot' | 'side';
    };
    value: Strings<'reason'>;
    usage: Strings<'reason'> & { readonly help?: string | undefined };
    // The mode or release to change to is wrong.
    'no-release': Strings<'release'>;
    'unknown-mode': Strings<'release'> & {
      readonly mode: ProxyMode;
      /** What the user should name instead. */
      readonly by: 'release' | 'mode' | 'present-mode';
    };
    /** The new configuration names another mode than the one to change to. */
    'other-mode': { readonly mode: ProxyMode; readonly to: ProxyMode };
    'same-mode': Strings<'mode'> & { readonly isNamed: boolean };
    /** `families`: the input's address families, if the input was read. */
    'no-such-file': Strings<'file' | 'mode'> & { readonly families?: readonly string[] };
    'replaces-real': Strings<'folder'>;
    folder: { readonly wrong: FolderProblem };
    'no-bundle': Strings<'folder'> & { readonly problems: readonly BundleFault[] };
    'not-a-folder': Strings<'path'>;
    'neither-bundle-nor-pack': Strings<'path'> & { readonly is: 'missing' | 'golden' | 'other' };
    'no-key': Strings<'flag' | 'file'> & { readonly reason: Unread };
    'too-large-to-pack': Strings<'folder'>;
    unreadable: Strings<'path'> & { readonly reason: Unread };
    system: Strings<'reason'>;
    'is-there': Lists<'paths'>;
    'leads-away': Strings<'path'> & { readonly to: 'git' | 'outside' };
    'unsafe-name': Strings<'path'>;
    'program-failed': Strings<'call' | 'tool' | 'said'> & {
      readonly how: ProgramProblem;
      /** The program's time limit in seconds. */
      readonly limit: number;
    };
  }>('error'),
  /** `lists` are the lists that kpc could not get from the cluster. If `isNeeded`, kpc does nothing without them. */
  'unread-cluster': row<Lists<'kinds' | 'lists'> & { readonly isNeeded: boolean }>(
    warningIf(({ isNeeded }) => !isNeeded),
  ),
};
