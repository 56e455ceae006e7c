import { describeError } from '../bundle/errors.ts';
import { readNamedFile } from '../base/read-file.ts';
import type { Command } from 'commander';
import { Option } from 'commander';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { RangeFlags } from '../input/assignment-ranges.ts';
import { parseAssignmentRanges } from '../input/assignment-ranges.ts';
import { readConfigFile } from '../input/read-config.ts';
import type { Inputs } from '../input/read-inputs.ts';
import { readInputs } from '../input/read-inputs.ts';
import type { ProxyFlags } from '../input/settings.ts';
import { resolveSettings } from '../input/settings.ts';
import { sortDiagnostics } from '../input/sort-diagnostics.ts';
import { newestRelease } from '../kube-proxy/releases.ts';
import type { Address } from '../kernel/address.ts';
import { parseAddress } from '../kernel/address.ts';
import { parseIpAddrJson } from '../kernel/link.ts';
import { serviceLink } from '../kube-proxy/link.ts';
import type { IpFamilyChoice, Prepared } from './compile-inputs.ts';
import { ipFamilyChoices, prepare } from './compile-inputs.ts';
import type { VersionChoice } from './kubernetes-version.ts';
import { parseVersionChoice, releaseRange, startingRelease } from './kubernetes-version.ts';
import type { Terminal } from './terminal.ts';

/** The options of all commands that compile manifests. */
export interface InputOptions extends ProxyFlags, RangeFlags {
  readonly file?: readonly string[];
  readonly exclude?: readonly string[];
  readonly config?: string;
  readonly hostAddresses?: string;
  readonly ipFamily: IpFamilyChoice;
  /** Of kpc compile only: a bundle without a Service is what is wanted. */
  readonly allowEmpty?: boolean;
  readonly kubernetesVersion?: string;
}

/** Adds the options that say what is compiled and how kube-proxy would be set up, under kube-proxy's names. */
export function addInputOptions(command: Command): Command {
  return command
    .option('-f, --file <path>', 'manifests: a file, a folder, or - for stdin (repeat for more)', append)
    .option('--exclude <pattern>', 'leave out files of folders, by a pattern as in .gitignore (repeat for more)', append)
    .option('--config <file>', "kube-proxy's configuration: a KubeProxyConfiguration, or the ConfigMap that holds one")
    .option('--service-cluster-ip-range <cidrs>', 'choose cluster IPs from here for Services that have none yet')
    .option('--service-node-port-range <range>', 'choose node ports from here, such as 30000-32767')
    .option('--host-addresses <file>', 'what `ip -j addr` prints on the node: the addresses NodePorts listen on')
    .addOption(
      new Option('--ip-family <family>', 'address families to compile; auto: those the Services and the node use')
        .choices(ipFamilyChoices)
        .default('auto'),
    )
    .option(
      '--kubernetes-version <version>',
      `follow the kube-proxy of this release, ${releaseRange}; auto: the one that the Node names (default: ${newestRelease})`,
    )
    .option(
      '--proxy-mode <mode>',
      'ipvs or iptables (default: as the config says, iptables if it names none, ipvs without a config)',
    )
    .option('--masquerade-all [bool]', 'masquerade all traffic to cluster IPs')
    .option('--cluster-cidr <cidrs>', "the pods' CIDRs: other traffic to cluster IPs is masqueraded")
    .option('--detect-local-mode <mode>', 'ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix')
    .option('--pod-bridge-interface <name>', 'the bridge of the pods, for BridgeInterface')
    .option('--pod-interface-name-prefix <prefix>', "the prefix of the pods' interface names, for InterfaceNamePrefix")
    .option('--nodeport-addresses <cidrs>', 'where NodePorts listen: CIDRs, or the word primary')
    .option('--iptables-masquerade-bit <bit>', 'the bit of the packet mark for masquerading, 0 to 31')
    .option('--iptables-localhost-nodeports [bool]', 'let iptables mode serve NodePorts on 127.0.0.1')
    .option('--ipvs-scheduler <name>', 'rr, wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq, mh, fo, ovf or twos')
    .option('--ipvs-strict-arp [bool]', 'do not answer ARP for addresses on kube-ipvs0')
    .option('--ipvs-exclude-cidrs <cidrs>', 'never remove virtual servers in these CIDRs')
    .option('--ipvs-tcp-timeout <duration>', 'timeout of idle TCP connections, such as 15m')
    .option('--ipvs-tcpfin-timeout <duration>', 'timeout of TCP connections after FIN')
    .option('--ipvs-udp-timeout <duration>', 'timeout of UDP packets')
    .option('--conntrack-max-per-core <number>', 'connections to track for each CPU core; 0 leaves the limit as it is')
    .option('--conntrack-min <number>', 'the least number of connections to track')
    .option('--conntrack-tcp-timeout-established <duration>', 'timeout of idle TCP connections in conntrack')
    .option('--conntrack-tcp-timeout-close-wait <duration>', 'timeout of TCP connections in state CLOSE_WAIT')
    .option('--conntrack-tcp-be-liberal [bool]', 'also track TCP packets that are out of window')
    .option('--conntrack-udp-timeout <duration>', 'timeout of UDP connections without a reply')
    .option('--conntrack-udp-timeout-stream <duration>', 'timeout of UDP connections with replies')
    .option('--bind-address <ip>', "the node's own address, instead of the Node object's")
    .option('--feature-gates <gates>', "kube-proxy's feature gates, such as AllowServiceExternalIPs=false", append)
    .option('--hostname-override <name>', 'the name that kube-proxy uses for the node');
}

/** Collects an option that may be given more than once. */
export function append(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

const nothingNamed: Diagnostic = {
  severity: 'error',
  code: 'no-input',
  text: 'nothing to compile: name manifests with -f, such as -f services.yaml, -f a-folder/ or -f - for stdin',
};

/** A bundle of nothing takes all Services off a node: not what somebody means who names an empty file. */
const nothingFound: Diagnostic = {
  severity: 'error',
  code: 'no-input',
  text: 'nothing to compile: the input holds no objects at all',
};

/** The same bundle comes of manifests without a single Service, as of a chart that renders none: --allow-empty says so. */
const noServices: Diagnostic = {
  severity: 'warning',
  code: 'no-services',
  text: 'the input holds no Services: the compiled rules remove all Services from a node',
};

/** As noServices, but what is missing stands elsewhere. */
const notBuilt: Diagnostic = {
  severity: 'error',
  code: 'no-input',
  text: 'nothing to compile: the input is a Kustomization, which says only where the objects are: run "kustomize build FOLDER | kpc compile -f -"',
};

function describeEmptiness(
  { services, slices, endpoints, nodes, configs, skipped, diagnostics }: Inputs,
  { allowEmpty }: InputOptions,
): readonly Diagnostic[] {
  if (allowEmpty) return [];
  // What could not be read may have been a Service.
  if (services.length > 0 || diagnostics.some(({ severity }) => severity === 'error')) return [];
  const found = [slices, endpoints, nodes, configs].some((objects) => objects.length > 0);
  if (skipped.has('Kustomization')) return [notBuilt];
  return [found || skipped.size > 0 ? noServices : nothingFound];
}

/** Of several configurations none is better than the others, and the order of files must not choose. */
function describeRivals([, ...others]: Inputs['configs']): readonly Diagnostic[] {
  const text = 'the input holds another KubeProxyConfiguration: keep one of them, or name one with --config';
  return others.map(({ source }) => ({ severity: 'error', code: 'duplicate-object', text, place: source.place([]) }));
}

/** Everything read and checked; not to be compiled where a diagnostic is an error. */
export interface LoadedInputs {
  readonly prepared: Prepared;
  readonly version: VersionChoice;
  readonly hostAddresses: readonly Address[] | undefined;
  /** Whether --config or a file of -f holds a configuration of kube-proxy's. */
  readonly configured: boolean;
  /** Which mode was taken and why, where nothing names one. */
  readonly modeNote: Diagnostic | undefined;
  /** Sorted by place. */
  readonly diagnostics: readonly Diagnostic[];
  /** The files read, by the names that diagnostics give them. */
  readonly files: Inputs['files'];
}

/** Reads all files that the options name, and says all that is wrong with them. */
export async function loadInputs(options: InputOptions, terminal: Terminal): Promise<LoadedInputs> {
  const sources = options.file ?? [];
  const stdin = [...sources, options.config].includes('-') ? await terminal.readStdin() : undefined;
  const inputs = readInputs(sources, { stdin, exclude: options.exclude });
  const config = options.config === undefined ? undefined : readConfigFile(options.config, stdin);
  const configured = options.config !== undefined || inputs.configs.length > 0;
  const given = options.config === undefined ? inputs.configs[0] : config?.config;
  const version = parseVersionChoice(options.kubernetesVersion);
  const release = startingRelease(
    version.choice,
    inputs.nodes.map(({ object }) => object),
  );
  const { settings, gates, diagnostics: wrongSettings, modeNote } = resolveSettings(given, options, release);
  const { ranges, diagnostics: wrongRanges } = parseAssignmentRanges(options);
  const host = options.hostAddresses === undefined ? undefined : readHostAddresses(options.hostAddresses);
  const prepared = prepare(inputs, settings, gates, ranges, host?.addresses);
  const files = new Map([...inputs.files, ...(config?.file ? [[config.file.name, config.file] as const] : [])]);
  return {
    prepared,
    version: version.choice,
    hostAddresses: host?.addresses,
    configured,
    modeNote: configured && !given ? undefined : modeNote,
    files,
    diagnostics: sortDiagnostics([
      ...(sources.length === 0 ? [nothingNamed] : describeEmptiness(inputs, options)),
      ...(options.config === undefined ? describeRivals(inputs.configs) : []),
      ...describeSkipped(inputs.skipped),
      ...inputs.diagnostics,
      ...(config?.diagnostics ?? []),
      ...version.diagnostics,
      ...wrongSettings,
      ...wrongRanges,
      ...(host?.diagnostics ?? []),
      ...prepared.diagnostics,
    ]),
  };
}

/** Objects of other kinds are no fault, but a user may wonder where they went. */
function describeSkipped(skipped: Inputs['skipped']): readonly Diagnostic[] {
  if (skipped.size === 0) return [];
  const kinds = [...skipped]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([kind, count]) => `${count.toLocaleString('en')} ${count === 1 ? kind : pluralOf(kind)}`);
  return [
    { severity: 'note', code: 'skipped-kinds', text: `ignored (kube-proxy does not read them): ${kinds.join(', ')}` },
  ];
}

/** "Deployments", "NetworkPolicies", "Ingresses", "Services of v2". */
function pluralOf(name: string): string {
  const [kind = '', version] = name.split(' of ', 2);
  return version === undefined ? pluralOfKind(kind) : `${pluralOfKind(kind)} of ${version}`;
}

function pluralOfKind(kind: string): string {
  if (/[^aeiou]y$/.test(kind)) return `${kind.slice(0, -1)}ies`;
  if (/(ss|x|ch|sh)$/.test(kind)) return `${kind}es`;
  return kind.endsWith('s') ? kind : `${kind}s`;
}

export interface HostAddresses {
  readonly addresses: readonly Address[];
  readonly diagnostics: readonly Diagnostic[];
}

/** The addresses in what `ip -j addr` printed, without those that kube-proxy itself put on kube-ipvs0. */
export function readHostAddresses(file: string): HostAddresses {
  const wrong = (text: string): HostAddresses => ({
    addresses: [],
    diagnostics: [
      {
        severity: 'error',
        code: 'bad-host-addresses',
        text: `${text}; write what \`ip -j addr\` prints on the node to a file`,
        place: { file, locate: () => ({ file, line: 1, column: 1 }) },
      },
    ],
  });
  let text: string;
  try {
    text = readNamedFile(file).toString('utf8');
  } catch (error) {
    return wrong(describeError(error));
  }
  const { links, unread } = parseIpAddrJson(text);
  const [first] = unread;
  if (first) return wrong(first.reason);
  const addresses = links
    .filter((link) => link.name !== serviceLink)
    .flatMap((link) => link.addresses.flatMap(({ address }) => parseAddress(address) ?? []));
  return { addresses, diagnostics: [] };
}
