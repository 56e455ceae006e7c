import { Command, InvalidArgumentError, Option } from 'commander';
import { ipFamilyChoices } from '../../compile/choose-families.ts';
import { newestRelease, releaseRange } from '../../kube-proxy/releases.ts';
import { proxyFlags } from '../../kube-proxy/settings/table.ts';

/**
 * Adds the options that say what is compiled and how kube-proxy would be set up, under kube-proxy's names. A command that only
 * looks assumes what manifests from git lack; one that programs nodes does so only on request.
 */
export function addInputOptions(command: Command, use: 'looks' | 'programs' = 'programs'): Command {
  command
    .option('-f, --file <path>', 'manifests: a file, a folder, or - for stdin (repeat for more)', append)
    .option(
      '--exclude <pattern>',
      'leave out files in folders, by a pattern as in .gitignore (repeat for more)',
      append,
    )
    .option('--skip-invalid', 'leave out files with errors, and objects defined twice, and continue with the others')
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
  return command;
}

/** Collects an option that may be given more than once. */
export function append(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

/** The paths to read: the arguments and those of -f. kpc.yaml's count only if the command line names none. */
export function namedInputs(
  command: Command,
  named: readonly string[],
  file: readonly string[] | undefined,
): readonly string[] {
  const isGiven = command.getOptionValueSource('file') === 'cli';
  return [...named, ...(isGiven || named.length === 0 ? (file ?? []) : [])];
}

/** The long names of the flags on the command line that affect what manifests compile to. */
export function flagsOfManifests(command: Command): readonly string[] {
  const own = new Set(['--node', ...addInputOptions(new Command(), 'looks').options.map(({ long }) => long)]);
  return command.options
    .filter((option) => own.has(option.long) && command.getOptionValueSource(option.attributeName()) === 'cli')
    .map(({ long }) => long ?? '');
}

/** --limit: how much of a list is shown. */
export function addLimit(): Option {
  return new Option('--limit <count>', 'lines of a list to show before "and 230 more"; 0 for all')
    .argParser((text) => {
      if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Write a number.');
      return Number(text) === 0 ? Number.POSITIVE_INFINITY : Number(text);
    })
    .default(20);
}
