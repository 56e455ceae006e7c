import { describeError } from '../bundle/errors.ts';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { nodeOfBundle } from '../bundle/bundle-node.ts';
import { readFolder } from '../bundle/folder.ts';
import type { BundleContent } from '../bundle/make-bundle.ts';
import type { Manifest } from '../bundle/manifest.ts';
import { settingsOf } from '../bundle/manifest.ts';
import { describeBundleProblem, readBundle } from '../bundle/read-bundle.ts';
import type { Diagnostic } from '../cluster/diagnostic.ts';
import type { NodeContext } from '../cluster/model.ts';
import type { Node, ProxySettings } from '../cluster/objects.ts';
import type { Dump } from '../diff/read-dump.ts';
import type { Side } from '../diff/side.ts';
import { coverAll } from '../diff/side.ts';
import type { ProxyFlags } from '../input/proxy-flags.ts';
import { serviceLink } from '../kube-proxy/link.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { modeFacts, type ProxyMode } from '../kube-proxy/modes.ts';
import { nftTableName } from '../kube-proxy/nftables.ts';
import type { Release } from '../kube-proxy/releases.ts';
import { newestRelease } from '../kube-proxy/releases.ts';
import { parseAddress } from '../kernel/address.ts';
import { families as bothFamilies } from '../kernel/family.ts';
import { findTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import { checkNodes } from '../compile/check-node.ts';
import {
  chooseNodeName,
  compileNode,
  compileState,
  prepareWithRanges,
  prepareWithSettings,
} from '../compile/compile-node.ts';
import { findNode } from './check-folder.ts';
import type { DumpReading } from './dump-files.ts';
import { readDumpFiles } from './dump-files.ts';
import type { LoadedInputs } from '../compile/load-texts.ts';
import type { FileOptions } from '../compile/read-texts.ts';
import { loadInputs } from '../compile/read-texts.ts';
import { checkMode, settleVersion } from '../compile/kubernetes-version.ts';
import { settleRelease } from './release-of-side.ts';
import type { Stdin } from '../input/load-files.ts';

/** A side that was read, with what is to be said of it; undefined where it cannot be used. */
export interface SideReading {
  readonly side: Side | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** The manifests that were read, by the names that diagnostics give them. */
  readonly files: LoadedInputs['files'];
  /** What was read as what, for people. */
  readonly notes: readonly string[];
}

const noFiles: LoadedInputs['files'] = new Map();

/** The options that shape what manifests compile to. */
export interface SideOptions extends FileOptions {
  readonly node?: string;
}

/** A bundle or dump, which need nothing else to be read, or the name of manifests that are yet to be compiled. */
export type StoredSide =
  | { readonly kind: 'bundle'; readonly reading: SideReading; readonly manifest: Manifest | undefined }
  | {
      readonly kind: 'dump';
      readonly reading: SideReading;
      readonly dump: Dump;
      /** The node's own addresses; undefined where the dump does not tell them. */
      readonly hostAddresses: NodeContext['hostAddresses'] | undefined;
    }
  | { readonly kind: 'unreadable'; readonly reading: SideReading }
  | { readonly kind: 'manifests'; readonly name: string };

/** What there is besides a path to find out what it is. */
export interface SideContext {
  /** The node whose bundle is meant of a folder with those of a fleet. */
  readonly node?: string | undefined;
  /** What came through standard input, for the path "-". */
  readonly stdin?: Uint8Array | string | undefined;
}

/** Finds out what a path is: a folder with a manifest.json is a bundle, and what holds a tool's output a dump. */
export async function readStoredSide(path: string, context: SideContext = {}): Promise<StoredSide> {
  if (path !== '-' && !existsSync(path)) return { kind: 'manifests', name: path };
  try {
    if (path !== '-' && holdsManifest(path)) return await readBundleSide(path);
    const found = readStoredDump([path], context.stdin);
    if (found) return found;
    const node = path === '-' ? undefined : findBundleInside(path);
    if (node === undefined) return { kind: 'manifests', name: path };
    if (context.node !== undefined && !/[/\\]/.test(context.node) && holdsManifest(join(path, context.node))) {
      return await readBundleSide(join(path, context.node));
    }
    const help = `name the folder of one node, such as ${join(path, node)}, or the node with --node`;
    return unreadable('fleet-folder', `${path} holds the bundles of a fleet: ${help}`);
  } catch (error) {
    return unreadable('unreadable', `${path} cannot be read: ${describeError(error)}`);
  }
}

/** Reads what was taken from one node, be it in several files; undefined where no tool's output is in them. */
export function readStoredDump(
  paths: readonly string[],
  stdin: Uint8Array | string | undefined,
): (StoredSide & { readonly kind: 'dump' | 'unreadable' }) | undefined {
  const found = readDumpFiles(paths, stdin);
  if (!found) return undefined;
  const { dump, diagnostics } = found;
  const name = paths.join(', ');
  const reading = readDumpSide(name, found);
  const isRefused = dump.files.length === 0 && dump.faults.some(({ kind }) => kind === 'refused');
  if (!isRefused) return { kind: 'dump', dump, reading, hostAddresses: hostAddressesOfDump(dump) };
  // One sentence says what to print instead.
  const errors = diagnostics.map((each) =>
    each.code === 'unread-output' ? { ...each, severity: 'error' as const } : each,
  );
  return { kind: 'unreadable', reading: { side: undefined, diagnostics: errors, files: noFiles, notes: [] } };
}

/** Not so where manifest.json is a folder: a node of a fleet may be called that. */
function holdsManifest(path: string): boolean {
  const manifest = join(path, 'manifest.json');
  return existsSync(manifest) && !statSync(manifest).isDirectory();
}

function unreadable(code: string, text: string): StoredSide & { readonly kind: 'unreadable' } {
  const diagnostics: readonly Diagnostic[] = [{ severity: 'error', code, text }];
  return { kind: 'unreadable', reading: { side: undefined, diagnostics, files: noFiles, notes: [] } };
}

/** The first folder inside a folder that holds a bundle. */
function findBundleInside(path: string): string | undefined {
  return statSync(path).isDirectory() ? findNode(path, readdirSync(path).toSorted()) : undefined;
}

async function readBundleSide(path: string): Promise<StoredSide> {
  const result = readBundle(await readFolder(path));
  if (result.kind === 'broken') {
    const diagnostics = result.problems.map((problem): Diagnostic => {
      return { severity: 'error', code: 'bad-bundle', text: `${path}: ${describeBundleProblem(problem)}` };
    });
    return {
      kind: 'bundle',
      manifest: undefined,
      reading: { side: undefined, diagnostics, files: noFiles, notes: [] },
    };
  }
  const { manifest, state, cluster } = result.bundle;
  if (manifest.dumped) return readDumpedBundle(path, manifest, state);
  const node = nodeOfBundle(manifest);
  const { families } = manifest;
  const settings = settingsOf(manifest);
  const side: Side = {
    kind: 'bundle',
    name: path,
    state,
    // Its files hold no origins. Where no comments tell the Services, compiling them again does.
    labels:
      modeFacts[manifest.mode].namesServices === 'all'
        ? undefined
        : compileState(cluster, node, settings, families, undefined),
    coverage: coverAll(),
    families,
    doubts: [],
    services: { cluster, node, settings },
  };
  const where = manifest.node.name === '' ? 'any node' : `node ${manifest.node.name}`;
  const release = settings.release === newestRelease ? '' : `, Kubernetes ${settings.release}`;
  const note = `${path}: a bundle for ${where}, mode ${manifest.mode}, ${families.join(' and ')}${release}`;
  return { kind: 'bundle', manifest, reading: { side, diagnostics: [], files: noFiles, notes: [note] } };
}

/**
 * What kpc-apply dump wrote has a bundle's form, but nobody compiled it. Its modules are those that happen to be loaded,
 * which are not to be compared.
 */
function readDumpedBundle(path: string, manifest: Manifest, state: KernelState): StoredSide {
  // Of a family that has no rules there is none in its files, which is to say that the node has none.
  const coverage = { ...coverAll(), modules: false };
  const side: Side = {
    kind: 'dump',
    name: path,
    state,
    labels: undefined,
    coverage,
    families: bothFamilies,
    doubts: [],
    services: undefined,
  };
  const rules = manifest.families.length === 0 ? 'no rules of kube-proxy' : manifest.families.join(' and ');
  const notes = [`${path}: a dump of ${manifest.node.name}, mode ${manifest.mode}, ${rules}`];
  return {
    kind: 'dump',
    dump: { state, coverage, files: [], faults: [], doubts: [] },
    hostAddresses: manifest.node.hostAddresses.flatMap((text) => parseAddress(text) ?? []),
    reading: { side, diagnostics: [], files: noFiles, notes },
  };
}

function readDumpSide(path: string, { dump, diagnostics }: DumpReading): SideReading {
  const names = [...new Set(dump.files.map((file) => file.name))];
  const read = names.map((name) => describeFile(name, dump.files)).join(', ');
  return {
    side: {
      kind: 'dump',
      name: path,
      state: dump.state,
      labels: undefined,
      coverage: dump.coverage,
      families: bothFamilies,
      doubts: dump.doubts,
      services: undefined,
    },
    diagnostics,
    files: noFiles,
    notes: [`${path}: a dump of a node${read === '' ? ', of which no file could be read' : `: ${read}`}`],
  };
}

/** "node.txt (iptables-save, ipvsadm -Ln)"; the name alone where it says what is in the file. */
function describeFile(name: string, files: Dump['files']): string {
  const kinds = files.filter((file) => file.name === name).map(({ kind }) => kind);
  const [first] = kinds;
  return kinds.length === 1 && first !== undefined && name.startsWith(first) ? name : `${name} (${kinds.join(', ')})`;
}

/** Compiles a side that is manifests. What the flags leave open is taken from the other side, to compare like with like. */
export async function compileSide(
  path: string,
  other: StoredSide,
  options: SideOptions,
  readStdin: () => Promise<Stdin>,
): Promise<SideReading> {
  const loaded = await loadInputs({ ...options, file: [path, ...(options.file ?? [])] }, readStdin);
  if (loaded.diagnostics.some(isError)) {
    return { side: undefined, diagnostics: loaded.diagnostics, files: loaded.files, notes: [] };
  }
  const stored = other.kind === 'bundle' ? other.manifest : undefined;
  const { configured } = loaded;
  let { settings: wanted } = loaded.prepared;
  if (stored && !configured && !hasProxyFlags(options)) wanted = settingsOf(stored);
  const mode = other.kind === 'dump' ? modeOfState(other.dump.state) : undefined;
  if (mode !== undefined && !configured && options.proxyMode === undefined) wanted = inMode(wanted, mode, options);
  const nodeName = options.node ?? (stored?.node.name || chooseNodeName(undefined, loaded.prepared));
  const node = loaded.prepared.nodes.get(nodeName);
  const hostAddresses = loaded.hostAddresses ?? hostAddressesOf(other, node);
  const isDual = stored?.families.length === 2 || (other.kind === 'dump' && hasBothFamilies(other.dump.state));
  const ipFamily = options.ipFamily === 'auto' && isDual ? 'dual' : options.ipFamily;
  const flag = options.node === undefined ? undefined : [options.node];
  const wrong = checkNodes([nodeName], flag, { ...loaded.prepared, settings: wanted });
  const assumed =
    (stored && other.kind === 'bundle' ? other.reading.side?.services?.cluster.serviceCidrs : undefined) ?? [];
  const prepared = prepareWithRanges(
    loaded.prepared,
    assumed.filter(({ from }) => from === '--service-cluster-ip-range'),
  );
  const compileBy = (release: Release): BundleContent =>
    compileNode(prepareWithSettings(prepared, { ...wanted, release }), { nodeName, hostAddresses, ipFamily });
  const settled = wrong.some(isError)
    ? undefined
    : settleRelease(loaded.version, {
        nodeName,
        node,
        gates: loaded.prepared.gates,
        bundle: stored && settingsOf(stored).release,
        dump: other.kind === 'dump' ? other.reading.side : undefined,
        mode: wanted.mode,
        compileBy: (release) => sideOfManifests(path, compileBy(release)),
      });
  const unfit = settled?.kind === 'settled' ? checkMode(wanted, settled.release) : [];
  const refused = [...wrong, ...(settled?.kind === 'unknown' ? [settled.diagnostic] : unfit)];
  if (settled?.kind !== 'settled' || unfit.length > 0) {
    return { side: undefined, diagnostics: [...refused, ...loaded.diagnostics], files: loaded.files, notes: [] };
  }
  const isModeNamed = !loaded.modeNote || wanted !== loaded.prepared.settings;
  const reading = readingOf(path, loaded, compileBy(settled.release), isModeNamed, settled.reason);
  return { ...reading, diagnostics: [...wrong, ...reading.diagnostics] };
}

/** Settings that no configuration names the mode of, in another mode: with what it has for default. */
function inMode(settings: ProxySettings, mode: ProxyMode, { nodeportAddresses }: SideOptions): ProxySettings {
  if (nodeportAddresses !== undefined) return { ...settings, mode };
  return { ...settings, mode, nodePortAddresses: modeFacts[mode].defaultNodePortAddresses };
}

function isError({ severity }: Diagnostic): boolean {
  return severity === 'error';
}

/** Whether a kube-proxy works on both families of a node: it makes this chain before all others, or a table. */
function hasBothFamilies({ iptables, nftables }: KernelState): boolean {
  return bothFamilies.every(
    (family) =>
      iptables[family]?.nat?.has('KUBE-POSTROUTING') === true ||
      findTable(nftables, family, nftTableName) !== undefined,
  );
}

/** Compiles what -f names. */
export async function compileInputs(options: SideOptions, readStdin: () => Promise<Stdin>): Promise<SideReading> {
  const read = await loadInputs(options, readStdin);
  const nodeName = chooseNodeName(options.node, read.prepared);
  const loaded = settleVersion(read, nodeName);
  const { files, prepared, hostAddresses, modeNote } = loaded;
  const hasErrors = loaded.diagnostics.some(isError);
  const flag = options.node === undefined ? undefined : [options.node];
  const wrong = hasErrors ? [] : checkNodes([nodeName], flag, prepared);
  if (hasErrors || wrong.some(isError)) {
    return { side: undefined, diagnostics: [...wrong, ...loaded.diagnostics], files, notes: [] };
  }
  const content = compileNode(prepared, { nodeName, hostAddresses, ipFamily: options.ipFamily });
  const reading = readingOf('-f', loaded, content, modeNote === undefined, undefined);
  return { ...reading, diagnostics: [...wrong, ...(modeNote ? [modeNote] : []), ...reading.diagnostics] };
}

function readingOf(
  name: string,
  { diagnostics, files }: LoadedInputs,
  compiled: BundleContent,
  isModeNamed: boolean,
  /** Why this release, where nothing but what was read says so. */
  reason: string | undefined,
): SideReading {
  const { node, settings, families } = compiled;
  const where = node.name === '' ? 'any node' : `node ${node.name}`;
  const mode = `mode ${settings.mode}${isModeNamed ? '' : ', as nothing names one'}`;
  const why = reason === undefined ? '' : ` (${reason})`;
  const release = settings.release === newestRelease && why === '' ? '' : `, Kubernetes ${settings.release}${why}`;
  return {
    side: sideOfManifests(name, compiled),
    diagnostics,
    files,
    notes: [`${name}: manifests, compiled for ${where}, ${mode}, ${families.join(' and ')}${release}`],
  };
}

/** What was compiled, as a side to compare. */
export function sideOfManifests(name: string, { state, cluster, node, settings, families }: BundleContent) {
  return {
    kind: 'manifests',
    name,
    state,
    labels: undefined,
    coverage: coverAll(),
    families,
    doubts: [],
    services: { cluster, node, settings },
  } as const satisfies Side;
}

/**
 * The addresses of the node itself, as the other side knows them. A bundle's are not to hide that the Node object in the
 * manifests has got another address since.
 */
function hostAddressesOf(other: StoredSide, node: Node | undefined): NodeContext['hostAddresses'] | undefined {
  switch (other.kind) {
    case 'bundle': {
      const known = other.manifest?.node.hostAddresses ?? [];
      const own = (node?.addresses ?? []).filter(({ type }) => type === 'InternalIP');
      const isCurrent = known.length > 0 && own.every(({ address }) => known.includes(address));
      return isCurrent ? known.flatMap((text) => parseAddress(text) ?? []) : undefined;
    }
    case 'dump':
      return other.hostAddresses;
    case 'unreadable':
    case 'manifests':
      return undefined;
  }
}

function hostAddressesOfDump({ coverage, state }: Dump): NodeContext['hostAddresses'] | undefined {
  const links = state.links.filter(({ name }) => name !== serviceLink);
  // ip addr show kube-ipvs0 shows that link alone.
  if (!coverage.links || links.length === 0) return undefined;
  return links.flatMap(({ addresses }) => addresses.map(({ address }) => address));
}

/** The flags of kube-proxy's, all of them: they say how it is set up, and then a bundle beside manifests does not. */
const proxyFlags: { readonly [F in keyof Required<ProxyFlags>]: true } = {
  proxyMode: true,
  masqueradeAll: true,
  clusterCidr: true,
  detectLocalMode: true,
  podBridgeInterface: true,
  podInterfaceNamePrefix: true,
  nodeportAddresses: true,
  iptablesMasqueradeBit: true,
  iptablesLocalhostNodeports: true,
  ipvsScheduler: true,
  ipvsStrictArp: true,
  ipvsExcludeCidrs: true,
  ipvsTcpTimeout: true,
  ipvsTcpfinTimeout: true,
  ipvsUdpTimeout: true,
  hostnameOverride: true,
  bindAddress: true,
  featureGates: true,
  conntrackMaxPerCore: true,
  conntrackMin: true,
  conntrackTcpTimeoutEstablished: true,
  conntrackTcpTimeoutCloseWait: true,
  conntrackTcpBeLiberal: true,
  conntrackUdpTimeout: true,
  conntrackUdpTimeoutStream: true,
};

/** Whether any flag of kube-proxy's was given. */
function hasProxyFlags(options: SideOptions): boolean {
  return Object.keys(proxyFlags).some((name) => options[name as keyof ProxyFlags] !== undefined);
}
