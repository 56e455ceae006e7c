import { indexCluster } from '../cluster/address-index.ts';
import { findExcess } from '../base/bounds.ts';
import { findConflict } from '../base/odd-texts.ts';
import { anyManifest, manifest as manifestCheck } from '#checks';
import { parseChecked, parseFile } from '../base/json/check.ts';
import type { BundleFault } from '../base/findings/bundle.ts';
import type { Cluster } from '../cluster/model.ts';
import { sortRanges } from '../cluster/service-ranges.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import { goldenHead } from '../base/names.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { behavioursOf } from '../kube-proxy/releases.ts';
import { gatesOfSettings } from '../settings/feature-gates.ts';
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
  readonly snapshot: CompiledSnapshot;
}

/** The result of reading a bundle. No part of a broken bundle may be used. */
export type BundleReading = { readonly kind: 'bundle'; readonly bundle: StoredBundle } | BrokenBundle;

interface BrokenBundle {
  readonly kind: 'broken';
  readonly problems: readonly BundleFault[];
  /** Undefined if the manifest cannot be trusted. */
  readonly manifest?: Manifest | undefined;
}

/** The part of a bundle from which all other files follow. */
export interface BundleMeaning {
  readonly manifest: Manifest;
  readonly cluster: Cluster;
}

const mostFaults = 50;

export function broken(problems: readonly BundleFault[], manifest?: Manifest): BrokenBundle {
  const more = problems.length - mostFaults;
  const shown = more > 1 ? [...problems.slice(0, mostFaults), { problem: 'more', more } as const] : problems;
  return { kind: 'broken', problems: shown, manifest };
}

export function findBroken(problems: readonly BundleFault[], manifest?: Manifest): BrokenBundle | undefined {
  return problems.length > 0 ? broken(problems, manifest) : undefined;
}

/** Checks the format version and the checksums, and then reads each file. `path`: the user's name for the bundle. */
export function readBundle(files: BundleFiles, compile: Compile, path = ''): BundleReading {
  const meaning = readBundleMeaning(files);
  if ('kind' in meaning) return meaning;
  const { manifest } = meaning;
  const { state, problems } = readKernelState(manifest, files);
  const snapshot = snapshotOfBundle(meaning, compile, { name: path, state: () => state });
  return findBroken(problems) ?? { kind: 'bundle', bundle: { manifest, files, snapshot } };
}

interface BundleSource {
  readonly name: string;
  readonly state?: () => KernelState;
  readonly assumed?: AssumedHead;
  readonly edited?: () => readonly string[];
}

/** Returns the snapshot of a bundle or golden. By default, `state` is compiled. A golden records `assumed`, but a bundle does not. */
export function snapshotOfBundle(
  { manifest, cluster }: BundleMeaning,
  compileAny: Compile,
  { name, state, assumed = {}, edited }: BundleSource,
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
    // The files of a bundle do not record origins. If comments do not name the Services, kpc compiles again to label the rules.
    labels: modeFacts[mode].namesServices === 'all' ? undefined : () => compile(cluster),
    assumedNodes: assumed.node ? [node.name] : [],
    isModeAssumed: assumed.mode,
    assumedClusterCIDRs: assumed.clusterCIDRs,
    assumedFamilies: assumed.families,
    behaviours: behavioursOf(settings.release, gatesOfSettings(settings)),
    isAsCompiled: false,
    edited,
  });
}

/** Reads manifest.json and services.json, from which the other files follow. Checks the format version and the checksums. */
export function readBundleMeaning(files: BundleFiles): BundleMeaning | BrokenBundle {
  if (!files.has('manifest.json') && files.has(goldenHead)) return broken([{ problem: 'golden' }]);
  const unfit = findUnfit(files);
  if (unfit) return unfit;
  const manifest = readManifest(files.get('manifest.json'));
  const services = readServicesOf(files);
  if ('value' in manifest && 'value' in services) {
    const cluster = indexCluster({ ...services.value, serviceCidrs: readServiceRanges(manifest.value) });
    return findBroken(checkFiles(manifest.value, files)) ?? { manifest: manifest.value, cluster };
  }
  const unlisted = 'value' in manifest ? checkFiles(manifest.value, files) : manifest.problems;
  return broken([...unlisted, ...('value' in services ? [] : services.problems)]);
}

export function findUnfit(files: BundleFiles): BrokenBundle | undefined {
  const excess = findExcess([...files].map(([file, text]) => ({ file, text })));
  if (excess) return broken([{ file: excess.at.file, problem: 'too-long', of: excess.of, most: excess.most }]);
  return findBroken(
    [...files].flatMap(([file, text]) => {
      const line = findConflict(text);
      return line === undefined ? [] : [{ file, line, problem: 'merge-conflict' }];
    }),
  );
}

function readServicesOf(files: BundleFiles): ReturnType<typeof readServices> {
  const text = files.get('services.json');
  return text === undefined ? { problems: [{ problem: 'no-file', name: 'services.json' }] } : readServices(text);
}

export function readServiceRanges({ serviceCidrs = [] }: Pick<Manifest, 'serviceCidrs'>): Cluster['serviceCidrs'] {
  return sortRanges(serviceCidrs.map(({ cidr, from }) => ({ network: requireNetwork(cidr), from })));
}

function readManifest(
  text: string | undefined,
): { readonly value: Manifest } | { readonly problems: readonly BundleFault[] } {
  if (text === undefined) return { problems: [{ problem: 'no-file', name: 'manifest.json' }] };
  const reading = parseFile(manifestCheck, 'manifest.json', text);
  const version = 'value' in reading ? reading : parseChecked(anyManifest, text);
  if ('wrong' in version || ('value' in version && version.value.formatVersion === formatVersion)) return reading;
  const found = 'value' in version ? version.value.formatVersion : undefined;
  return { problems: [{ problem: 'version', found, reads: formatVersion }] };
}

function checkFiles(manifest: Manifest, files: BundleFiles): readonly BundleFault[] {
  return bundleFileNames.flatMap((name): readonly BundleFault[] => {
    const expected = manifest.files[name];
    const text = files.get(name);
    if (expected === undefined) return text === undefined ? [] : [{ problem: 'stray-file', name }];
    if (text === undefined) return [{ problem: 'no-file', name }];
    const found = hashHex(text);
    return found === expected ? [] : [{ problem: 'changed', name, found, expected }];
  });
}

function readKernelState(manifest: Manifest, files: BundleFiles) {
  const problems: BundleFault[] = [];
  let state: KernelState = { ...emptyState, ipvsTimeouts: manifest.ipvsTimeouts ?? undefined };
  for (const file of stateFileNames) {
    const text = files.get(file);
    if (text === undefined) continue;
    const read = readStateFile(file, text, state);
    ({ state } = read);
    for (const { line, reason } of read.unread) problems.push({ file, line, problem: 'bad-line', reason });
  }
  return { state, problems };
}
