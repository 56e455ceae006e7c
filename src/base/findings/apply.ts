// What kpc-apply fails for. It has codes of its own: kpc's of the same name mean something else.
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
  type Texts,
} from './rows.ts';

/** Another failure, or the system's words. */
export type Cause = string | Cited;

/** How a command ended. `status` is undefined if a signal ended it; `said`: the start of what it printed on stderr. */
export interface CommandEnd extends Texts<'command' | 'said'> {
  readonly status?: number | undefined;
  readonly signal?: string | undefined;
}

/** Why output, or a file of the kernel, is not whole. */
export type OutputFault = By<
  'kind',
  {
    'no-begin': { readonly expected?: string };
    'no-end': None;
    'no-table-end': { readonly table?: string };
    'strange-line': Numbers<'line'>;
    'stray-line': Texts<'line'>;
    'other-tool': Texts<'of'>;
    'no-table': Texts<'table'>;
    'no-set': Texts<'set'>;
    /** How many entries of a set each listing has, if any. */
    entries: Texts<'set'> & { readonly saved?: number | undefined; readonly listed?: string | undefined };
    servers: Numbers<'servers' | 'reals' | 'listedServers' | 'listedReals'>;
    flows: Numbers<'flows'> & { readonly shown?: string | undefined };
    'no-timeouts': None;
    'no-link': None;
    'no-json': None;
    'long-json': Texts<'reason'>;
  }
>;

/** Why some of the node's processes cannot be seen: they are elsewhere, or have more rights. */
export type Unseen = 'outside' | 'forbidden';

/** How others could change a path. */
export type Exposure = By<
  'kind',
  {
    owner: Numbers<'owner'>;
    all: Texts<'mode'>;
    group: Numbers<'group'> & Texts<'mode'>;
    'hidden-list': Texts<'mode'> & { readonly isMissing: boolean };
    list: Texts<'of' | 'id'>;
  }
> &
  Texts<'path'>;

/** A bundle to apply, or keys that sign one. */
export type TrustedKind = 'bundle' | 'keys';

/** What a file of the state folder is for: who removes it loses that. */
export type StoredKind = 'record' | 'state' | 'last-command' | 'unconfirmed' | 'serial' | 'copy';

/** A state that a rollback can go to. */
export interface NamedState {
  readonly id: number;
  readonly since?: number | undefined;
  readonly command?: 'apply' | 'watch' | 'cleanup' | undefined;
  readonly bundle?: Texts<'folder' | 'digest'> | undefined;
}

interface States {
  readonly states: readonly NamedState[];
}

/** A command that changed nothing. */
export interface IdleCommand {
  readonly command: string;
  readonly at: number;
  readonly outcome: 'unchanged' | 'put-back' | 'refused';
  readonly reason?: string | undefined;
}

/** An object of another program. */
export interface Obstacle {
  readonly kind: string;
  readonly name: string;
  readonly adoptable: boolean;
}

interface Holder {
  readonly pid: number;
  readonly command: string;
}

/** How a tool does not end. */
export type Hang = By<'problem', { late: Numbers<'seconds'>; 'not-stopped': None; 'open-output': None }>;

/** `line` of its input, if it names one. */
interface ToolRefusal extends CommandEnd {
  readonly line?: Texts<'number' | 'text'> | undefined;
}

/** What is too long to read. */
export type LongListing = By<'problem', { file: Texts<'path'>; output: Texts<'command'> & { readonly tool?: string } }>;

/** How many bytes of it are read at most, and whether these are for all of a node. */
interface Limit extends Numbers<'most'> {
  readonly of: 'node' | 'listing';
}

/** Programs that include a kube-proxy, of k3s and MicroK8s. k0s and RKE2 start a separate one. */
export const kubeProxyHosts = ['k3s-server', 'k3s-agent', 'kubelite'] as const;

export interface KubeProxyProcess {
  readonly pid: string;
  readonly within?: (typeof kubeProxyHosts)[number] | undefined;
}

/** The tool at fault is the argument `tool`, which metrics count. */
export const applyFindings = {
  'bad-bundle': byProblem<{
    missing: Texts<'path'>;
    'no-folder': Texts<'path'>;
    /** `writer`: the version of another kpc that wrote it. */
    broken: Texts<'path'> & Lists<'problems'> & { readonly writer?: string | undefined };
    dump: Texts<'path'>;
    exposed: Texts<'path'> & { readonly of: TrustedKind; readonly exposure: Exposure };
    replaced: Texts<'path'> & { readonly of: TrustedKind };
  }>('error'),
  'bad-state-folder': byProblem<{
    exposed: Texts<'path'> & { readonly exposure: Exposure };
    /** Without a reason it is not JSON. */
    damaged: Texts<'path'> & { readonly of: StoredKind; readonly reason?: string | undefined };
    'other-state': Texts<'path'>;
    'other-network': Texts<'path' | 'here'> & { readonly network?: string | undefined };
  }>('error'),
  'bad-usage': byProblem<{
    'command-line': Texts<'reason'> & { readonly help?: string | undefined };
    'no-cidr': Texts<'cidr'>;
    'no-state': Numbers<'id'> & States;
    'no-keys': Texts<'path' | 'reason'>;
    'one-port': Texts<'socket'>;
    folder: { readonly why: FolderProblem };
  }>('error'),
  busy: row<Holder>('error'),
  conflict: row<{ readonly objects: readonly Obstacle[] }>('error'),
  'internal-error': row<Texts<'reason'>>('error'),
  interrupted: row<None>('error'),
  'node-too-large': row<(LongListing & Limit) | By<'problem', { flows: Numbers<'most'> & Texts<'tool'> }>>('error'),
  'not-confirmed': row<Numbers<'seconds'>>('error'),
  'not-ready': byProblem<{
    'kube-proxy': { readonly process: KubeProxyProcess };
    'unseen-kube-proxy': { readonly unseen: Unseen };
    'unseen-tools': { readonly unseen: Unseen };
    refused: { readonly checks: readonly Cited[]; readonly tool?: string | undefined };
  }>('error'),
  'not-trusted': byProblem<{
    unsigned: Texts<'path'>;
    damaged: Texts<'path'>;
    'unknown-key': Texts<'path' | 'key'> & Lists<'known'>;
    wrong: Texts<'path'>;
    older: Texts<'path'> & Numbers<'serial' | 'least'>;
  }>('error'),
  /** `holder`: the apply that has not asked yet. */
  'nothing-to-confirm': row<{ readonly holder?: Holder }>('error'),
  'nothing-to-roll-back': row<Texts<'folder'> & States>('error'),
  'nothing-to-undo': row<{ readonly last: IdleCommand } & States>('error'),
  'system-error': byProblem<{
    refused: Texts<'reason'> & { readonly lacks?: 'rights' | 'space' | undefined };
    'no-standby': { readonly cause: Cause };
    'no-timer': Texts<'said'> & { readonly status: number | string | undefined };
    'unknown-start': None;
    silent: Numbers<'seconds'>;
    ended: Texts<'said'> & { readonly status: number | string | null };
  }>('error'),
  'tool-failed': row<Texts<'command' | 'tool'> & (Hang | By<'problem', { failed: ToolRefusal }>)>('error'),
  'tool-missing': row<Texts<'tool'> & { readonly to: 'read' | 'change' }>('error'),
  'unreadable-node': byProblem<{
    failed: CommandEnd & Texts<'tool'> & { readonly isRefused: boolean };
    'bad-output': Texts<'command' | 'tool'> & { readonly fault: OutputFault };
    'bad-file': Texts<'path'> & { readonly fault: OutputFault };
    'no-number': Texts<'path'>;
    'hidden-table': Texts<'command' | 'table'> & { readonly family: string };
    'no-network': None;
    'no-proc-net': None;
    /** `end`: of the command that leaves a mark, if there is one. */
    'no-mark': Texts<'tool'> & { readonly end?: CommandEnd | undefined; readonly because: 'rights' | 'names' | 'age' };
    leftovers: { readonly failure: Cited; readonly tool?: string | undefined };
  }>('error'),
  'write-failed': byProblem<{
    lock: Texts<'folder'> & { readonly cause: Cause; readonly of: 'run' | 'state-folder' | 'file' };
    journal: Texts<'folder'> & { readonly cause: Cause };
    /** The file holds no metrics. */
    metrics: Texts<'path'>;
    sysctl: Texts<'name' | 'value'> & { readonly cause: Cause };
  }>('error'),
  /** `rest`: lines that name what is still to be done. */
  'wrong-result': row<Lists<'rest'>>('error'),
};

/** The code of a failure: stable, documented in docs/codes.md, and counted by the metrics of watch. */
export type FailureCode = keyof typeof applyFindings;

export const failureCodes = (Object.keys(applyFindings) as FailureCode[]).toSorted();

export type FailureArguments<Code extends FailureCode> = ArgumentsIn<typeof applyFindings, Code>;

/** Why something could not be done, as data. */
export type FailureFault = {
  readonly [Code in FailureCode]: { readonly code: Code; readonly arguments: FailureArguments<Code> };
}[FailureCode];

export function severityOfFailure({ code, arguments: details }: FailureFault): Severity {
  return severityIn<unknown>(applyFindings[code] as Row<unknown>, details);
}
