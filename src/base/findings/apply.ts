// The failures of kpc-apply. kpc-apply has its own codes, so a kpc code with the same name means something else.
import type { Exceeded } from '../bounds.ts';
import type { Unread } from '../unread.ts';
import type { BundleFault } from './bundle.ts';
import type { FolderProblem } from './calls.ts';
import {
  byProblem,
  row,
  severityIn,
  type ArgumentsIn,
  type By,
  type Cited,
  type Lists,
  type None,
  type Numbers,
  type Row,
  type Severity,
  type Strings,
} from './rows.ts';

export type Cause = string | Cited;

/** How a command ended. `status` is undefined if a signal ended it. `said` is the start of its stderr. */
export interface CommandEnd extends Strings<'command' | 'said'> {
  readonly status?: number | undefined;
  readonly signal?: string | undefined;
}

export type OutputFault = By<
  'kind',
  {
    'no-begin': { readonly expected?: string };
    'no-end': None;
    'no-table-end': { readonly table?: string };
    'strange-line': Numbers<'line'>;
    'stray-line': Strings<'line'>;
    'other-tool': Strings<'of'>;
    'no-table': Strings<'table'>;
    'no-set': Strings<'set'>;
    /** `saved`: the number of the set's entries that were saved. `listed`: the number in the set's header, if it has one. */
    entries: Strings<'set'> & { readonly saved?: number | undefined; readonly listed?: string | undefined };
    servers: Numbers<'servers' | 'reals' | 'listedServers' | 'listedReals'>;
    flows: Numbers<'flows'> & { readonly shown?: string | undefined };
    'no-timeouts': None;
    'no-link': None;
    'no-json': None;
    'long-json': Exceeded;
  }
>;

/** Why some processes on the node cannot be seen: they are outside this PID namespace, or this user is not allowed to see them. */
export type Unseen = 'outside' | 'forbidden';

export type Exposure = By<
  'kind',
  {
    owner: Numbers<'owner'>;
    all: Strings<'mode'>;
    group: Numbers<'group'> & Strings<'mode'>;
    'hidden-list': Strings<'mode'> & { readonly isMissing: boolean };
    list: Strings<'of' | 'id'>;
  }
> &
  Strings<'path'>;

export type TrustedKind = 'bundle' | 'keys';

/** The kind of data in a state file. A damaged file loses this data. */
export type StoredKind = 'record' | 'state' | 'last-command' | 'unconfirmed' | 'serial' | 'copy';

export interface NamedState {
  readonly id: number;
  readonly since?: number | undefined;
  readonly command?: 'apply' | 'watch' | 'cleanup' | undefined;
  readonly bundle?: Strings<'folder' | 'digest'> | undefined;
}

interface States {
  readonly states: readonly NamedState[];
}

export interface IdleCommand {
  readonly command: string;
  readonly at: number;
  readonly outcome: 'unchanged' | 'put-back' | 'refused';
  /** Undefined for a rollback of an apply that did not finish. */
  readonly reason?: string | undefined;
}

export interface Obstacle {
  readonly kind: string;
  readonly name: string;
  readonly adoptable: boolean;
}

interface Holder {
  readonly pid: number;
  readonly command: string;
}

export type Hang = By<'problem', { late: Numbers<'seconds'>; 'not-stopped': None; 'open-output': None }>;

/** A step of a change. */
export type ChangeStep = By<
  'kind',
  {
    run: {
      readonly command: Strings<'tool'> & Lists<'args'> & { readonly stdin?: string | undefined };
      readonly isRemoval: boolean;
    };
    write: { readonly setting: Strings<'name' | 'value'> };
    balance: { readonly proxyPorts: readonly object[] };
  }
>;

interface ToolRefusal extends CommandEnd {
  readonly line?: Strings<'number' | 'text'> | undefined;
}

export type LongListing = By<
  'problem',
  { file: Strings<'path'>; output: Strings<'command'> & { readonly tool?: string } }
>;

/** The most bytes to read, and whether the limit is for the whole node. */
interface Limit extends Numbers<'most'> {
  readonly of: 'node' | 'listing';
}

/** Programs of k3s and MicroK8s that include a kube-proxy. (k0s and RKE2 start kube-proxy as a separate process.) */
export const kubeProxyHosts = ['k3s-server', 'k3s-agent', 'kubelite'] as const;

export interface KubeProxyProcess {
  readonly pid: string;
  readonly within?: (typeof kubeProxyHosts)[number] | undefined;
}

/** The argument `tool` names the tool at fault, if any. Metrics count failures by tool. */
export const applyFindings = {
  'bad-bundle': byProblem<{
    missing: Strings<'path'>;
    'no-folder': Strings<'path'>;
    /** `writer` is the version of kpc that wrote the bundle. */
    broken: Strings<'path'> & { readonly problems: readonly BundleFault[]; readonly writer?: string | undefined };
    dump: Strings<'path'>;
    exposed: Strings<'path'> & { readonly of: TrustedKind; readonly exposure: Exposure };
    replaced: Strings<'path'> & { readonly of: TrustedKind };
  }>('error'),
  'bad-state-folder': byProblem<{
    exposed: Strings<'path'> & { readonly exposure: Exposure };
    damaged: Strings<'path'> & { readonly of: StoredKind; readonly reason: BundleFault };
    'other-state': Strings<'path'>;
    'other-network': Strings<'path' | 'here'> & { readonly network?: string | undefined };
  }>('error'),
  'bad-usage': byProblem<{
    'command-line': Strings<'reason'> & { readonly help?: string | undefined };
    'no-cidr': Strings<'cidr'>;
    'no-state': Numbers<'id'> & States;
    'no-keys': Strings<'path'> & { readonly reason: Unread };
    'one-port': Strings<'socket'>;
    folder: { readonly why: FolderProblem };
  }>('error'),
  busy: row<Holder>('error'),
  conflict: row<{ readonly objects: readonly Obstacle[] }>('error'),
  'internal-error': row<Strings<'reason'>>('error'),
  interrupted: row<None>('error'),
  'node-too-large': row<(LongListing & Limit) | By<'problem', { flows: Numbers<'most'> & Strings<'tool'> }>>('error'),
  /** `seconds` is undefined if the standby process rolled the change back instead of the apply. */
  'not-confirmed': row<{ readonly seconds?: number }>('error'),
  'not-ready': byProblem<{
    'kube-proxy': { readonly process: KubeProxyProcess };
    'unseen-kube-proxy': { readonly unseen: Unseen };
    'unseen-tools': { readonly unseen: Unseen };
    refused: { readonly checks: readonly Cited[]; readonly tool?: string | undefined };
  }>('error'),
  'not-trusted': byProblem<{
    unsigned: Strings<'path'>;
    damaged: Strings<'path'>;
    'unknown-key': Strings<'path' | 'key'> & Lists<'known'>;
    wrong: Strings<'path'>;
    older: Strings<'path'> & Numbers<'serial' | 'least'>;
  }>('error'),
  /** `holder` is the running apply, which is not yet waiting for a confirmation. */
  'nothing-to-confirm': row<{ readonly holder?: Holder }>('error'),
  'nothing-to-roll-back': row<Strings<'folder'> & States>('error'),
  'nothing-to-undo': row<{ readonly last: IdleCommand } & States>('error'),
  'system-error': byProblem<{
    refused: { readonly reason: Unread; readonly lacks?: 'rights' | 'space' | undefined };
    'no-standby': { readonly cause: Cause };
    'no-timer': Strings<'said'> & { readonly status: number | string | undefined };
    'unknown-start': None;
    silent: Numbers<'seconds'>;
    ended: Strings<'said'> & { readonly status: number | string | null };
  }>('error'),
  'tool-failed': row<Strings<'command' | 'tool'> & (Hang | By<'problem', { failed: ToolRefusal }>)>('error'),
  'tool-missing': row<Strings<'tool'> & { readonly to: 'read' | 'change' }>('error'),
  'unreadable-node': byProblem<{
    failed: CommandEnd & Strings<'tool'> & { readonly isRefused: boolean };
    'bad-output': Strings<'command' | 'tool'> & { readonly fault: OutputFault };
    'bad-file': Strings<'path'> & { readonly fault: OutputFault };
    'no-number': Strings<'path'>;
    'hidden-table': Strings<'command' | 'table'> & { readonly family: string };
    'no-network': None;
    'no-proc-net': None;
    /** `end` says how the command that should leave a mark ended; undefined if the tool is missing. */
    'no-mark': Strings<'tool'> & {
      readonly end?: CommandEnd | undefined;
      readonly because: 'rights' | 'names' | 'age';
    };
    leftovers: { readonly failure: Cited; readonly tool?: string | undefined };
  }>('error'),
  'write-failed': byProblem<{
    lock: Strings<'folder'> & { readonly cause: Cause; readonly of: 'run' | 'state-folder' | 'file' };
    journal: Strings<'folder'> & { readonly cause: Cause };
    metrics: Strings<'path'>;
    sysctl: Strings<'name' | 'value'> & { readonly cause: Cause };
  }>('error'),
  'wrong-result': row<{ readonly rest: readonly ChangeStep[] }>('error'),
};

/** The code of a failure: stable, documented in docs/codes.md, and counted by the metrics of watch. */
export type FailureCode = keyof typeof applyFindings;

export const failureCodes = (Object.keys(applyFindings) as FailureCode[]).toSorted();

export type FailureArguments<Code extends FailureCode> = ArgumentsIn<typeof applyFindings, Code>;

export type FailureFault = {
  readonly [Code in FailureCode]: { readonly code: Code; readonly arguments: FailureArguments<Code> };
}[FailureCode];

export function severityOfFailure({ code, arguments: details }: FailureFault): Severity {
  return severityIn<unknown>(applyFindings[code] as Row<unknown>, details);
}
