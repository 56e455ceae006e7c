import { resolve } from 'node:path';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { defaultStateFolder } from '../../apply/state/record.ts';
import { parseDuration as readSeconds } from '../../kube-proxy/settings/kinds.ts';
import { parseNetwork } from '../../kernel/address.ts';
import type { ListenAddress } from '../../apply/monitor/watch-monitor.ts';
import { parseSocketAddress } from '../../kernel/socket-address.ts';
import type { Done, ExitStatus } from '../shared/exit-status.ts';
import type { ApplyEnvironment } from './environment.ts';

/** A command, as its help shows it, and what it does. */
interface CommandDefinition<O> {
  readonly name: string;
  readonly description: string;
  /** Whether it takes a bundle, which may be optional. */
  readonly bundle?: '<bundle>' | '[bundle]';
  readonly options: () => readonly Option[];
  readonly run: (options: O, environment: ApplyEnvironment, bundle: string) => Promise<ExitStatus>;
}

/** Adds a command to the program. */
export type AddCommand = (program: Command, environment: ApplyEnvironment, done: Done) => void;

/** A command of kpc-apply. */
export function defineCommand<O>({ name, description, bundle, options, run }: CommandDefinition<O>): AddCommand {
  return (program, environment, done) => {
    const command = program.command(name).description(description);
    if (bundle) command.argument(bundle, 'its folder or pack');
    for (const option of options()) command.addOption(option);
    // A command whose bundle is optional takes undefined, too.
    command.action(async () => done(await run(command.opts() as O, environment, command.args[0] as string)));
  };
}

export function stateOption(): Option {
  return new Option('--state-dir <folder>', 'where kpc-apply keeps its records')
    .argParser((folder) => {
      if (folder.trim() === '') throw new InvalidArgumentError('Name a folder.');
      return resolve(folder);
    })
    .default(defaultStateFolder);
}

/** Which of the things that kpc-apply did not make a command may change. */
export interface ClaimOptions {
  readonly adopt: boolean;
  readonly ipvsExcludeCidrs: readonly string[];
}

/** `more`: which other CIDRs there are. */
export function claimOptions(more = ', nor in those that the bundle names'): readonly Option[] {
  return [
    new Option('--adopt', 'take over what kube-proxy left on this node').default(false, 'no'),
    new Option('--ipvs-exclude-cidrs <cidrs>', `never remove virtual servers in these CIDRs${more}`)
      .argParser((value, before: readonly string[]) => {
        const cidrs = value.split(',').filter(Boolean);
        const wrong = cidrs.find((cidr) => !parseNetwork(cidr));
        if (wrong !== undefined) throw new InvalidArgumentError('Write CIDRs like 10.1.0.0/16.');
        return [...before, ...cidrs];
      })
      .default([], 'none'),
  ];
}

/** The files with the keys that must have signed a bundle; any bundle will do if there are none. */
export interface TrustOptions {
  readonly trust: readonly string[];
}

export function trustOption(): Option {
  return new Option('--trust <file>', 'accept only a pack that a key in this file signed; give it again for more files')
    .argParser((file: string, before: readonly string[]) => [...before, file])
    .default([], 'none')
    .env('KPC_TRUST');
}

/** `although`: what the command is careful about. */
export function forceOption(although: 'kube-proxy is running' | 'doctor finds an error'): Option {
  return new Option('--force', `continue even if ${although}`).default(false, 'no');
}

/** An option with a duration, whose default help shows as people write it. */
export function periodOption(flags: string, description: string, usual: string): Option {
  return new Option(flags, description).argParser(parseDuration).default(parseDuration(usual), usual);
}

export function drainOption(): Option {
  return new Option(
    '--drain-timeout <duration>',
    'how long removed TCP real servers, and all of IPVS after a change to another mode, wait for open connections (default: until they end)',
  ).argParser(parseDuration);
}

export function outputOption(): Option {
  return new Option('--output <format>', 'how to print').choices(['text', 'json']).default('text');
}

/** "90s", "1m30s", "500ms" → milliseconds, as Go writes durations. */
export function parseDuration(text: string): number {
  const seconds = readSeconds(text);
  if (seconds !== undefined && seconds >= 0) return Math.round(seconds * 1000);
  throw new InvalidArgumentError('Write a duration like 30s or 1m30s.');
}

export function monitorOptions(): readonly Option[] {
  const listening = (flags: string, description: string) =>
    new Option(flags, description).argParser(parseListenAddress);
  return [
    listening('--metrics <address>', 'serve metrics for Prometheus here, at /metrics'),
    new Option('--metrics-file <file>', 'write the metrics to this file, for the textfile collector of node-exporter'),
    listening('--healthz <address>', 'serve /healthz and /livez here, as kube-proxy does on 0.0.0.0:10256'),
  ];
}

/** "0.0.0.0:10256", "[::]:10256", or a port on this machine alone: "9810". */
function parseListenAddress(text: string): ListenAddress {
  const isPort = /^\d+$/.test(text);
  const parsed = parseSocketAddress(isPort ? `127.0.0.1:${text}` : text);
  if (parsed && parsed.port > 0) return { host: parsed.address.text, port: parsed.port };
  throw new InvalidArgumentError('Write an address and a port, like 0.0.0.0:10256, or only a port of 127.0.0.1.');
}

/** How messages are written to stderr. */
export interface LogOptions {
  logFormat?: 'text' | 'json' | undefined;
}

export function logOption(): Option {
  return new Option('--log-format <format>', 'how to write messages: json is one object a line')
    .choices(['text', 'json'])
    .default('text');
}
