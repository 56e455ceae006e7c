import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { InvalidArgumentError, type Option, type Command } from 'commander';
import { defaultStateFolder } from '../../apply/state/record.ts';
import { parseDuration as readSeconds } from '../../base/duration.ts';
import { parseNetwork } from '../../kernel/address.ts';
import type { ListenAddress } from '../../apply/monitor/watch-monitor.ts';
import { parseSocketAddress } from '../../kernel/ports-and-marks.ts';
import { helpGroups } from '../shared/help.ts';
import type { Done, ExitStatus } from '../shared/terminal.ts';
import { ValueOption } from '../shared/usage-errors.ts';
import { parseOutFolder } from '../shared/path-words.ts';
import type { ApplyEnvironment } from './environment.ts';

/** Makes a new Option for each command. A command wraps the parser of its Option to record refused values, so commands cannot share one. */
interface ApplyFlag<T> {
  (): Option;
  readonly value?: T;
}

function flag<T>(flags: string, description: string, refine = (option: ValueOption): Option => option): ApplyFlag<T> {
  return () => refine(new ValueOption(flags, description));
}

function listFlag(
  flags: string,
  description: string,
  parse: (text: string, before: readonly string[]) => readonly string[],
  refine = (option: Option): Option => option,
): ApplyFlag<readonly string[]> {
  return flag(flags, description, (option) => {
    option.isList = true;
    return refine(option.argParser(parse).default([], 'none'));
  });
}

function switchFlag(flags: string, description: string): ApplyFlag<boolean> {
  return flag(flags, description, (option) => option.default(false, 'no'));
}

function further<T>(make: ApplyFlag<T>): ApplyFlag<T> {
  return () => make().helpGroup(helpGroups.further);
}

/** Makes an option for a duration. `usual`: the default, in the form in which a user would type it. */
function duration<T extends number | undefined>(
  flags: string,
  description: string,
  usual?: string,
  parse = readDurationOption,
): ApplyFlag<T> {
  return flag(flags, description, (option) =>
    option.argParser(parse).default(usual && readDurationOption(usual), usual),
  );
}

const flags = {
  adopt: switchFlag('--adopt', 'take over what kube-proxy left on this node'),
  assumeAlone: further(
    switchFlag(
      '--assume-alone',
      'if processes cannot be seen, assume that no kube-proxy and no tool of a killed apply is running',
    ),
  ),
  all: flag<boolean | undefined>('--all', 'name each chain and set entry, however many there are'),
  balancerReload: further(
    flag<readonly string[] | undefined>(
      '--balancer-reload <command>',
      'run this after the balancer file has changed: a program and its arguments, without a shell',
      (option) => option.argParser(parseCommand),
    ),
  ),
  confirmTimeout: duration<number | undefined>(
    '--confirm-timeout <duration>',
    'roll everything back unless "kpc-apply confirm" is run within this time',
    undefined,
    parseConfirmTimeout,
  ),
  drainTimeout: duration<number | undefined>(
    '--drain-timeout <duration>',
    'how long to keep removed TCP real servers, and all of IPVS after a change to another mode, for open connections (default: until these end)',
  ),
  dryRun: switchFlag('--dry-run', 'show what would be done, and change nothing'),
  force: switchFlag('--force', 'continue even if doctor finds an error, such as a running kube-proxy'),
  healthz: further(
    flag<ListenAddress | undefined>(
      '--healthz <address>',
      'serve /healthz and /livez here, as kube-proxy does on 0.0.0.0:10256',
      (option) => option.argParser(parseListenAddress),
    ),
  ),
  ipvsExcludeCidrs: further(
    listFlag(
      '--ipvs-exclude-cidrs <cidrs>',
      'never remove virtual servers in these CIDRs or in those that a bundle names',
      addNetworks,
    ),
  ),
  list: flag<boolean>('--list', 'list the states to go back to, and change nothing', (option) =>
    option.conflicts(['to', 'dryRun']).default(false, 'no'),
  ),
  logFormat: further(
    flag<'text' | 'json'>('--log-format <format>', 'how to write messages: json is one object a line', (option) =>
      option.choices(['text', 'json']).default('text'),
    ),
  ),
  metrics: further(
    flag<ListenAddress | undefined>('--metrics <address>', 'serve metrics for Prometheus here, at /metrics', (option) =>
      option.argParser(parseListenAddress),
    ),
  ),
  metricsFile: further(
    flag<string | undefined>(
      '--metrics-file <file>',
      'write the metrics to this file, for the textfile collector of node-exporter',
    ),
  ),
  minSyncPeriod: further(duration<number>('--min-sync-period <duration>', 'the least time between two applies', '1s')),
  node: flag<string>('--node <name>', 'the name to give the node', (option) =>
    option.default(hostname(), "the machine's name"),
  ),
  out: flag<string>('-o, --out <folder>', 'the folder to write', (option) =>
    option.argParser(parseOutFolder).makeOptionMandatory(),
  ),
  output: flag<'text' | 'json'>('--output <format>', 'how to print', (option) =>
    option.choices(['text', 'json']).default('text'),
  ),
  stateDir: flag<string>('--state-dir <folder>', 'where kpc-apply keeps its records', (option) =>
    option.argParser((folder) => resolve(folder)).default(defaultStateFolder),
  ),
  syncPeriod: duration<number>('--sync-period <duration>', 'how often to check the node', '30s'),
  to: flag<number | undefined>('--to <id>', 'go to this state, as --list shows it', (option) =>
    option.argParser(parseStateId),
  ),
  trust: listFlag(
    '--trust <file>',
    'accept only a pack that a key in this file signed (repeat for more files)',
    (file, before) => [...before, file],
    (option) => option.env('KPC_TRUST'),
  ),
  unconfirmed: flag<string | undefined>(
    '--unconfirmed <id>',
    'stand by to roll back only the apply with this id, which runs with --confirm-timeout; apply starts this itself',
    (option) => option.hideHelp(),
  ),
};

type FlagName = keyof typeof flags;

export const applyFlags = [
  'drainTimeout',
  'balancerReload',
  'force',
  'adopt',
  'assumeAlone',
  'ipvsExcludeCidrs',
  'trust',
  'stateDir',
] as const;

export type Options<K extends FlagName> = {
  readonly [F in K]: (typeof flags)[F] extends ApplyFlag<infer T> ? T : never;
};

interface CommandDefinition<K extends FlagName> {
  readonly name: string;
  readonly description: string;
  /** Set if the command takes a bundle. Brackets mean that the bundle is optional. */
  readonly bundle?: '<bundle>' | '[bundle]';
  readonly flags: readonly K[];
  readonly run: (options: Options<K>, environment: ApplyEnvironment, bundle: string) => Promise<ExitStatus>;
}

export type AddApplyCommand = (program: Command, environment: ApplyEnvironment, done: Done) => void;

export function defineApplyCommand<K extends FlagName>(definition: CommandDefinition<K>): AddApplyCommand {
  return (program, environment, done) => {
    const command = program.command(definition.name).description(definition.description);
    if (definition.bundle) command.argument(definition.bundle, 'its folder or pack');
    for (const name of definition.flags) command.addOption(flags[name]());
    command.action(async () => {
      // This is undefined if the bundle is optional and the user gave none.
      const bundle = command.args[0] as string;
      done(await definition.run(command.opts() as Options<K>, environment, bundle));
    });
  };
}

/** Splits a text into words at blanks. Refuses shell syntax, so that nobody comes to rely on it. */
function parseCommand(text: string): readonly string[] {
  const words = text.split(' ').filter(Boolean);
  if (words.length > 0 && /^[\w ./:=@%+,-]+$/.test(text)) return words;
  throw new InvalidArgumentError(
    'Write a program and its arguments, without quotes, like "systemctl reload kpc-balancer": no shell reads them.',
  );
}

function addNetworks(text: string, before: readonly string[]): readonly string[] {
  const cidrs = text.split(',').filter(Boolean);
  if (!cidrs.every((cidr) => parseNetwork(cidr))) throw new InvalidArgumentError('Write CIDRs like 10.1.0.0/16.');
  return [...before, ...cidrs];
}

/** Reads the time in which to confirm. Refuses 0, because nobody could confirm that fast. */
function parseConfirmTimeout(text: string): number {
  const milliseconds = readDurationOption(text);
  if (milliseconds > 0) return milliseconds;
  throw new InvalidArgumentError('Write a time that is long enough to run "kpc-apply confirm" in, like 1m.');
}

/** Reads "90s", "1m30s" or "500ms", which are durations in Go's format. Returns milliseconds. */
function readDurationOption(text: string): number {
  const seconds = readSeconds(text);
  if (seconds !== undefined && seconds >= 0) return Math.round(seconds * 1000);
  throw new InvalidArgumentError('Write a duration like 30s or 1m30s.');
}

function parseStateId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write the number of a state, as "kpc-apply rollback --list" shows it.');
}

/** Reads "0.0.0.0:10256" or "[::]:10256". A port without an address, such as "9810", means this machine only. */
function parseListenAddress(text: string): ListenAddress {
  const isPort = /^\d+$/.test(text);
  const parsed = parseSocketAddress(isPort ? `127.0.0.1:${text}` : text);
  if (parsed && parsed.port > 0) return { host: parsed.address.text, port: parsed.port };
  throw new InvalidArgumentError('Write an address and a port, like 0.0.0.0:10256, or only a port of 127.0.0.1.');
}
