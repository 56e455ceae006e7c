import { diagnose, isError } from '../diagnostics/diagnostic.ts';
import { describeError } from '../bundle/errors.ts';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readFolder } from '../bundle/folder.ts';
import { goldenHead } from '../base/file-names.ts';
import { isGoldenFile } from '../bundle/golden-names.ts';
import type { BundleContent } from '../bundle/make-bundle.ts';
import { settingsOf } from '../bundle/manifest.ts';
import type { NodeContext, ServiceRange } from '../cluster/model.ts';
import type { Node, ProxySettings } from '../cluster/objects.ts';
import { modeOfState } from '../kube-proxy/mode-of-state.ts';
import { nftTableName } from '../kube-proxy/nftables.ts';
import { newestRelease, type Release } from '../kube-proxy/releases.ts';
import { parseAddress } from '../kernel/address.ts';
import { families as bothFamilies } from '../kernel/family.ts';
import { findTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import { checkNodes, oneNode } from '../compile/chosen-nodes.ts';
import { chooseNodeName, compileNode, prepareWithRanges, prepareWithSettings } from '../compile/compile-node.ts';
import { hasProxyFlags } from '../kube-proxy/settings/flags.ts';
import { settingsInMode } from '../kube-proxy/settings/values.ts';
import { findNode, holdsFile } from './check-folder.ts';
import { readDumpFiles } from './dump-files.ts';
import { settleVersion, type LoadedInputs } from '../compile/load-texts.ts';
import { loadInputs, type FileOptions } from '../compile/read-texts.ts';

import { checkMode } from '../input/configuration/settings.ts';
import { settleRelease } from './release-of-side.ts';
import { mergeDiagnostics } from '../input/sort-diagnostics.ts';
import { listFolder } from '../input/files/list-files.ts';
import type { Stdin } from '../input/files/load-files.ts';
import {
  sideOfBundle,
  sideOfDump,
  sideOfGolden,
  sideOfManifests,
  unreadable,
  type SideReading,
  type StoredSide,
} from './stored-side.ts';
import { baseChains } from '../kube-proxy/chain-names.ts';

/** The options that shape what manifests compile to. */
export interface SideOptions extends FileOptions {
  readonly node?: string;
}

/** What there is besides a path to find out what it is. */
export interface SideContext {
  /** The node whose bundle is meant of a folder with those of a fleet. */
  readonly node?: string | undefined;
  /** What came through standard input, for the path "-". */
  readonly stdin?: Uint8Array | string | undefined;
}

/** Finds out what a path is: a folder with a manifest.json or a pack is a bundle, and what holds a tool's output a dump. */
export async function readStoredSide(path: string, context: SideContext = {}): Promise<StoredSide> {
  if (path !== '-' && !existsSync(path)) return { kind: 'manifests', name: path };
  try {
    if (path !== '-' && holdsStored(path)) return await readStoredFolder(path);
    if (/\.(?:tgz|tar\.gz)$/.test(path)) {
      const { readPack } = await import('../bundle/pack/pack.ts');
      const packed = await readPack(path);
      if (packed) return sideOfBundle(path, packed);
    }
    const found = readStoredDump([path], context.stdin);
    if (found) return found;
    const node = path === '-' ? undefined : findBundleInside(path);
    if (node === undefined) {
      const dump = path === '-' ? undefined : findDumpInside(path);
      if (dump === undefined) return { kind: 'manifests', name: path };
      return unreadable(diagnose('dump-folder', { path, example: dump }));
    }
    if (context.node !== undefined && !/[/\\]/.test(context.node) && holdsStored(join(path, context.node))) {
      return await readStoredFolder(join(path, context.node));
    }
    return unreadable(diagnose('fleet-folder', { path, example: join(path, node) }));
  } catch (error) {
    return unreadable(diagnose('unreadable', { path, reason: describeError(error) }));
  }
}

/** Whether a folder holds a bundle or a golden. */
function holdsStored(path: string): boolean {
  return holdsFile(path, 'manifest.json') || holdsFile(path, goldenHead);
}

async function readStoredFolder(path: string): Promise<StoredSide> {
  if (holdsFile(path, 'manifest.json')) return sideOfBundle(path, await readFolder(path));
  return sideOfGolden(path, await readFolder(path, isGoldenFile));
}

/** Reads what was taken from one node, be it in several files; undefined where no tool's output is in them. */
export function readStoredDump(
  paths: readonly string[],
  stdin: Uint8Array | string | undefined,
): ReturnType<typeof sideOfDump> | undefined {
  const found = readDumpFiles(paths, stdin);
  return found && sideOfDump(paths.join(', '), found.dump, found.diagnostics);
}

/** The first folder inside a folder that holds a bundle; undefined where manifests are beside it. */
function findBundleInside(path: string): string | undefined {
  if (!statSync(path).isDirectory()) return undefined;
  const found = findNode(path, readdirSync(path).toSorted());
  return found !== undefined && listFolder(path, []).files.length > 0 ? undefined : found;
}

/** The first dump in a folder that holds none of its own and no manifests. */
function findDumpInside(path: string): string | undefined {
  if (!statSync(path).isDirectory() || listFolder(path, []).files.length > 0) return undefined;
  return readdirSync(path)
    .toSorted()
    .map((name) => join(path, name))
    .filter((inside) => statSync(inside, { throwIfNoEntry: false })?.isDirectory() === true)
    .find((inside) => readDumpFiles([inside], undefined) !== undefined);
}

/** Compiles a side that is manifests. What the flags leave open is taken from the other side, to compare like with like. */
export async function compileSide(
  path: string,
  other: StoredSide,
  options: SideOptions,
  readStdin: () => Promise<Stdin>,
): Promise<SideReading> {
  const stored = other.kind === 'bundle' ? other.manifest : undefined;
  const assume = canAssumeBeside(other, options) && options.assume;
  const named = options.node ?? (stored?.node.name || undefined);
  const loaded = await loadInputs(
    { ...options, assume, node: named, file: [path, ...(options.file ?? [])] },
    readStdin,
  );
  if (loaded.diagnostics.some(isError)) return failedReading(loaded, loaded.diagnostics);
  const wanted = settingsLike(other, loaded, options);
  const nodeName = options.node ?? (stored?.node.name || chooseNodeName(undefined, loaded.prepared));
  const node = loaded.prepared.nodes.get(nodeName);
  const hostAddresses = loaded.hostAddresses ?? hostAddressesOf(other, node);
  const wrong = checkNodes(oneNode(nodeName, options.node), { ...loaded.prepared, settings: wanted });
  if (wrong.some(isError)) return failedReading(loaded, [...wrong, ...loaded.diagnostics]);
  const prepared = prepareWithRanges(loaded.prepared, rangesByFlag(other));
  const ipFamily = options.ipFamily === 'auto' && isDualStack(other) ? 'dual' : options.ipFamily;
  const compileBy = (release: Release): BundleContent =>
    compileNode(prepareWithSettings(prepared, { ...wanted, release }), { nodeName, hostAddresses, ipFamily });
  const settled = settleRelease(loaded.version, {
    nodeName,
    node,
    gates: loaded.prepared.gates,
    bundle: stored && settingsOf(stored).release,
    dump: other.kind === 'dump' ? other.reading.side : undefined,
    mode: wanted.mode,
    compileBy: (release) => sideOfManifests(path, compileBy(release)),
  });
  const { gates } = loaded.prepared;
  const refused =
    settled.kind === 'settled' ? checkMode(wanted.mode, { release: settled.release, gates }) : [settled.diagnostic];
  if (settled.kind !== 'settled' || refused.length > 0) {
    return failedReading(loaded, [...wrong, ...refused, ...loaded.diagnostics]);
  }
  const isTaken = wanted !== loaded.prepared.settings;
  const modeFrom = isTaken && other.kind === 'dump' ? 'dump' : loaded.modeNote && !isTaken ? 'nothing' : 'named';
  const reading = readingOf(path, loaded, compileBy(settled.release), modeFrom, settled.reason);
  return { ...reading, diagnostics: mergeDiagnostics(wrong, reading.diagnostics) };
}

/**
 * Whether what is assumed can be the same on the other side. What is in a node comes from its cluster; a bundle may have been
 * compiled by the same assumptions, unless flags say which others.
 */
function canAssumeBeside(other: StoredSide, options: SideOptions): boolean {
  switch (other.kind) {
    case 'manifests':
    case 'unreadable':
      return true;
    case 'dump':
      return false;
    case 'bundle': {
      const { serviceClusterIpRange, serviceNodePortRange, loadBalancerIpRange, assumeEndpoints } = options;
      const flags = [serviceClusterIpRange, serviceNodePortRange, loadBalancerIpRange, assumeEndpoints];
      return (other.manifest?.assigned.length ?? 0) > 0 && flags.every((flag) => flag === undefined);
    }
  }
}

/** A side that cannot be compiled, for what the diagnostics say. */
function failedReading({ files }: LoadedInputs, diagnostics: SideReading['diagnostics']): SideReading {
  return { side: undefined, diagnostics, files, notes: [] };
}

/** The settings of a side that is manifests: where neither they nor the flags set up kube-proxy, those of the other side. */
function settingsLike(other: StoredSide, { configured, prepared }: LoadedInputs, options: SideOptions): ProxySettings {
  const { settings } = prepared;
  if (configured) return settings;
  if (other.kind === 'bundle') {
    return other.manifest && !hasProxyFlags(options) ? settingsOf(other.manifest) : settings;
  }
  const mode = other.kind === 'dump' ? modeOfState(other.dump.state) : undefined;
  if (mode === undefined || options.proxyMode !== undefined) return settings;
  return { ...settingsInMode(settings, mode, options), release: settings.release };
}

/** The ranges of cluster IPs that a bundle took from a flag. */
function rangesByFlag(other: StoredSide): readonly ServiceRange[] {
  if (other.kind !== 'bundle' || !other.manifest) return [];
  const ranges = other.reading.side?.services?.cluster.serviceCidrs ?? [];
  return ranges.filter(({ from }) => from === '--service-cluster-ip-range');
}

function isDualStack(other: StoredSide): boolean {
  if (other.kind === 'bundle') return other.manifest?.families.length === 2;
  return other.kind === 'dump' && hasBothFamilies(other.dump.state);
}

/** Whether a kube-proxy works on both families of a node: it makes this chain before all others, or a table. */
function hasBothFamilies({ iptables, nftables }: KernelState): boolean {
  return bothFamilies.every(
    (family) =>
      iptables[family]?.nat?.has(baseChains.postrouting) === true ||
      findTable(nftables, family, nftTableName) !== undefined,
  );
}

/** Compiles what -f names. */
export async function compileInputs(options: SideOptions, readStdin: () => Promise<Stdin>): Promise<SideReading> {
  return compileLoaded(await loadInputs(options, readStdin), options);
}

/** Compiles for one node what was read. */
export function compileLoaded(read: LoadedInputs, options: Pick<SideOptions, 'node' | 'ipFamily'>): SideReading {
  const nodeName = chooseNodeName(options.node, read.prepared);
  const loaded = settleVersion(read, nodeName);
  const { files, prepared, hostAddresses, modeNote } = loaded;
  const hasErrors = loaded.diagnostics.some(isError);
  const wrong = hasErrors ? [] : checkNodes(oneNode(nodeName, options.node), prepared);
  if (hasErrors || wrong.some(isError)) {
    return { side: undefined, diagnostics: [...wrong, ...loaded.diagnostics], files, notes: [] };
  }
  const content = compileNode(prepared, { nodeName, hostAddresses, ipFamily: options.ipFamily });
  const reading = readingOf('-f', loaded, content, modeNote ? 'nothing' : 'named', undefined);
  return {
    ...reading,
    diagnostics: [...(modeNote ? [modeNote] : []), ...mergeDiagnostics(wrong, reading.diagnostics)],
  };
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
  /** Why this release, where nothing but what was read says so. */
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
 * The addresses of the node itself, as the other side knows them. They are not to hide that the Node object in the manifests has
 * got another address since, or that the other side is another node.
 */
function hostAddressesOf(other: StoredSide, node: Node | undefined): NodeContext['hostAddresses'] | undefined {
  const known = knownAddresses(other);
  const own = (node?.addresses ?? []).filter(({ type }) => type === 'InternalIP');
  const isOfNode = own.every(({ address: text }) => known?.some((each) => each.text === parseAddress(text)?.text));
  return isOfNode ? known : undefined;
}

function knownAddresses(other: StoredSide): NodeContext['hostAddresses'] | undefined {
  switch (other.kind) {
    case 'bundle': {
      const known = other.manifest?.node.hostAddresses ?? [];
      return known.length > 0 ? known.flatMap((text) => parseAddress(text) ?? []) : undefined;
    }
    case 'dump':
      return other.hostAddresses;
    case 'unreadable':
    case 'manifests':
      return undefined;
  }
}
