import { describeError } from '../../bundle/errors.ts';
import { Failure } from '../state/failure.ts';
import { excerptOf, formatCommand, type Command, type CommandResult, type Host } from '../node/host.ts';
import { describeStep, stepCommand, type Step } from '../plan/steps.ts';

/** Carries out one step. Throws a Failure where the node says that it went wrong; that it says nothing proves nothing. */
export async function runStep(host: Host, step: Step): Promise<void> {
  const command = stepCommand(step);
  if (command) return assertDone(command, await host.run(command));
  if (step.kind !== 'change-setting') return;
  const { setting } = step.change;
  try {
    await host.writeFile(setting.path, setting.value);
  } catch (error) {
    throw new Failure(
      'write-failed',
      `cannot ${describeStep(step)}: ${describeError(error)}`,
      'check that its kernel module is loaded and that /proc/sys is writable here',
    );
  }
}

function assertDone(command: Command, result: CommandResult): void {
  if (result.kind === 'missing') {
    throw new Failure(
      'tool-missing',
      `${command.tool} is missing`,
      '"kpc-apply doctor" names the package',
      command.tool,
    );
  }
  const said = result.stderr.trim();
  // ipvsadm -R goes on after a line that failed, and ends with status 0.
  if (result.status === 0 && (command.tool !== 'ipvsadm' || said === '')) return;
  const ending =
    result.status === undefined
      ? `was killed by ${result.signal ?? 'a signal'}`
      : `exited with status ${result.status}`;
  throw new Failure(
    'tool-failed',
    [`"${formatCommand(command)}" ${ending}`, excerptOf(said), quoteLine(command, said)].filter(Boolean).join('\n'),
    'fix the cause and apply again; --dry-run prints what each tool is given',
    command.tool,
  );
}

/** The line of the input that a tool complains of; ipvsadm names none. */
function quoteLine(command: Command, said: string): string {
  const number =
    /line:? (\d+)/.exec(said)?.[1] ?? // iptables-restore, ipset
    /Command failed -:(\d+)/.exec(said)?.[1] ?? // ip -batch
    /^\/dev\/stdin:(\d+):/m.exec(said)?.[1]; // nft
  if (number === undefined || command.stdin === undefined) return '';
  const line = command.stdin.split('\n')[Number(number) - 1];
  return line === undefined ? '' : `line ${number}: ${line}`;
}
