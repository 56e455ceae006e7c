import type { Command } from 'commander';

/** A flag that does nothing beside another one, or without it. Each is a flag, or a flag with its value: "--output json". */
interface IdleFlag {
  readonly flag: string;
  readonly beside?: string;
  readonly without?: string;
  /** A clause that says so. */
  readonly what: string;
  readonly help: string;
}

const leaveOut = 'leave it out';

const onEachNode: IdleFlag = {
  flag: '--node',
  beside: '--all-nodes',
  what: '--node names one node, and --all-nodes asks for all of them',
  help: 'leave out one of the two',
};

const limitOfJson: IdleFlag = {
  flag: '--limit',
  beside: '--output json',
  what: '--limit: JSON has all of a list',
  help: leaveOut,
};

const asTable = 'write --from and --to in place of --all';

/**
 * Of each command, the flags that other flags make idle. Only what the command line says counts: kpc.yaml holds the flags of many calls.
 * What an input makes idle, the readers of inputs refuse (describeIdleFlags).
 */
const idleFlags: Readonly<Record<string, readonly IdleFlag[]>> = {
  compile: [
    {
      flag: '--jobs',
      without: '--all-nodes',
      what: '--jobs shares nodes out, and there is one',
      help: 'add --all-nodes',
    },
  ],
  describe: [limitOfJson],
  diff: [
    limitOfJson,
    { flag: '--limit', beside: '--output unified', what: '--limit: unified output has all lines', help: leaveOut },
    { flag: '--rules', beside: '--output unified', what: '--rules: unified output always has them', help: leaveOut },
    {
      flag: '--rules',
      beside: '--to-kubernetes-version',
      what: '--rules: two releases are always compared by their rules',
      help: leaveOut,
    },
  ],
  trace: [
    onEachNode,
    { flag: '--output svg', beside: '--all', what: '--output svg draws the way of a packet', help: asTable },
    { flag: '--to', beside: '--all', what: '--to names one packet, and --all asks for a table', help: asTable },
    {
      flag: '--proto',
      beside: '--all',
      what: '--all asks each port by its own protocol, and --proto names one',
      help: asTable,
    },
    {
      flag: '--in-interface',
      without: '--from',
      what: '--in-interface is where the packets of --from arrive',
      help: 'add --from',
    },
    {
      flag: '--in-interface',
      beside: '--from node',
      what: "--in-interface: the node's own packets arrive by no interface",
      help: 'leave it out, or name the sender whose packets arrive there',
    },
  ],
  test: [onEachNode],
  equivalence: [onEachNode],
  migrate: [
    {
      flag: '--proxy-mode',
      beside: '--from',
      what: '--proxy-mode and --from both name the mode now',
      help: 'leave out one of the two',
    },
  ],
};

/** Ends the command with an error if a flag of its command line would do nothing. */
export function refuseIdleFlags(command: Command): void {
  const given = new Set(
    command.options.flatMap((option) => {
      const name = option.attributeName();
      if (!option.long || command.getOptionValueSource(name) !== 'cli') return [];
      return [option.long, `${option.long} ${String(command.getOptionValue(name))}`];
    }),
  );
  const found = (idleFlags[command.name()] ?? []).find(({ flag, beside, without }) => {
    const isIdle = beside === undefined ? !given.has(without ?? '') : given.has(beside);
    return given.has(flag) && isIdle;
  });
  if (found) command.error(`error: ${found.what}\n${found.help}`);
}
