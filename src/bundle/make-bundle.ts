import { hashHex } from '#hash';
import { networkFile } from '../base/names.ts';
import { joinText, type FileText } from '../base/chunks.ts';
import { serviceName, type Cluster, type ServicePort, type NodeContext } from '../cluster/model.ts';
import {
  writeManifestNode,
  formatVersion,
  writeSettings,
  writeServiceCidrs,
  type HealthCheck,
  type Manifest,
} from './manifest.ts';
import { stateFiles, type PartTexts, type StateFile, bundleFileNames, type BundleFileName } from './state-files.ts';
import { writeServicePieces, writeServices } from './services-file.ts';
import type { CompiledSnapshot } from '../snapshot/snapshot.ts';
import { isLocalNode } from '../cluster/endpoint-choice.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import type { Family } from '../kernel/address.ts';
import { passingRules } from '../kernel/iptables/iptables.ts';
import type { KernelState } from '../kernel/state.ts';
import { modeFacts, programs, type CountName } from '../kube-proxy/modes.ts';

export type BundleContent = BundleInputs & Pick<CompiledSnapshot, 'state'>;

export type BundleInputs = Pick<
  CompiledSnapshot,
  'cluster' | 'node' | 'settings' | 'families' | 'assigned' | 'kpcVersion'
> &
  Partial<Pick<CompiledSnapshot, 'assumedEndpoints' | 'assumed'>> & {
    readonly dumped?: true | undefined;
    /** The node's links, routes and sysctls as tools print them. Set if the state was read from a node. */
    readonly network?: string | undefined;
  };

/** Compiles Services for a node. Callers pass such a function in, because this folder must not depend on modes. */
export type Compile = (
  cluster: Cluster,
  node: NodeContext,
  settings: ProxySettings,
  families: readonly Family[],
) => KernelState;

/** The texts of a whole bundle by file name. manifest.json comes first. */
export type BundleFiles = ReadonlyMap<string, string>;

export interface Bundle<Text extends FileText = string> {
  readonly manifest: Manifest;
  readonly files: ReadonlyMap<string, Text>;
}

export interface BundleTexts extends PartTexts {
  readonly writeServices: (cluster: Cluster) => FileText;
  digest(name: BundleFileName, text: FileText): string;
}

export const freshTexts: BundleTexts = {
  each: (format) => format,
  writeServices: writeServicePieces,
  digest: (_, text) => hashHex(text),
};

/** Shares texts and checksums among the bundles of many nodes. This only saves time: the bundles are the same without it. */
export class BundleMemo implements BundleTexts {
  readonly writeServices: (cluster: Cluster) => string = memoize(writeServices);
  readonly #parts = new Map<unknown, (part: never) => string>();
  readonly #last = new Map<BundleFileName, { readonly text: FileText; readonly digest: string }>();

  each<Part extends object>(format: (part: Part) => string): (part: Part) => string {
    // The cast is safe, because all results that are stored for a function have the type that this function returns.
    const known = this.#parts.get(format) as ((part: Part) => string) | undefined;
    if (known) return known;
    const remembered = memoize(format);
    this.#parts.set(format, remembered);
    return remembered;
  }

  digest(name: BundleFileName, text: FileText): string {
    const last = this.#last.get(name);
    if (last?.text === text) return last.digest;
    const digest = hashHex(text);
    this.#last.set(name, { text, digest });
    return digest;
  }
}

/** Counts Services and ports that are programmed. A port in both families counts once. The ports must be sorted by Service. */
export function countServices(cluster: Cluster) {
  let services = 0;
  let servicePorts = 0;
  let last: ServicePort | undefined;
  for (const port of cluster.servicePorts) {
    const isSameService = port.namespace === last?.namespace && port.service === last.service;
    const isSamePort = isSameService && port.portName === last?.portName && port.protocol === last.protocol;
    if (!isSameService) services++;
    if (!isSamePort) servicePorts++;
    last = port;
  }
  return { services, servicePorts };
}

function memoize<T extends object, R>(make: (item: T) => R): (item: T) => R {
  const known = new WeakMap<T, { readonly made: R }>();
  return (item) => {
    let entry = known.get(item);
    if (!entry) known.set(item, (entry = { made: make(item) }));
    return entry.made;
  };
}

/** Writes a bundle. Equal content gives equal bytes. For many bundles of a cluster, sharing `texts` saves time. */
export function makeBundle(content: BundleContent, texts: BundleTexts = freshTexts): Bundle {
  return makeBundleOf(content, texts, joinText);
}

/** Like makeBundle, but returns long texts in chunks, so that 30 MB can be hashed and written without being joined. */
export function makeLongBundle(content: BundleContent): Bundle<FileText> {
  return makeBundleOf<FileText>(content, freshTexts, (text) => text);
}

export function joinFiles({ files }: Bundle<FileText>): BundleFiles {
  return new Map([...files].map(([name, text]) => [name, joinText(text)]));
}

function makeBundleOf<Text extends FileText>(
  content: BundleContent,
  texts: BundleTexts,
  take: (text: FileText) => Text,
): Bundle<string | Text> {
  const files = new Map<BundleFileName, Text>();
  for (const name of bundleFileNames) {
    const text = writeFile(name, content, texts);
    if (text !== undefined) files.set(name, take(text));
  }
  const manifest = makeManifest(content, files, texts);
  const manifestText = `${JSON.stringify(manifest, undefined, 2)}\n`;
  return { manifest, files: new Map<string, string | Text>([['manifest.json', manifestText], ...files]) };
}

export function formatFile(name: BundleFileName, content: BundleContent): string | undefined {
  const text = writeFile(name, content, freshTexts);
  return text === undefined ? undefined : joinText(text);
}

function writeFile(
  name: BundleFileName,
  { state, cluster, settings, network }: BundleContent,
  texts: BundleTexts,
): FileText | undefined {
  if (name === 'services.json') return texts.writeServices(cluster);
  if (name === networkFile) return network;
  const file: StateFile = stateFiles[name];
  return programs(settings.mode, file.kind) ? file.format(state, texts) : undefined;
}

function makeManifest(
  content: BundleContent,
  files: ReadonlyMap<BundleFileName, FileText>,
  texts: BundleTexts,
): Manifest {
  const { state, node, settings } = content;
  const { kubeProxyVersion, settings: written } = writeSettings(settings);
  return {
    formatVersion,
    kpcVersion: content.kpcVersion,
    kubeProxyVersion,
    mode: settings.mode,
    dumped: content.dumped,
    node: writeManifestNode(node),
    families: content.families,
    settings: written,
    serviceCidrs: writeServiceRanges(content),
    ipvsTimeouts: state.ipvsTimeouts ?? null,
    healthChecks: countHealthChecks(content.cluster, node, content.families),
    assigned: content.assigned,
    assumedEndpoints: content.assumedEndpoints,
    tools: modeFacts[settings.mode].tools,
    counts: { ...countServices(content.cluster), ...countState(content.state) },
    files: Object.fromEntries([...files].map(([name, text]) => [name, texts.digest(name, text)])),
  };
}

export function writeServiceRanges({ cluster, settings }: BundleContent): Manifest['serviceCidrs'] {
  return programs(settings.mode, 'nftables') ? writeServiceCidrs(cluster) : undefined;
}

/** Leaves out proxy ports if there are none, because most modes never have any. */
export function countState(state: KernelState): { readonly [N in CountName]?: number } {
  const iptables = Object.values(state.iptables).flatMap((tables) => Object.values(tables));
  const chains = iptables.flatMap((table) => [...table.values()]);
  const nftChains = state.nftables.flatMap((table) => [...table.chains.values()]);
  const nftSets = state.nftables.flatMap((table) => [...table.sets.values()]);
  return {
    ...(state.proxyPorts.length > 0 && { proxyPorts: state.proxyPorts.length }),
    virtualServers: state.virtualServers.length,
    realServers: sum(state.virtualServers.map(({ realServers }) => realServers.length)),
    addresses: sum(state.links.map(({ addresses }) => addresses.length)),
    sets: state.sets.length + nftSets.length,
    setEntries: sum([...state.sets.map(({ entries }) => entries.length), ...nftSets.map((set) => set.elements.length)]),
    chains: chains.length + nftChains.length,
    rules: sum(chains.map((chain) => passingRules(chain).length)) + sum(nftChains.map(({ rules }) => rules.length)),
  };
}

function countHealthChecks(cluster: Cluster, node: NodeContext, families: readonly Family[]): readonly HealthCheck[] {
  const checks = new Map<string, HealthCheck>();
  for (const check of cluster.healthChecks) {
    if (!families.includes(check.family)) continue;
    const service = serviceName(check);
    const count = check.readyEndpoints.filter(({ nodeName }) => isLocalNode(nodeName, node)).length;
    const known = checks.get(service)?.localEndpoints;
    checks.set(service, { port: check.port, service, localEndpoints: { ...known, [check.family]: count } });
  }
  return [...checks.values()].sort((a, b) => a.port - b.port);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
