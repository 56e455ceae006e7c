import type { ToolCommand, CommandResult, Host } from '../../src/apply/node/host.ts';

/** A fault that replaces a tool's work. `host` can run the tool. */
export type Fault = (command: ToolCommand, host: Host) => Promise<CommandResult>;

export const ended = (status: number, stderr = ''): CommandResult => ({ kind: 'ended', status, stdout: '', stderr });

export const killed: CommandResult = { kind: 'ended', status: undefined, signal: 'SIGKILL', stdout: '', stderr: '' };

/** Faults of a tool that do not change the node, by a description. */
export const idleFaults = {
  'is missing': async () => ({ kind: 'missing' }),
  'ends with status 1': async () => ended(1, 'no reason given'),
  'ends with status 0 and does nothing': async () => ended(0),
} as const satisfies Readonly<Record<string, Fault>>;

export const restoreFaults: Readonly<Record<string, Fault>> = {
  ...idleFaults,
  'is killed halfway': async (command, host) => {
    const lines = (command.stdin ?? '').split('\n');
    await host.run({ ...command, stdin: `${lines.slice(0, Math.ceil(lines.length / 2)).join('\n')}\n` });
    return killed;
  },
};

/** Returns a node on which only the nth matching command, counted from 1, goes wrong. */
export function failOnce(host: Host, matches: (command: ToolCommand) => boolean, fault: Fault, nth = 1): Host {
  let seen = 0;
  return {
    ...host,
    run: (command) => (matches(command) && ++seen === nth ? fault(command, host) : host.run(command)),
  };
}
