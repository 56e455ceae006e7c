import { describeError } from '../../bundle/errors.ts';
import { describeEnd, excerptOf, type Command, type CommandResult, type Host } from '../node/host.ts';
import type { Step } from '../plan/kind-steps.ts';
import type { Plan } from '../plan/plan.ts';
import { describeStep, listSteps, stepCommand } from '../plan/steps.ts';
import { Failure } from '../state/failure.ts';
import type { Session } from './observe-node.ts';

/** Carries out a plan, and gives its steps. Throws a Failure at the first one that goes wrong. */
export async function runPlan({ host, onEvent, signal }: Session, plan: Plan): Promise<readonly Step[]> {
  const steps = listSteps(plan);
  for (const [i, step] of steps.entries()) {
    assertNotInterrupted(signal);
    onEvent({ kind: 'step', step, number: i + 1, of: steps.length });
    await runStep(host, step);
  }
  return steps;
}

/** Throws a Failure where the operator has asked to stop. */
export function assertNotInterrupted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new Failure('interrupted', 'stopped by a signal', 'apply again when you are ready');
}

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
  const { tool } = command;
  if (result.kind === 'missing') {
    throw new Failure('tool-missing', `${tool} is missing`, '"kpc-apply doctor" names the package', tool);
  }
  const said = result.stderr.trim();
  // ipvsadm -R goes on after a line that failed, and ends with status 0.
  if (result.status === 0 && (tool !== 'ipvsadm' || said === '')) return;
  throw new Failure(
    'tool-failed',
    [describeEnd(command, result), excerptOf(said), quoteLine(command, said)].filter(Boolean).join('\n'),
    'fix the cause and apply again; --dry-run prints what each tool is given',
    tool,
  );
}

/** The line of the input that a tool complains of: iptables-restore and ipset, ip -batch, nft. ipvsadm names none. */
function quoteLine({ stdin }: Command, said: string): string {
  const match = /line:? (\d+)|Command failed -:(\d+)|^\/dev\/stdin:(\d+):/m.exec(said);
  const number = match?.slice(1).find((each) => each !== undefined);
  const line = number === undefined ? undefined : stdin?.split('\n')[Number(number) - 1];
  return line === undefined ? '' : `line ${number}: ${line}`;
}
