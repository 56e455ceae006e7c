import { indexCluster } from '../cluster/address-index.ts';
import { describeBound, findExcess } from '../base/bounds.ts';
import { conflictText, findConflict } from '../base/odd-texts.ts';
import { anyManifest, manifest as manifestCheck } from '#checks';
import { parseChecked, parseFile } from '../base/json/check.ts';
import type { Cluster } from '../cluster/model.ts';
import { sortRanges } from '../cluster/service-ranges.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import { goldenHead } from '../base/names.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { CompiledSnapshot } from '../snapshot/snapshot.ts';
import type { BundleFiles, Compile } from './make-bundle.ts';
import { formatVersion, nodeOfBundle, requireNetwork, settingsOf, type Manifest } from './manifest.ts';
import type { AssumedHead } from './schemas.ts';
import { readServices } from './services-file.ts';
import { bundleFileNames, readStateFile, stateFileNames } from './state-files.ts';
import { hashHex } from '#hash';

export interface StoredBundle {
  readonly manifest: Manifest;
  readonly files: BundleFiles;
  /** What the files say. */
  readonly snapshot: CompiledSnapshot;
}

/** No part of a broken bundle may be used. */
export type BundleReading = { readonly kind: 'bundle'; readonly bundle: StoredBundle } | BrokenBundle;

interface BrokenBundle {
  readonly kind: 'broken';
  readonly problems: readonly string[];
  /** Undefined if it cannot be trusted. */
  readonly manifest?: Manifest | undefined;
}

/** The part of a bundle that determines the rest. */
export interface BundleMeaning {
  readonly manifest: Manifest;
  readonly cluster: Cluster;
}

/** Undefined if there are no problems. */
export function findBroken(problems: readonly string[], manifest?: Manifest): BrokenBundle | undefined {
  return problems.length > 0 ? { kind: 'broken', problems, manifest } : undefined;
}

/** Checks format version and checksums of readFolder's files, then reads each back. `path`: the user's name for the bundle. */
export function readBundle(files: BundleFiles, compile: Compile, path = ''): BundleReading {
  const meaning = readBundleMeaning(files);
  if ('kind' in meaning) return meaning;
  const { manifest } = meaning;
  const { state, problems } = readKernelState(manifest, files);
  const snapshot = snapshotOfBundle(meaning, compile, { name: path, state: () => state });
  return findBroken(problems) ?? { kind: 'bundle', bundle: { manifest, files, snapshot } };
}

/** `state`: by default compiled. `assumed`: as a golden records it, unlike a bundle. */
export function snapshotOfBundle(
  { manifest, cluster }: BundleMeaning,
  compileAny: Compile,
  { name, state, assumed = {} }: { name: string; state?: () => KernelState; assumed?: AssumedHead },
): CompiledSnapshot {
  const { mode, families, assigned, assumedEndpoints, kpcVersion } = manifest;
  const [node, settings] = [nodeOfBundle(manifest), settingsOf(manifest)];
  const compile = (own: Cluster, on = node) => compileAny(own, on, settings, families);
  return new CompiledSnapshot({
    kind: 'bundle',
    name,
    cluster,
    node,
    settings,
    families,
    assigned,
    assumedEndpoints,
    kpcVersion,
    compile,
    state: state ?? (() => compile(cluster)),
    // A bundle's files hold no origins. If comments do not name the Services, compiling again does.
    labels: modeFacts[mode].namesServices === 'all' ? undefined : () => compile(cluster),
    assumedNodes: assumed.node ? [node.name] : [],
    isModeAssumed: assumed.mode,
    assumedClusterCIDRs: assumed.clusterCIDRs,
    assumedFamilies: assumed.families,
    isAsCompiled: false,
  });
}

/** Reads manifest.json and services.json, which determine the rest; checks format version and checksums. */
export function readBundleMeaning(files: BundleFiles): BundleMeaning | BrokenBundle {
  if (!files.has('manifest.json') && files.has(goldenHead)) return { kind: 'broken', problems: [golden] };
  const unfit = findBroken([...findTooLong(files), ...findMergeConflicts(files, 'compile the bundle again')]);
  if (unfit) return unfit;
  const manifest = readManifest(files.get('manifest.json'));
  if ('version' in manifest) return { kind: 'broken', problems: [manifest.version] };
  const services = readServicesOf(files);
  if ('value' in manifest && 'value' in services) {
    const cluster = indexCluster({ ...services.value, serviceCidrs: readServiceRanges(manifest.value) });
    return findBroken(checkFiles(manifest.value, files)) ?? { manifest: manifest.value, cluster };
  }
  const unlisted = 'value' in manifest ? checkFiles(manifest.value, files) : manifest.problems;
  return { kind: 'broken', problems: [...unlisted, ...('value' in services ? [] : services.problems)] };
}

export function findTooLong(files: BundleFiles): readonly string[] {
  const excess = findExcess([...files].map(([file, text]) => ({ file, text })));
  return excess ? [`${excess.at.file}: the bundle is ${describeBound(excess.of, excess.most)}`] : [];
}

/** Files with merge conflicts, one per line; `remedy`: what to do instead of merging. */
export function findMergeConflicts(files: BundleFiles, remedy: string): readonly string[] {
  return [...files].flatMap(([file, text]) => {
    const line = findConflict(text);
    return line === undefined ? [] : [`${file}:${line}: ${conflictText}, or ${remedy}`];
  });
}

const golden =
  'it is a golden, for git, and not to be applied: write the bundle of the same manifests with "kpc compile -o"';

function readServicesOf(files: BundleFiles): ReturnType<typeof readServices> {
  const text = files.get('services.json');
  if (text !== undefined) return readServices(text);
  return { problems: ['services.json is missing, so the bundle does not say what it is for'] };
}

export function readServiceRanges({ serviceCidrs = [] }: Pick<Manifest, 'serviceCidrs'>): Cluster['serviceCidrs'] {
  return sortRanges(serviceCidrs.map(({ cidr, from }) => ({ network: requireNetwork(cidr), from })));
}

/** `version`: another format's. */
function readManifest(text: string | undefined): ReturnType<typeof parseFile<Manifest>> | { readonly version: string } {
  if (text === undefined)
    return { problems: ['there is no manifest.json: this is not a bundle that kpc compile wrote'] };
  const reading = parseFile(manifestCheck, 'manifest.json', text);
  const version = 'value' in reading ? reading : parseChecked(anyManifest, text);
  if ('wrong' in version || ('value' in version && version.value.formatVersion === formatVersion)) return reading;
  const has = `format version ${'value' in version ? version.value.formatVersion : ''}`;
  return { version: `the bundle has ${has}, but this program reads ${formatVersion}: use the same version of both` };
}

function checkFiles(manifest: Manifest, files: BundleFiles): readonly string[] {
  return bundleFileNames.flatMap((file) => {
    const expected = manifest.files[file];
    const text = files.get(file);
    if (expected === undefined) {
      return text === undefined ? [] : [`${file} is not listed in manifest.json`];
    }
    if (text === undefined) return [`${file} is missing, which manifest.json lists`];
    const found = hashHex(text);
    const what = `${file} has changed since it was compiled`;
    return found === expected ? [] : [`${what}: its SHA-256 is ${found}, manifest.json says ${expected}`];
  });
}

function readKernelState(manifest: Manifest, files: BundleFiles) {
  const problems: string[] = [];
  let state: KernelState = { ...emptyState, ipvsTimeouts: manifest.ipvsTimeouts ?? undefined };
  for (const file of stateFileNames) {
    const text = files.get(file);
    if (text === undefined) continue;
    const read = readStateFile(file, text, state);
    ({ state } = read);
    for (const { line, reason } of read.unread) problems.push(`${file}:${line}: ${reason}`);
  }
  return { state, problems };
}
