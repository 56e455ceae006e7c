// Parts of sentences that kpc-apply's failures, node checks and remarks have in common.
import type {
  Cause,
  CommandEnd,
  Exposure,
  IdleCommand,
  KubeProxyProcess,
  NamedState,
  Obstacle,
  OutputFault,
  ChangeStep,
  Unseen,
} from '../../base/findings/apply.ts';
import { count } from '../../base/printable.ts';
import { cutLines, type Say } from './rows.ts';
import type { OtherNetwork } from '../../base/findings/node-checks.ts';
import type { Cited } from '../../base/findings/rows.ts';
import { boundWords } from './unread.ts';

export const rightsAdvice = 'run it as root; a container also needs the capability NET_ADMIN';

/** What kpc-apply cannot see, and how to make it visible. */
export const unseenWords: { readonly [U in Unseen]: readonly [text: string, advice: string] } = {
  outside: [
    'the processes of the node are not visible here',
    'start the container with --pid host (in Kubernetes: hostPID: true), or run kpc-apply on the node itself',
  ],
  forbidden: [
    'processes with more rights than kpc-apply are not visible here',
    'give kpc-apply the capability SYS_PTRACE (in a systemd unit: CAP_SYS_PTRACE in CapabilityBoundingSet)',
  ],
};

/** Says what to do if kpc-apply must know whether a process runs but cannot see it. */
export function adviseUnseen(unseen: Unseen, what: string): string {
  return `${unseenWords[unseen][1]}; if you know that ${what} runs here, add --assume-alone`;
}

/** Returns "kube-proxy is running (process 77)". */
export function nameProcess({ pid, within }: KubeProxyProcess): string {
  return `kube-proxy is running (${within === undefined ? '' : `in ${within}, `}process ${pid})`;
}

export function stopProcess({ within }: KubeProxyProcess): string {
  if (within === undefined) return 'stop it';
  return within === 'kubelite' ? 'stop MicroK8s' : 'start k3s with --disable-kube-proxy';
}

export function describeCause(cause: Cause, say: Say): string {
  return typeof cause === 'string' ? cause : say(cause).text;
}

/** Says why something could not be read. The sentence continues with the consequence. */
export function whyUnread(failure: Cited, say: Say): string {
  if (failure.code !== 'tool-missing') return say(failure).text;
  return say({ ...failure, arguments: { ...failure.arguments, to: 'change' } }).text;
}

/** Returns "ipset: 12 lines". */
export function describeStep(step: ChangeStep): string {
  if (step.kind === 'write') return `set ${step.setting.name} to ${step.setting.value}`;
  if (step.kind === 'balance') return `give the balancer ${count(step.proxyPorts.length, 'proxy port')}`;
  const { tool, args, stdin } = step.command;
  if (stdin === undefined) return [tool, ...args].join(' ');
  return `${tool}: ${count(stdin.split('\n').length - 1, 'line')}${step.isRemoval ? ', removals' : ''}`;
}

/** Returns the steps as lines, each followed by the input of its tool. Cuts the list after its first lines. */
export function listRest(steps: readonly ChangeStep[]): readonly string[] {
  const lines = steps.flatMap((step) => [
    describeStep(step),
    ...(step.kind === 'run' ? (step.command.stdin?.trimEnd().split('\n') ?? []) : []).map((line) => `  ${line}`),
  ]);
  return cutLines(lines, 12, String);
}

export function firstLine(text: string): string {
  return text.split('\n', 1).join();
}

/** Returns `"ipset restore" exited with status 1`. */
export function describeEnd({ command, status, signal }: CommandEnd): string {
  const how = status === undefined ? `was killed by ${signal ?? 'a signal'}` : `exited with status ${status}`;
  return `"${command}" ${how}`;
}

/** Returns "virtual server TCP 10.96.0.1:80". */
export function nameObject({ kind, name }: Pick<Obstacle, 'kind' | 'name'>): string {
  return `${kind === 'virtual-server' ? 'virtual server' : kind} ${name}`;
}

export function describeOutputFault(fault: OutputFault): string {
  switch (fault.kind) {
    case 'no-begin':
      return fault.expected === undefined
        ? "its first line is not the kernel's"
        : `it does not begin with "${fault.expected}"`;
    case 'no-end':
      return 'its last line is cut off';
    case 'no-table-end':
      return fault.table === undefined ? 'a table is incomplete' : `the table ${fault.table} is incomplete`;
    case 'strange-line':
      return `line ${fault.line} has another format`;
    case 'stray-line':
      return `"${fault.line}" is out of place`;
    case 'other-tool':
      return `it belongs to ${fault.of}`;
    case 'no-table':
      return `it lacks the table ${fault.table}, which the kernel has`;
    case 'no-set':
      return `rules match the set ${fault.set}, which it does not list`;
    case 'entries':
      return `it has ${fault.saved ?? 'no'} entries of ${fault.set}, but "ipset list -t" shows ${fault.listed ?? 'none'}`;
    case 'servers': {
      const { servers, reals, listedServers, listedReals } = fault;
      return `it has ${servers} virtual servers with ${reals} real servers, but /proc/net/ip_vs has ${listedServers} with ${listedReals}`;
    }
    case 'flows':
      return `it has ${fault.flows} flows, but reports ${fault.shown ?? 'none'}`;
    case 'no-timeouts':
      return 'it has no timeouts';
    case 'no-link':
      return 'it has no link';
    case 'no-json':
      return 'it is not complete JSON';
    case 'long-json':
      return `it is ${boundWords(fault)}`;
  }
}

/** Says who else could change a path, and how to prevent this. */
export function exposureWords(exposure: Exposure): readonly [text: string, advice: string] {
  const { path } = exposure;
  switch (exposure.kind) {
    case 'owner':
      // With the option -h, chown changes the link itself instead of the link's target.
      return [`${path} belongs to user ${exposure.owner}`, `check the content, then run "chown -h root ${path}"`];
    case 'all':
      return [`any user can write to ${path} (mode ${exposure.mode})`, `run "chmod go-w ${path}"`];
    case 'group':
      return [`group ${exposure.group} can write to ${path} (mode ${exposure.mode})`, `run "chmod g-w ${path}"`];
    case 'hidden-list': {
      const text = `its mode ${exposure.mode} may hide an access control list, and getfacl, which shows it, `;
      const why = exposure.isMissing ? 'is missing' : 'failed';
      return [`${path}: ${text}${why}`, `run "chmod g-w ${path}", or install the package acl`];
    }
    case 'list': {
      const text = `an access control list lets ${exposure.of} ${exposure.id} write to ${path}`;
      return [text, `see "getfacl ${path}", then run "setfacl -b ${path}"`];
    }
  }
}

/** Describes what another network namespace left in the state folder. */
export function describeNetwork({ of, path, network, here, mark }: OtherNetwork): string {
  const where = nameNetwork({ network, here, mark });
  return of === 'journal'
    ? `${path} belongs to an apply that is running or did not finish, ${where}; it waits for "kpc-apply rollback" there`
    : `${path} records objects made ${where}, so kpc-apply owns nothing here`;
}

/** Returns "in network namespace 4026531840 (this one is 4026532281)". */
function nameNetwork({ network, here, mark }: Pick<OtherNetwork, 'network' | 'here' | 'mark'>): string {
  if (network === undefined)
    return `by an earlier version, in a network namespace that the file does not name (this one is ${here})`;
  if (network !== here) return `in network namespace ${network} (this one is ${here})`;
  return `in an earlier network namespace ${network}, or in this one before it lost its mark ${mark ?? ''}`;
}

/** Returns advice for a rollback that has nothing to undo, or that cannot restore a state because it was not kept. */
export function adviseOnStates(states: readonly NamedState[]): string {
  if (states.length === 0)
    return 'no earlier state is kept, for example because the node rebooted: apply the bundle that you want';
  return `"kpc-apply rollback --to ID" goes to one of these: ${states.map(nameState).join('; ')}`;
}

/** Returns "state 3 (bundle /root/shop (3f2a9c0b1d2e), applied 2026-01-31T12:00:00Z)". */
export function nameState(state: NamedState): string {
  return `state ${state.id} (${describeState(state)})`;
}

/** Returns "bundle /root/shop (3f2a9c0b1d2e), applied 2026-01-31T12:00:00Z". */
export function describeState({ since, command, bundle }: NamedState): string {
  if (command === undefined) return 'what kpc-apply found';
  const what = bundle ? `bundle ${bundle.folder} (${bundle.digest.slice(0, 12)})` : 'nothing of kpc-apply';
  const how = { apply: 'applied', watch: 'applied by watch', cleanup: 'after cleanup' }[command];
  const when = since === undefined ? '' : ` ${formatTime(since)}`;
  return `${what}, ${how}${when}`;
}

/** Formats milliseconds since 1970 as "2026-01-31T12:00:00Z". A time outside the calendar counts as unknown. */
export function formatTime(milliseconds: number): string {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? 'at an unknown time' : `${date.toISOString().slice(0, 19)}Z`;
}

/** Says why a rollback would undo nothing: "the last command, "apply /root/shop" at 2026-…, changed nothing". */
export function describeLastCommand({ command, at, outcome, reason }: IdleCommand): string {
  const [first = ''] = (reason ?? '').split('\n');
  const why = first === '' ? '' : ` (${first})`;
  const what = {
    unchanged: 'changed nothing',
    'put-back': `rolled everything back${why || ' (an apply did not finish)'}`,
    refused: `was refused and changed nothing${why}`,
  }[outcome];
  return `the last command, "${command}" at ${formatTime(at)}, ${what}`;
}
