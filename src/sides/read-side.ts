import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { goldenHead } from '../base/file-names.ts';
import { describeError } from '../base/system-errors.ts';
import { readFolder } from '../bundle/folder.ts';
import { isGoldenFile } from '../bundle/golden-names.ts';
import type { BundleContent } from '../bundle/make-bundle.ts';
import type { NodeContext } from '../cluster/model.ts';
import type { Node, ProxySettings } from '../cluster/objects.ts';
import { checkNodes, oneNode } from '../compile/chosen-nodes.ts';
import { chooseNodeName, compileNode, prepareWithRanges, prepareWithSettings } from '../compile/compile-node.ts';
import { settleVersion, type LoadedInputs } from '../compile/load-texts.ts';
import { loadInputs, type FileOptions } from '../compile/read-texts.ts';
import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Side } from '../diff/compared-side.ts';
import { checkMode } from '../input/configuration/resolve-settings.ts';
import { listFolder } from '../input/files/list-files.ts';
import type { Stdin } from '../input/files/load-files.ts';
import { mergeDiagnostics } from '../input/sort-diagnostics.ts';
import { parseAddress } from '../kernel/address.ts';
import { families as bothFamilies } from '../kernel/family.ts';
import { findTable } from '../kernel/nftables/table.ts';
import { settingsInMode, hasProxyFlags } from '../kube-proxy/settings/values.ts';
import { findNode, holdsFile } from './check-folder.ts';
import { readDumpFiles } from './dump-files.ts';
import { settleRelease } from './compare-releases.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { nftTableName } from '../kube-proxy/nft-names.ts';
import { newestRelease, type Release } from '../kube-proxy/releases.ts';
import {
  sideOfBundle,
  sideOfDump,
  sideOfGolden,
  sideOfManifests,
  unreadable,
  type DumpedSide,
  type SideReading,
  type StoredSide,
  type UnreadableSide,
} from './stored-side.ts';

/** The options that shape what manifests compile to. */
export interface SideOptions extends FileOptions {
  readonly node?: string;
}

/** What helps to find out what a path is. */
export interface SideContext {
  /** The node whose bundle is meant of a folder with those of a fleet. */
  readonly node?: string | undefined;
  /** What came through standard input, for the path "-". */
  readonly stdin?: Uint8Array | string | undefined;
}

/** Finds out what a path is: a folder with a manifest.json or a pack is a bundle, and what holds a tool's output a dump. */
export async function readStoredSide(path: string, { node, stdin }: SideContext = {}): Promise<StoredSide> {
  if (path === '-') return readStoredDump([path], stdin) ?? manifests;
  if (!existsSync(path)) return manifests;
  try {
    if (holdsStored(path)) return await readStoredFolder(path);
    if (/\.(?:tgz|tar\.gz)$/.test(path)) {
      const { readPack } = await import('../bundle/pack/pack.ts');
      const packed = await readPack(path);
      if (packed) return sideOfBundle(path, packed);
    }
    const found = readStoredDump([path], stdin);
    if (found) return found;
    if (!statSync(path).isDirectory() || listFolder(path, []).files.length > 0) return manifests;
    const names = readdirSync(path).toSorted();
    const bundle = findNode(path, names);
    if (bundle !== undefined) {
      const isOfFleet = node !== undefined && !/[/\\]/.test(node) && holdsStored(join(path, node));
      if (isOfFleet) return await readStoredFolder(join(path, node));
      return unreadable([diagnose('fleet-folder', { path, example: join(path, bundle) })]);
    }
    const isFolder = (inside: string) => statSync(inside, { throwIfNoEntry: false })?.isDirectory() === true;
    const dump = names
      .map((name) => join(path, name))
      .find((inside) => isFolder(inside) && readDumpFiles([inside], undefined) !== undefined);
    return dump === undefined ? manifests : unreadable([diagnose('dump-folder', { path, example: dump })]);
  } catch (error) {
    return unreadable([diagnose('unreadable', { path, reason: describeError(error) })]);
  }
}

const manifests: StoredSide = { kind: 'manifests' };

/** Whether a folder holds a bundle or a golden. */
function holdsStored(path: string): boolean {
  return holdsFile(path, 'manifest.json') || holdsFile(path, goldenHead);
}

async function readStoredFolder(path: string): Promise<StoredSide> {
  if (holdsFile(path, 'manifest.json')) return sideOfBundle(path, await readFolder(path));
  return sideOfGolden(path, await readFolder(path, isGoldenFile));
}

/** Reads what was taken from one node, in one file or several; undefined if none holds the output of a tool. */
function readStoredDump(paths: readonly string[], stdin: SideContext['stdin']) {
  const found = readDumpFiles(paths, stdin);
  return found && sideOfDump(paths.join(', '), found.dump, found.diagnostics);
}

/** What the files and folders that a command names are, taken together. */
export type NamedInput =
  | { readonly kind: 'manifests' }
  | { readonly kind: 'bundle'; readonly stored: StoredSide & { readonly kind: 'bundle' } }
  /** What was taken from one node, and manifests beside it. */
  | { readonly kind: 'dump'; readonly stored: DumpedSide; readonly manifests: readonly string[] }
  | { readonly kind: 'unreadable'; readonly stored: UnreadableSide }
  /** Things that do not go together, in a sentence. */
  | { readonly kind: 'mixed'; readonly text: string };

/** Finds out by their content what the paths are. Nothing is said of what cannot be read as manifests: their reader does. */
export async function recogniseInputs(paths: readonly string[], context: SideContext): Promise<NamedInput> {
  const others: string[] = [];
  const dumps: string[] = [];
  let dump: DumpedSide | undefined;
  for (const path of paths) {
    const stored = await readUnlessManifests(path, context);
    switch (stored.kind) {
      case 'unreadable':
        return { kind: 'unreadable', stored };
      case 'bundle': {
        const other = paths.find((each) => each !== path);
        if (other === undefined) return { kind: 'bundle', stored };
        const text = `${path} is a bundle: describe it by itself, without ${other}, or compare them with kpc diff`;
        return { kind: 'mixed', text };
      }
      case 'dump':
        dump ??= stored;
        dumps.push(path);
        break;
      case 'manifests':
        others.push(path);
        break;
    }
  }
  if (!dump) return { kind: 'manifests' };
  // Several files that were taken from one node are one dump.
  const stored = (dumps.length > 1 && readStoredDump(dumps, context.stdin)) || dump;
  return stored.kind === 'dump' ? { kind: 'dump', stored, manifests: others } : { kind: 'unreadable', stored };
}

/** What is wrong with paths of which one is something else than manifests; undefined where each may be some. */
export async function describeNoManifests(
  paths: readonly string[],
  context: SideContext,
): Promise<Diagnostic | undefined> {
  for (const path of paths) {
    const stored = await readUnlessManifests(path, context);
    if (stored.kind === 'unreadable') return stored.reading.diagnostics[0];
    if (stored.kind !== 'manifests') return diagnose('no-manifests', { what: stored.kind, path });
  }
  return undefined;
}

/** Manifests are large, and their names show what they are. */
async function readUnlessManifests(path: string, context: SideContext): Promise<StoredSide> {
  const isNamed = path !== '-' && /\.ya?ml$/i.test(path) && existsSync(path) && !statSync(path).isDirectory();
  return isNamed ? manifests : readStoredSide(path, context);
}

/** Compiles a side that is manifests. What the flags leave open is taken from the other side, to compare like with like. */
export async function compileSide(
  path: string,
  other: StoredSide,
  options: SideOptions,
  readStdin: () => Promise<Stdin>,
): Promise<SideReading> {
  const like = other.kind === 'manifests' ? undefined : other.reading.side;
  const likeNode = like?.services?.node;
  const named = options.node ?? (likeNode?.name || undefined);
  const assume = canAssumeBeside(like, options) && options.assume;
  const loaded = await loadInputs(
    { ...options, assume, node: named, file: [path, ...(options.file ?? [])] },
    readStdin,
  );
  if (loaded.diagnostics.some(isError)) return failedReading(loaded, loaded.diagnostics);
  const { gates } = loaded.prepared;
  const wanted = settingsLike(like, loaded, options);
  const nodeName = named ?? chooseNodeName(undefined, loaded.prepared);
  const node = loaded.prepared.nodes.get(nodeName);
  const knownAddresses = other.kind === 'dump' ? other.hostAddresses : likeNode?.hostAddresses;
  const wrong = checkNodes(oneNode(nodeName, options.node), { ...loaded.prepared, settings: wanted });
  if (wrong.some(isError)) return failedReading(loaded, [...wrong, ...loaded.diagnostics]);
  // The ranges of cluster IPs that a bundle took from a flag.
  const ranges = like?.services?.cluster.serviceCidrs.filter(({ from }) => from === '--service-cluster-ip-range') ?? [];
  const prepared = prepareWithRanges(loaded.prepared, ranges);
  const request = {
    nodeName,
    hostAddresses: loaded.hostAddresses ?? hostAddressesOf(knownAddresses, node),
    ipFamily: options.ipFamily === 'auto' && like && isDualStack(like) ? ('dual' as const) : options.ipFamily,
  };
  const compileBy = (release: Release): BundleContent =>
    compileNode(prepareWithSettings(prepared, { ...wanted, release }), request);
  const settled = settleRelease(loaded.version, {
    nodeName,
    node,
    gates,
    like,
    mode: wanted.mode,
    compileBy: (release) => sideOfManifests(path, compileBy(release)),
  });
  const refused =
    settled.kind === 'release' ? checkMode(wanted.mode, { release: settled.release, gates }) : [settled.diagnostic];
  if (settled.kind !== 'release' || refused.length > 0) {
    return failedReading(loaded, [...wrong, ...refused, ...loaded.diagnostics]);
  }
  const isTaken = wanted !== loaded.prepared.settings;
  const modeFrom = isTaken && like?.kind === 'dump' ? 'dump' : loaded.modeNote && !isTaken ? 'nothing' : 'named';
  const reading = readingOf(path, loaded, compileBy(settled.release), modeFrom, settled.reason);
  return { ...reading, diagnostics: mergeDiagnostics(wrong, reading.diagnostics) };
}

/**
 * Whether what is assumed can be the same on the other side. What is in a node comes from its cluster; a bundle may have been
 * compiled by the same assumptions, unless flags say which others.
 */
function canAssumeBeside(like: Side | undefined, options: SideOptions): boolean {
  if (!like) return true;
  const { serviceClusterIpRange, serviceNodePortRange, loadBalancerIpRange, assumeEndpoints } = options;
  const flags = [serviceClusterIpRange, serviceNodePortRange, loadBalancerIpRange, assumeEndpoints];
  return (like.services?.assumed.services.length ?? 0) > 0 && flags.every((flag) => flag === undefined);
}

/** A side that cannot be compiled, for what the diagnostics say. */
function failedReading({ files }: LoadedInputs, diagnostics: SideReading['diagnostics']): SideReading {
  return { side: undefined, diagnostics, files, notes: [] };
}

/** The settings of a side that is manifests: where neither they nor the flags set up kube-proxy, those of the other side. */
function settingsLike(
  like: Side | undefined,
  { configured, prepared: { settings } }: LoadedInputs,
  options: SideOptions,
): ProxySettings {
  if (configured || !like) return settings;
  if (like.services) return hasProxyFlags(options) ? settings : like.services.settings;
  const mode = modeOfState(like.state);
  if (mode === undefined || options.proxyMode !== undefined) return settings;
  return { ...settingsInMode(settings, mode, options), release: settings.release };
}

/** Whether a kube-proxy works on both families of a node: it makes this chain before all others, or a table. */
function isDualStack({ kind, families, state: { iptables, nftables } }: Side): boolean {
  if (kind !== 'dump') return families.length === 2;
  return bothFamilies.every(
    (family) =>
      iptables[family]?.nat?.has(baseChains.postrouting) === true ||
      findTable(nftables, family, nftTableName) !== undefined,
  );
}

/**
 * The addresses of the node itself, as the other side knows them. They are not to hide that the Node object in the manifests has
 * got another address since, or that the other side is another node.
 */
function hostAddressesOf(
  known: NodeContext['hostAddresses'] = [],
  node: Node | undefined,
): NodeContext['hostAddresses'] | undefined {
  const own = (node?.addresses ?? []).filter(({ type }) => type === 'InternalIP');
  const isOfNode = own.every(({ address: text }) => known.some((each) => each.text === parseAddress(text)?.text));
  return isOfNode && known.length > 0 ? known : undefined;
}

/** Compiles what -f names. */
export async function compileInputs(options: SideOptions, readStdin: () => Promise<Stdin>): Promise<SideReading> {
  return compileLoaded(await loadInputs(options, readStdin), options);
}

/** Compiles for one node what was read. */
export function compileLoaded(read: LoadedInputs, options: Pick<SideOptions, 'node' | 'ipFamily'>): SideReading {
  const nodeName = chooseNodeName(options.node, read.prepared);
  const loaded = settleVersion(read, nodeName);
  const { prepared, hostAddresses, modeNote } = loaded;
  const hasErrors = loaded.diagnostics.some(isError);
  const wrong = hasErrors ? [] : checkNodes(oneNode(nodeName, options.node), prepared);
  if (hasErrors || wrong.some(isError)) return failedReading(loaded, [...wrong, ...loaded.diagnostics]);
  const content = compileNode(prepared, { nodeName, hostAddresses, ipFamily: options.ipFamily });
  const reading = readingOf('-f', loaded, content, modeNote ? 'nothing' : 'named', undefined);
  const diagnostics = mergeDiagnostics(wrong, reading.diagnostics);
  return { ...reading, diagnostics: [...(modeNote ? [modeNote] : []), ...diagnostics] };
}

/** Where the mode of manifests is from. */
const modeReasons = {
  named: '',
  nothing: ' (nothing names a mode)',
  dump: " (the dump's; other settings by flags and defaults)",
} as const;

function readingOf(
  name: string,
  { diagnostics, files, inputs }: LoadedInputs,
  compiled: BundleContent,
  modeFrom: keyof typeof modeReasons,
  /** Why this release, if nothing but what was read says so. */
  reason: string | undefined,
): SideReading {
  const { node, settings, families } = compiled;
  const where = node.name === '' ? 'any node' : `node ${node.name}`;
  const mode = `mode ${settings.mode}${modeReasons[modeFrom]}`;
  const why = reason === undefined ? '' : ` (${reason})`;
  const release = settings.release === newestRelease && why === '' ? '' : `, Kubernetes ${settings.release}${why}`;
  return {
    side: sideOfManifests(name, compiled),
    diagnostics,
    files,
    inputs,
    notes: [`${name}: manifests, compiled for ${where}, ${mode}, ${families.join(' and ')}${release}`],
  };
}

/**
 * Reads the Services of manifests, which lend their names to a dump; `cluster` is undefined if the manifests have errors.
 * What else there is to say of them does not matter here.
 */
export async function readNames(options: FileOptions, readStdin: () => Promise<Stdin>) {
  const { diagnostics, files, prepared } = await loadInputs(options, readStdin);
  const errors = diagnostics.filter(isError);
  return { cluster: errors.length > 0 ? undefined : prepared.cluster, diagnostics: errors, files };
}
