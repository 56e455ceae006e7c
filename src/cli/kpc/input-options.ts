import { Command, InvalidArgumentError, Option } from 'commander';
import { ipFamilyChoices } from '../../snapshot/open/choose-families.ts';
import { pathWord } from '../../base/printable.ts';
import { withSlashes } from '../../base/system-paths.ts';
import { proxyModeNames, unnamedMode } from '../../kube-proxy/modes.ts';
import { newestRelease, releaseRange } from '../../kube-proxy/releases.ts';
import { proxyFlags } from '../../settings/table.ts';
import { helpGroups } from '../shared/help.ts';
import type { LoadedInputs } from '../../snapshot/open/load-texts.ts';
import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { OpenedPaths } from '../../snapshot/files/open.ts';

/**
 * Adds the options for what is compiled and how kube-proxy is set up, under kube-proxy's names. A command that only
 * shows results assumes what manifests from git lack; one that programs nodes does so on request.
 */
export function addInputOptions(command: Command, use: 'looks' | 'programs' = 'programs'): Command {
  const before = command.options.length;
  command
    .option('-f, --file <path>', 'manifests: a file, a folder, or - for stdin (repeat for more)', appendPath)
    .option(
      '--exclude <pattern>',
      'leave out files in folders, by a pattern as in .gitignore (repeat for more)',
      append,
    )
    .option('--render', 'render inputs that are charts or kustomizations, with helm template or kubectl kustomize')
    .option('--render-values <file>', 'a file of values for the charts (repeat for more)', append)
    .option('--skip-invalid', 'leave out objects with errors, and those defined twice, and continue with the others')
    .option('-n, --namespace <name>', 'the namespace of objects that name none (default: default)')
    .option(
      '--config <file>',
      "kube-proxy's configuration: a KubeProxyConfiguration, the ConfigMap that holds one, or that of kubeadm, kind or k3s",
    )
    .option('--kpc-yaml <file>', 'the file to read flags from, or none (default: kpc.yaml in this folder or above)')
    .option(
      '--service-cluster-ip-range <cidrs>',
      'choose cluster IPs from here for Services that have none yet (default: from the ServiceCIDR objects)',
    )
    .option('--service-node-port-range <range>', 'choose node ports from here, such as 30000-32767')
    .option('--load-balancer-ip-range <cidrs>', 'choose addresses from here for load balancers that have none yet')
    .option(
      '--assume-endpoints [cidrs]',
      "assume ready Pods for workloads, in these networks (default: the Nodes' podCIDRs, or else the cluster CIDR)",
    )
    .option('--host-addresses <file>', 'what `ip -j addr` prints on the node: the addresses that node ports listen on')
    .addOption(
      new Option('--ip-family <family>', 'address families to compile; auto: those the Services and the node use')
        .choices(ipFamilyChoices)
        .default('auto'),
    )
    .option(
      '--kubernetes-version <version>',
      `follow the kube-proxy of this release, ${releaseRange}; auto: the one that the Node names (default: ${newestRelease})`,
    );
  const assume = new Option(
    '--assume',
    'assume what manifests from git lack: addresses, node ports, ready Pods and Nodes',
  );
  if (use === 'looks') {
    command
      .addOption(assume.default('by-default').hideHelp())
      .option('--no-assume', 'do not assume what manifests from git lack: addresses, node ports, Pods and Nodes');
  } else command.addOption(assume);
  for (const { usage, help, kind } of proxyFlags) {
    if (kind === 'list') command.option(usage, help, append);
    else command.option(usage, help);
  }
  for (const option of command.options.slice(before)) {
    const long = option.long ?? '';
    if (!ofEveryDay.has(long)) option.helpGroup(helpGroups[ofKubeProxy.has(long) ? 'settings' : 'input']);
  }
  return command;
}

/** Options that come first in help. */
const ofEveryDay: ReadonlySet<string> = new Set(['--file', '--proxy-mode', '--kubernetes-version']);

const ofKubeProxy: ReadonlySet<string> = new Set(proxyFlags.map(({ name }) => name));

export function append(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

function appendPath(path: string, before: readonly string[] | undefined): readonly string[] {
  return append(withSlashes(path), before);
}

/** The paths of the arguments and of -f. kpc.yaml's count only if the command line has none. */
export function namedInputs(
  command: Command,
  named: readonly string[],
  file: readonly string[] | undefined,
): readonly string[] {
  if (command.getOptionValue('renderValues') !== undefined && command.getOptionValue('render') === undefined)
    command.error('error: --render-values: only with --render');
  const isGiven = command.getOptionValueSource('file') === 'cli';
  return [...named.map((path) => withSlashes(path)), ...(isGiven || named.length === 0 ? (file ?? []) : [])];
}

/** Long names of the flags on the command line that change what manifests compile to. */
export function flagsOfManifests(command: Command): readonly string[] {
  const own = new Set(['--node', ...addInputOptions(new Command(), 'looks').options.map(({ long }) => long)]);
  return command.options
    .filter((option) => own.has(option.long) && command.getOptionValueSource(option.attributeName()) === 'cli')
    .map(({ long }) => long ?? '');
}

/** Why flags of manifests would do nothing for two sides, neither of which is manifests. */
export function describeStrays(flags: readonly string[], [from, to]: readonly [from: string, to: string]): string {
  return `${flags.join(', ')}: only for manifests, and neither ${from} nor ${to} is manifests`;
}

/** The flags on the command line that change what manifests compile to, by their names in kpc.yaml, except -f and --node. */
export function givenFlags(command: Command): ReadonlyMap<string, string | readonly string[] | boolean> {
  const own = new Set(flagsOfManifests(command));
  return new Map(
    command.options.flatMap((option) => {
      const long = option.long ?? '';
      if (!own.has(long) || ['--file', '--node', '--kpc-yaml'].includes(long)) return [];
      const value: unknown = command.getOptionValue(option.attributeName());
      return [
        [long.slice(2), Array.isArray(value) ? value.map(String) : typeof value === 'boolean' ? value : String(value)],
      ];
    }),
  );
}

/** Why flags of the command line would do nothing for an input that is compiled already; undefined if none would. */
export function describeIdleFlags(
  flags: readonly string[],
  { kind, path, nodes, at }: OpenedPaths,
  node: string | undefined,
): string | undefined {
  if (kind !== 'bundle' && kind !== 'dump') return undefined;
  const idle = flags.filter((flag) => flag !== '--file' && flag !== '--node');
  if (idle.length > 0) return `${idle.join(', ')}: only for manifests, and ${path} is a ${kind}`;
  if (!flags.includes('--node')) return undefined;
  const [own] = nodes.map((name) => at(name).side?.nodeName);
  if (kind === 'bundle') return own === node ? undefined : `--node ${node}: ${path} is a bundle of ${own || 'no node'}`;
  return `--node: only for manifests and bundles, and ${path} is a dump of one node`;
}

/** Says of a command that judges a cluster by its manifests that it takes kube-proxy's own default, where others take IPVS mode. */
export function takeIptables(command: Command): Command {
  const mode = command.options.find(({ long }) => long === '--proxy-mode');
  if (mode) mode.description = `${proxyModeNames} (default: as the input or its configuration says, or else iptables)`;
  return command;
}

/** Leaves out the note about a mode that nobody named, for results whose summary says it. */
export function withoutDefaultMode<T extends { readonly diagnostics: readonly Diagnostic[] }>(read: T): T {
  return { ...read, diagnostics: read.diagnostics.filter(({ code }) => code !== 'default-mode') };
}

/** Where the mode comes from, if nobody named it: words that follow it in a summary. */
export function modeFromWords({ modeNote }: Pick<LoadedInputs, 'modeNote'>): string {
  if (modeNote?.code !== 'default-mode') return '';
  return modeNote.arguments.named === 'nothing' ? ` ${unnamedMode}` : " (kube-proxy's default)";
}

/**
 * A `kpc trace` over the same input with the settings of the command line and of kpc.yaml, which may have others for trace;
 * without the packet. `words` name the input, and `settings` are further flags, which win.
 */
export function traceWords(
  command: Command,
  words: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): readonly string[] {
  const known = new Set(addInputOptions(new Command(), 'looks').options.map((option) => option.attributeName()));
  const flags = command.options.flatMap((option) => {
    const name = option.attributeName();
    const source = command.getOptionValueSource(name) ?? '';
    const isGiven =
      (known.has(name) || name === 'node') && name !== 'file' && (source === 'cli' || source === 'config');
    const long = option.long ?? '';
    if (!isGiven || long in settings || option.negate !== (command.getOptionValue(name) === false)) return [];
    const value: unknown = command.getOptionValue(name);
    if (typeof value === 'boolean') return [long];
    return [value].flat().flatMap((each) => [long, String(each)]);
  });
  return ['kpc', 'trace', ...words, ...flags, ...Object.entries(settings).flat()];
}

/** A `kpc trace` over one side of a comparison, without the packet: `inputs` and `settings` are those of manifests. */
export function traceSide(
  command: Command,
  side: Snapshot,
  inputs: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): readonly string[] {
  const { kind, name } = side;
  if (kind === 'manifests') return traceWords(command, inputs.map(pathWord), { ...side.taken, ...settings });
  const addresses: unknown = kind === 'dump' ? command.getOptionValue('hostAddresses') : undefined;
  return ['kpc', 'trace', pathWord(name), ...(typeof addresses === 'string' ? ['--host-addresses', addresses] : [])];
}

/** --limit: how much of a list is shown. */
export function addLimit(): Option {
  return new Option('--limit <count>', 'lines of a list to show before "and 230 more"; 0 for all')
    .argParser((text) => {
      if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Write a number.');
      return Number(text) === 0 ? Number.POSITIVE_INFINITY : Number(text);
    })
    .default(20)
    .helpGroup(helpGroups.output);
}
