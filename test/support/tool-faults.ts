import type { ToolCommand, CommandResult, Host } from '../../src/apply/node/host.ts';

/** What a tool does in place of its work. `host` is the one that would have done it. */
export type Fault = (command: ToolCommand, host: Host) => Promise<CommandResult>;

/** How a tool ends that prints nothing but this. */
export const ended = (status: number, stderr = ''): CommandResult => ({ kind: 'ended', status, stdout: '', stderr });

/** How a tool ends that is killed. */
export const killed: CommandResult = { kind: 'ended', status: undefined, signal: 'SIGKILL', stdout: '', stderr: '' };

/** Faults of a tool that leave the node alone, by what the tool does, in words. */
export const idleFaults = {
  'is missing': async () => ({ kind: 'missing' }),
  'ends with status 1': async () => ended(1, 'no reason given'),
  'ends with status 0 and does nothing': async () => ended(0),
} as const satisfies Readonly<Record<string, Fault>>;

/** Faults of a tool that takes a restore file line by line. */
export const restoreFaults: Readonly<Record<string, Fault>> = {
  ...idleFaults,
  'is killed halfway': async (command, host) => {
    const lines = (command.stdin ?? '').split('\n');
    await host.run({ ...command, stdin: `${lines.slice(0, Math.ceil(lines.length / 2)).join('\n')}\n` });
    return killed;
  },
};

/** A node on which the nth command of a kind, from 1, goes wrong, and no other. */
export function failOnce(host: Host, matches: (command: ToolCommand) => boolean, fault: Fault, nth = 1): Host {
  let seen = 0;
  return {
    ...host,
    run: (command) => (matches(command) && ++seen === nth ? fault(command, host) : host.run(command)),
  };
}
