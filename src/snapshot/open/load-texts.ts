import { isSameValue } from '../../base/json/same-value.ts';
import type { Into } from '../../base/findings/files.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { findExcess } from '../../base/bounds.ts';
import { diagnose, isError, type Finding, placeAtLine, wrongValue } from '../../base/findings/finding.ts';
import { isName } from '../../base/names.ts';
import { parseAssignmentRanges, parsePodNetworks, type RangeFlags } from '../../input/configuration/range-flags.ts';
import {
  readConfigText,
  resolveSettings,
  type ConfigFile,
  type GateOptions,
} from '../../input/configuration/read-settings.ts';
import { collectInputs, hasObjects, keyOfObject, type Inputs, type ReadOptions } from '../../input/read-inputs.ts';
import type { UnreadLists } from '../../input/objects/kinds.ts';
import { type Node, fullName } from '../../cluster/objects.ts';
import { type Release, isPreview, newestRelease, parseRelease, releases } from '../../kube-proxy/releases.ts';
import { flagsBeside, ownFields, type ProxyFlags } from '../../settings/table.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import type { LoadedFiles, TextFile } from '../../input/documents/text-file.ts';
import type { Address } from '../../kernel/address.ts';
import {
  assumeCluster,
  describeAssumptions,
  assumesAnything,
  type AskedCluster,
  type Assumptions,
} from './assumptions.ts';
import { prepare, ReadObjects, type Prepared } from './compile-node.ts';
import { findOutermost } from '../../input/files/kustomizations.ts';
import type { ProxyMode } from '../../kube-proxy/modes.ts';
import type { AssignmentRanges } from '../../cluster/assign-addresses.ts';
import { splitOutputs } from '../../dumps/split-outputs.ts';
import { parseIpAddrText } from '../../dumps/read-ip.ts';
import { parseIpAddrJson, type Link } from '../../kernel/link/link.ts';
import { serviceLink } from '../../kube-proxy/ipvs-objects.ts';

export interface InputTexts {
  readonly manifests: LoadedFiles;
  /** kube-proxy's configuration, if it is separate from the manifests. */
  readonly config: TextFile | Finding | undefined;
  /** The node's addresses, or a function that reads each node's addresses from a folder. */
  readonly hostAddresses: HostText | Finding | ReadHosts | undefined;
}

export type ReadHosts = (nodes: readonly string[]) => Hosts;

export interface Hosts {
  readonly addresses: ReadonlyMap<string, readonly Address[]>;
  readonly diagnostics: readonly Finding[];
}

export interface LoadOptions extends ProxyFlags, RangeFlags, GateOptions, AskedCluster {
  /**
   * Whether a result without Services may be written. Undefined if the result is only shown. `of-a-cluster`: the result may be written,
   * with a warning, if the input may be a whole cluster because it has Nodes and nothing that needs Services.
   */
  readonly emptyResult?: 'refused' | 'of-a-cluster' | 'allowed' | 'useless' | undefined;
  readonly into?: Into | undefined;
  readonly kubernetesVersion?: string | undefined;
  readonly namespace?: string | undefined;
  readonly skipInvalid?: boolean | undefined;
  readonly traffic?: boolean | undefined;
  /** The networks for the Pods that kpc assumes for workloads. true (or auto) means the known networks. */
  readonly assumeEndpoints?: string | true | undefined;
  /** Whether to assume what manifests from git lack: addresses, node ports, Pods and Nodes. */
  readonly assume?: boolean | 'by-default' | undefined;
  readonly unread?: UnreadLists | undefined;
  readonly remade?: ReadonlySet<string> | undefined;
  /** The Nodes of the other side of a comparison. Set for a side that has no Nodes. */
  readonly takenNodes?: Inputs['nodes'] | undefined;
  /** The most diagnostics to report with one code in one file. The default number applies if this is unset. */
  readonly mostOfCode?: number | undefined;
}

export interface LoadedInputs extends Prepared {
  readonly texts: InputTexts;
  /** Each node's addresses, if they are read from a folder. Otherwise `hostAddresses` holds the addresses of the only node. */
  readonly hosts: Hosts['addresses'] | undefined;
  readonly modeNote: Finding | undefined;
  readonly version: VersionChoice;
  readonly configured: boolean;
  /** Reads the same input again, as if a flag named this mode. */
  readonly inMode: (mode: ProxyMode) => LoadedInputs;
  /**
   * Reads the same manifests with other kube-proxy settings. `config`: the configuration to use with them. If objects were left out, reads
   * the manifests again, because settings decide which objects are faulty.
   */
  readonly under: (options: LoadOptions, config: InputTexts['config']) => LoadedInputs;
  readonly checkSettings: (release: Release) => readonly Finding[];
  readonly ranges: AssignmentRanges;
  readonly assumedCluster: Pick<Assumptions, 'families' | 'dualStack' | 'nodes'> | undefined;
  readonly inputs: Inputs;
  readonly diagnostics: readonly Finding[];
  readonly files: Inputs['files'];
}

export function loadTexts(texts: InputTexts, options: LoadOptions): LoadedInputs {
  return loadBeside(texts, options, [], 0);
}

/** The most rounds in which faulty objects are left out. Each round may make further objects faulty. */
const mostRounds = 8;

/** Loads the input without the objects that these errors name. Some faults appear only when all objects are combined. */
function loadBeside(
  texts: InputTexts,
  options: LoadOptions,
  uncompiled: readonly Finding[],
  rounds: number,
  given?: ReadObjects,
): LoadedInputs {
  const { assume = false, assumeEndpoints, skipInvalid, takenNodes } = options;
  const pods = parsePodNetworks(assumeEndpoints ?? (assume ? true : undefined));
  const workloads = pods.networks !== undefined;
  const own = given ?? readObjects(texts, { ...chooseReadOptions(options), workloads, uncompiled });
  const objects = takenNodes ? new ReadObjects({ ...own.inputs, nodes: takenNodes }) : own;
  const { inputs } = objects;
  const config = texts.config && readConfigText(texts.config);
  const facts = [...(config?.facts ?? []), ...inputs.facts];
  const { settings: told, gates, diagnostics: wrongSettings, ...read } = loadSettings(inputs, config, facts, options);
  const { ranges, diagnostics: wrongRanges } = parseAssignmentRanges({
    ...(inputs.serviceCidrs.length > 0 ? {} : facts.find(({ ranges: known }) => known)?.ranges),
    ...definedOf(options),
  });
  const { hosts, hostAddresses, diagnostics: wrongHosts } = readHosts(texts, inputs);
  const isConfigured = read.configured || options.clusterCidr !== undefined;
  const known = { settings: told, isConfigured, ranges, podNetworks: pods.networks ?? [] };
  const assumptions = assume ? assumeCluster(inputs, options, known) : undefined;
  const settings =
    assumptions && assumptions.clusterCIDRs.length > 0 ? { ...told, clusterCIDRs: assumptions.clusterCIDRs } : told;
  const { diagnostics: ofCluster, ...prepared } = prepare(objects, settings, gates, {
    ranges,
    hostAddresses,
    assumedNetworks: pods.networks,
    assumptions,
    remade: options.remade,
  });
  const found = skipInvalid && rounds < mostRounds ? findUncompiled(ofCluster, uncompiled) : [];
  if (found.length > 0) return loadBeside(texts, options, [...uncompiled, ...found], rounds + 1);
  return {
    ...read,
    ...prepared,
    texts,
    hosts,
    inMode: (proxyMode) => loadBeside(texts, { ...options, proxyMode }, uncompiled, rounds, own),
    under: (other, settled) => loadBeside({ ...texts, config: settled }, other, [], 0, rounds === 0 ? own : undefined),
    ranges,
    assumedCluster: assumptions && assumesAnything(assumptions, prepared) ? assumptions : undefined,
    files: new Map([...inputs.files, ...(config?.file ? [[config.file.name, config.file] as const] : [])]),
    diagnostics: sortDiagnostics([
      ...describeEmptiness(own.inputs, prepared, ofCluster, options),
      ...describeOptions(options),
      ...diagnoseSkippedKinds(inputs.skipped, workloads),
      ...inputs.diagnostics,
      ...describeConfigurations(inputs, config, options),
      ...wrongSettings,
      ...wrongRanges,
      ...pods.diagnostics,
      ...wrongHosts,
      ...ofCluster.filter(({ code }) => !assumptions || code !== 'assumed-endpoints'),
      ...(assumptions ? describeAssumptions(assumptions, prepared, assume === 'by-default') : []),
    ]),
  };
}

function readObjects({ manifests }: InputTexts, options: ReadOptions): ReadObjects {
  return new ReadObjects(collectInputs(manifests, options));
}

function readHosts({ hostAddresses: listed }: InputTexts, { nodes }: Inputs) {
  if (listed === undefined) return { diagnostics: [] };
  if (typeof listed === 'function') {
    const { addresses: hosts, diagnostics } = listed(
      nodes.flatMap(({ object }) => (object.isWindows ? [] : object.metadata.name)),
    );
    return { hosts, diagnostics };
  }
  const { addresses: hostAddresses, diagnostics } = parseHostAddresses(listed);
  return { hostAddresses, diagnostics };
}

function chooseReadOptions(options: LoadOptions): ReadOptions {
  const { assume = false, assumeEndpoints, emptyResult } = options;
  const isTolerant = assume !== false && assumeEndpoints === undefined;
  return { ...options, isTolerant, isShown: emptyResult === undefined };
}

function loadSettings(
  { configs, nodes }: Inputs,
  config: ConfigFile | undefined,
  facts: ConfigFile['facts'],
  options: LoadOptions,
) {
  const given = config ? config.config : configs[0];
  const known = facts.find(({ configures }) => configures);
  const configured = config !== undefined || configs.length > 0 || known !== undefined;
  // kube-proxy's own configuration overrides values that come from another program's configuration.
  const derived = given && known?.fills ? flagsBeside(known.proxy, given.object) : given ? {} : known?.proxy;
  const flags = { ...derived, ...definedOf(options) };
  const { choice: version, diagnostics: wrongVersion } = parseVersionChoice(options.kubernetesVersion);
  const started = startingRelease(version, nodes);
  const { settings, gates, diagnostics, modeNote } = resolveSettings(given, flags, started);
  return {
    version,
    settings,
    gates,
    configured,
    ownFields: given ? ownFields(given.object) : known?.own,
    modeNote: configured && !given ? noteOfFacts(known, options) : modeNote,
    checkSettings: (release: Release) => [
      ...describePreview(release),
      ...resolveSettings(given, flags, release).diagnostics,
    ],
    diagnostics: [...wrongVersion, ...describePreview(started), ...diagnostics],
  };
}

/** Notes that nothing names a mode. kube-proxy's arguments and other programs' configurations may leave it out. */
function noteOfFacts(known: ConfigFile['facts'][number] | undefined, { proxyMode }: ProxyFlags): Finding | undefined {
  if (known?.proxy.proxyMode !== '' || proxyMode !== undefined) return undefined;
  return diagnose('default-mode', { named: 'configuration' }, known.place);
}

function findRivals({ configs, facts }: Inputs): readonly Finding[] {
  if (configs.length === 0) return findDifferingArguments(facts);
  return configs.slice(1).map(({ source }) => diagnose('duplicate-configuration', {}, source.place([])));
}

/** Reports faults of --config. Also reports configurations that it overrides, unless it makes a side of a comparison. */
function describeConfigurations(inputs: Inputs, config: ConfigFile | undefined, { sideOf }: LoadOptions) {
  if (!config) return findRivals(inputs);
  const others = sideOf === 'configuration' ? [] : inputs.configs;
  const differing = others.filter(({ object }) => !isSameValue(object, config.config?.object));
  const aside = differing.map(({ source }) => diagnose('reading', { problem: 'set-aside' }, source.place([])));
  return [...config.diagnostics, ...aside];
}

function findDifferingArguments(facts: Inputs['facts']): readonly Finding[] {
  const [first, ...others] = facts.filter(({ isObject, configures }) => isObject && configures);
  return others
    .filter(({ proxy }) => !areSameFlags(proxy, first?.proxy))
    .map(({ place }) => diagnose('duplicate-configuration', { isOfArguments: true }, place));
}

function areSameFlags(some: ProxyFlags, others: ProxyFlags = {}): boolean {
  const flags = Object.entries(definedOf(some));
  return (
    flags.length === Object.keys(definedOf(others)).length &&
    flags.every(([key, value]) => others[key as keyof ProxyFlags] === value)
  );
}

function describePreview(release: Release): readonly Finding[] {
  return isPreview(release) ? [diagnose('kubernetes-preview', { release })] : [];
}

/** Returns an error for each object that conflicts with others when kpc compiles them. Leaves out objects that are already left out. */
function findUncompiled(found: readonly Finding[], known: readonly Finding[]): readonly Finding[] {
  const keyOf = ({ place }: Finding): string | undefined => place && keyOfObject(place);
  const errors = new Map(
    found
      .filter(isError)
      .toReversed()
      .map((error) => [keyOf(error), error]),
  );
  for (const key of [undefined, ...known.map(keyOf)]) errors.delete(key);
  return [...errors.values()].toReversed();
}

function definedOf<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}

export function checkNamespace(namespace: string | undefined): readonly Finding[] {
  if (namespace === undefined || isName(namespace, 'label')) return [];
  return [wrongValue('--namespace', namespace, 'label')];
}

function describeOptions({ namespace, takenNodes: nodes = [] }: LoadOptions): readonly Finding[] {
  const names = nodes.map(({ object }) => object.metadata.name);
  return [
    ...checkNamespace(namespace),
    ...(names.length > 0 ? [diagnose('reading', { problem: 'taken-nodes', names })] : []),
  ];
}

function diagnoseSkippedKinds(skipped: Inputs['skipped'], assumes: boolean): readonly Finding[] {
  if (skipped.size === 0) return [];
  const kinds = [...skipped]
    .toSorted(([a, countOfA], [b, countOfB]) => countOfB - countOfA || (a < b ? -1 : 1))
    .map(([kind, count]) => ({ kind, count }));
  return [diagnose('skipped-kinds', { kinds, leavesOutCronJobs: assumes && skipped.has('CronJob') })];
}

/**
 * 'auto' and undefined both mean the release that each node runs. With undefined, a node that names no release gets the newest release that
 * any other node names.
 */
export type VersionChoice = Release | 'auto' | undefined;

/**
 * Parses a release: the value of --kubernetes-version or of a similar flag, or the name of a side. After an error, the choice is undefined.
 */
export function parseVersionChoice(
  text: string | undefined,
  flag = '--kubernetes-version',
  takesAuto = true,
): { readonly choice: VersionChoice; readonly diagnostics: readonly Finding[] } {
  const choice = text === undefined || text === 'auto' ? text : parseRelease(text);
  if (text === undefined || choice !== undefined) return { choice, diagnostics: [] };
  return { choice, diagnostics: [wrongValue(flag, text, takesAuto ? 'release-or-auto' : 'release')] };
}

/** Returns the release for which settings are checked before the node is known: the chosen release, or else the newest one on any node. */
export function startingRelease(choice: VersionChoice, nodes: Inputs['nodes']): Release {
  if (choice !== undefined && choice !== 'auto') return choice;
  const run = new Set(nodes.map(({ object }) => releaseRunBy(object)));
  return releases.findLast((release) => run.has(release)) ?? newestRelease;
}

export function releaseRunBy(node: Node | undefined): Release | undefined {
  return parseRelease(node?.kubernetesVersion ?? '');
}

export function releaseOfNode(
  node: Node | undefined,
  nodeName: string,
  flag = '--kubernetes-version',
): Release | Finding {
  const version = node?.kubernetesVersion ?? '';
  const given = node && (node.assumedAs === undefined ? 'given' : 'assumed');
  const details = { flag, node: nodeName, version, nodeObject: given ?? 'missing' } as const;
  return parseRelease(version) ?? diagnose('bad-kubernetes-version', details);
}

/**
 * Reports that no Service is programmed. Writing a result without Services would remove all Services from a node. This is therefore an
 * error, unless `emptyResult` allows it or the result is only shown.
 */
function describeEmptiness(
  inputs: Inputs,
  prepared: Prepared,
  ofCluster: readonly Finding[],
  { emptyResult, ipFamily, into }: LoadOptions,
): readonly Finding[] {
  const { services, skipped, diagnostics, nodes, pods, workloads } = inputs;
  // An object that cannot be read may be a Service.
  if (emptyResult === 'allowed' || diagnostics.some(isError)) return [];
  const hasApplications = skipped.size > 0 || pods.length > 0 || workloads.length > 0;
  const isOfCluster = emptyResult === 'of-a-cluster' && nodes.length > 0 && (services.length > 0 || !hasApplications);
  const isRefused = emptyResult !== undefined && !isOfCluster;
  const useless = emptyResult === 'useless' ? { isUseless: true as const } : {};
  if (services.length > 0) {
    if (emptyResult === undefined || ofCluster.some(isError)) return [];
    const takesAll = ipFamily === 'auto' || ipFamily === 'dual';
    const isProgrammed = prepared.cluster.servicePorts.some(({ family }) => takesAll || family === ipFamily);
    if (isProgrammed) return [];
    const lacking = prepared.cluster.services.filter(({ skipped: why }) => why === 'no-cluster-ip').map(fullName);
    return [diagnose('nothing-programmed', { services: prepared.services.length, lacking, isRefused, ...useless })];
  }
  const holdsObjects = skipped.size > 0 || hasObjects(inputs);
  const unbuilt = findOutermost([...inputs.files.keys()]);
  if (skipped.has('Kustomization') || (unbuilt !== undefined && !holdsObjects)) {
    const build = { folder: unbuilt, into: into ?? {} };
    return [diagnose('no-input', { problem: 'kustomization', ...build })];
  }
  if (skipped.has('kubeconfig') && skipped.size === 1 && !hasObjects(inputs))
    return [diagnose('no-input', { problem: 'kubeconfig' })];
  if (!holdsObjects) {
    for (const { code, arguments: details, place } of diagnostics)
      if (code === 'unknown-kind') return [diagnose('no-input', { problem: 'unknown-kind', ...details }, place)];
    return [diagnose('no-input', { problem: 'no-objects' })];
  }
  return [diagnose('nothing-programmed', { services: 0, lacking: [], isRefused, ...useless })];
}

/** Refuses a file with one node's addresses if kpc compiles for several nodes. */
export function checkHosts({ texts, hostAddresses }: LoadedInputs, nodes: readonly string[]): readonly Finding[] {
  const { hostAddresses: listed } = texts;
  if (nodes.length < 2 || !hostAddresses || !listed || !('name' in listed)) return [];
  return [diagnose('bad-host-addresses', { problem: 'no-folder', path: listed.name })];
}

export type HostText = Pick<TextFile, 'name' | 'text'>;

/** Reads addresses from `ip -j addr` or `ip addr`, without those on kube-ipvs0. Returns none if a diagnostic reports a fault. */
export function parseHostAddresses(file: HostText | Finding): {
  readonly addresses: readonly Address[];
  readonly diagnostics: readonly Finding[];
} {
  const { links, diagnostics } = parseHostLinks(file);
  const addresses = links
    .filter((link) => link.name !== serviceLink)
    .flatMap((link) => link.addresses.map(({ address }) => address));
  return { addresses, diagnostics };
}

/** Reads links from `ip -j addr` or `ip addr`, including kube-ipvs0. If a diagnostic reports a fault, there are no links. */
export function parseHostLinks(file: HostText | Finding): {
  readonly links: readonly Link[];
  readonly diagnostics: readonly Finding[];
} {
  if ('severity' in file) return { links: [], diagnostics: [file] };
  const excess = findExcess([file]);
  if (excess) {
    const { of, most } = excess;
    return { links: [], diagnostics: [diagnose('too-long', { of, most }, placeAtLine(file.name))] };
  }
  const { links, unread } = parsePrinted(file.text);
  const [first] = unread;
  if (!first) return { links, diagnostics: [] };
  return { links: [], diagnostics: [badHostAddresses(file.name, { problem: 'bad-line', reason: first.reason })] };
}

/** Parses the output of `ip addr` or `ip -j addr`. Any other text is parsed as JSON, so that the JSON parser reports the fault. */
function parsePrinted(text: string): ReturnType<typeof parseIpAddrJson> {
  const printed = splitOutputs(text).outputs.filter(({ kind }) => kind === 'ip addr');
  if (printed.length === 0) return parseIpAddrJson(text);
  const readings = printed.map((output) => parseIpAddrText(output.text));
  return { links: readings.flatMap(({ links }) => links), unread: readings.flatMap(({ unread }) => unread) };
}

export function badHostAddresses(file: string, why: ArgumentsOf<'bad-host-addresses'>): Finding {
  return diagnose('bad-host-addresses', why, placeAtLine(file));
}
