import { pathWord } from '../base/printable.ts';
import { isNetworks, knownNetworks } from '../input/configuration/range-flags.ts';
import { ipFamilyChoices } from '../snapshot/open/assumptions.ts';
import { newestRelease, releaseRange } from '../kube-proxy/releases.ts';
import { flagRow, type Flag, type FlagFacts, type FlagKind, type OptionsOf } from '../settings/flag.ts';
import { proxyFlags, type ProxyFlags } from '../settings/table.ts';

export { flagRow, isNetworks, knownNetworks, type Flag };

/** Makes a row of `openFlags`. By default, the flag is about compiling and is listed in the help's group "Input:". */
function input<Kind extends FlagKind, const Usage extends string>(
  kind: Kind,
  usage: Usage,
  help: string,
  facts: FlagFacts = {},
) {
  return flagRow(kind, usage, help, { group: 'input', needs: 'manifests', ...facts });
}

const rows = [
  input('list', '-f, --file <path>', 'manifests: a file, a folder, or - for stdin (repeat for more)', {
    group: undefined,
    path: 'read',
    needs: 'none',
  }),
  input(
    'list',
    '--exclude <pattern>',
    'leave out files in folders, by a pattern as in .gitignore (repeat for more)',
    {},
  ),
  input('on', '--render', 'render inputs that are charts or kustomizations, with helm template or kubectl kustomize', {
    isOfCall: true,
  }),
  input('list', '--render-values <file>', 'a file of values for the charts (repeat for more)', {
    isOfCall: true,
    idle: [{ without: '--render' }],
  }),
  input('on', '--skip-invalid', 'leave out objects with errors, and those defined twice, and continue with the others'),
  input('text', '-n, --namespace <name>', 'the namespace of objects that name none (default: default)', {
    needs: 'manifests-or-packets',
  }),
  input(
    'text',
    '--config <file>',
    "kube-proxy's configuration: a KubeProxyConfiguration, the ConfigMap that holds one, kube-proxy's systemd unit, or the configuration of kubeadm, kind or k3s",
    { path: 'read' },
  ),
  input(
    'text',
    '--kpc-yaml <file>',
    'the file to read flags from, or the word none (default: kpc.yaml in this folder or above)',
    {
      isOfCall: true,
    },
  ),
  input(
    'commas',
    '--service-cluster-ip-range <cidrs>',
    'choose cluster IPs from here for Services that have none yet (default: from the ServiceCIDR objects)',
  ),
  input('text', '--service-node-port-range <range>', 'choose node ports from here, such as 30000-32767'),
  input(
    'commas',
    '--load-balancer-ip-range <cidrs>',
    'choose addresses from here for load balancers that have none yet',
  ),
  input(
    'optional',
    '--assume-endpoints [cidrs]',
    "assume ready Pods for workloads, in these networks (default: the Nodes' podCIDRs, or else the cluster CIDR)",
  ),
  input(
    'text',
    '--host-addresses <file>',
    'what `ip -j addr` prints on the node: the addresses that node ports listen on; for several nodes, a folder with NODE.json of each',
    { path: 'read', needs: 'manifests-or-packets' },
  ),
  input('text', '--ip-family <family>', 'address families to compile; auto: those the Services and the node use', {
    choices: ipFamilyChoices,
    usual: 'auto',
  }),
  input(
    'text',
    '--kubernetes-version <version>',
    `follow the kube-proxy of this release, ${releaseRange}; auto: what the Node names (default: auto, else ${newestRelease})`,
    { group: undefined, needs: 'manifests-or-flows' },
  ),
];

const assume = [
  '--assume',
  'assume what manifests from git lack: addresses, node ports, ready Pods and Nodes',
] as const;

/**
 * Returns the flags about input and compiling, in the order of the help. Each flag of `kpc` and each option of the library is a row here,
 * or in `settingTable` if it is kube-proxy's. Commands that show or compare assume what manifests from git lack; commands that program
 * nodes assume it only on request. Commands that only show do not have settings that would change nothing in their output. `changes`: a
 * command's own wording, keyed by flag.
 */
export function openFlags(
  use: 'looks' | 'compares' | 'programs',
  changes: Readonly<Record<string, Partial<Flag>>> = {},
): readonly Flag[] {
  const looks = [
    input('on', ...assume, { usual: 'by-default', isHidden: true }),
    input('off', '--no-assume', 'do not assume what manifests from git lack: addresses, node ports, Pods and Nodes'),
  ];
  const settings = proxyFlags.filter(({ isOfNode }) => use !== 'looks' || !isOfNode);
  const all = [...rows, ...(use === 'programs' ? [input('on', ...assume)] : looks), ...settings];
  return all.map((row) => ({ ...row, ...changes[row.key] }));
}

/** The options for settings that a report about a change may advise to set. */
export const optionsAfter = [
  'nodeportAddresses',
  'featureGates',
  'masqueradeAll',
  'conntrackTcpBeLiberal',
] as const satisfies readonly (keyof ProxyFlags)[];

/**
 * Returns the options before and after a change. The settings that a report advises to set apply only after the change. Otherwise a report
 * would compare two sides that both follow its advice already. `asked`: the words that set these settings.
 */
export function optionsOfChange<Options extends ProxyFlags, Config extends string | { readonly name: string }>({
  toConfig,
  ...options
}: Options & { readonly toConfig?: Config | undefined }) {
  const before = Object.fromEntries(optionsAfter.map((key) => [key, undefined]));
  const after = toConfig === undefined ? {} : ({ config: toConfig, sideOf: 'configuration' } as const);
  const own = Object.fromEntries(optionsAfter.map((key) => [key, options[key] ?? undefined]));
  const words = { ...flagWords(own), '--to-config': toConfig && optionWord(toConfig) };
  const asked = Object.entries(words).filter(([, value]) => value !== undefined);
  return { before, after, asked: asked.flat().join(' ') };
}

/** Returns the name of the side after a change: "nftables (--nodeport-addresses 10.0.0.0/8)". */
export function nameAfter(words: string, asked: string): string {
  return asked === '' ? words : `${words} (${asked})`;
}

const ofFiles = ['file', 'exclude', 'render', 'renderValues', 'kpcYaml'] as const;

/** The library's options for these flags. Leaves out flags that name files. */
export type CommonOptions = ProxyFlags &
  Omit<OptionsOf<(typeof rows)[number]>, (typeof ofFiles)[number] | 'config' | 'hostAddresses'>;

export const openOptions: readonly string[] = openFlags('programs')
  .map(({ key }) => key)
  .filter((key) => !ofFiles.some((name) => name === key));

/** Returns the flags that these options stand for, with their values. The value is undefined for a flag that this call does not pass on. */
export function flagWords(options: object): Readonly<Record<string, string | undefined>> {
  const names = new Map(openFlags('programs').map(({ key, name }) => [key, name]));
  const words = Object.entries(options).flatMap(([key, value]: [string, unknown]) => {
    const name = names.get(key);
    return name === undefined ? [] : [[name, value === undefined ? value : optionWord(value)] as const];
  });
  return Object.fromEntries(words);
}

/** Returns a `kpc trace` command for files with these options. The packet's flags are still to be added. */
export function traceWords(files: readonly string[], options: object): readonly string[] {
  const given = new Map(Object.entries(options));
  const flags = openFlags('looks').flatMap(({ key, name, kind }) => {
    const value: unknown = given.get(key) ?? undefined;
    const isSwitch = kind === 'on' || kind === 'off';
    if (value === undefined || (isSwitch && value !== (kind === 'on'))) return [];
    return isSwitch || value === true ? [name] : [name, optionWord(value)];
  });
  return ['kpc', 'trace', ...files.map(pathWord), ...flags];
}

function optionWord(value: unknown): string {
  return typeof value === 'object' && value !== null && 'name' in value
    ? pathWord(String(value.name))
    : [value].flat().join(',');
}

/** Reports whether a flag has no effect on input that is already compiled. */
export function isOfManifests(needs: Flag['needs']): boolean {
  return needs === 'manifests' || needs === 'manifests-or-packets' || needs === 'manifests-or-flows';
}
