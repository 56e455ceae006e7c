import { conflictText, findConflict } from '../base/odd-texts.ts';
import { quotePrintable } from '../base/printable.ts';
import { readShape } from '../base/json-shape.ts';
import type { Cluster } from '../cluster/model.ts';
import { sortRanges } from '../cluster/service-ranges.ts';
import { emptyState, type KernelState } from '../kernel/state.ts';
import type { UnreadLine } from '../kernel/unread-line.ts';
import { goldenHead } from '../base/file-names.ts';
import type { BundleFiles } from './make-bundle.ts';
import { bundleFileNames, formatVersion, type Manifest } from './manifest.ts';
import { manifestShape } from './manifest-shape.ts';
import { hashHex } from '#hash';
import { readServices } from './services-file.ts';
import { stateFileNames, stateFiles } from './state-files.ts';
import { readNetwork } from './stored-address.ts';

/** A bundle as it was compiled. Items of the state have no origin: files of the tools hold none. */
export interface StoredBundle {
  readonly manifest: Manifest;
  readonly state: KernelState;
  readonly cluster: Cluster;
  /** The text that the state was read from, where it is known. */
  readonly files?: BundleFiles | undefined;
}

/** Why a folder's files are no bundle to be trusted. */
export type BundleProblem =
  | { readonly kind: 'no-manifest' }
  | { readonly kind: 'golden' }
  | { readonly kind: 'bad-manifest'; readonly reason: string }
  | { readonly kind: 'format-version'; readonly found: unknown; readonly known: number }
  | { readonly kind: 'missing-file'; readonly file: string }
  | { readonly kind: 'merge-conflict'; readonly file: string; readonly line: number }
  | { readonly kind: 'extra-file'; readonly file: string }
  | { readonly kind: 'checksum'; readonly file: string; readonly expected: string; readonly found: string }
  | { readonly kind: 'unread-line'; readonly file: string; readonly line: UnreadLine }
  | { readonly kind: 'no-services' }
  | { readonly kind: 'bad-services'; readonly reason: string };

/** A bundle, or all that is wrong with it: nothing of a broken one is to be used. */
export type BundleReading = { readonly kind: 'bundle'; readonly bundle: StoredBundle } | BrokenBundle;

interface BrokenBundle {
  readonly kind: 'broken';
  readonly problems: readonly BundleProblem[];
}

/** The part of a bundle from which everything else in it results. */
export type BundleMeaning = Pick<StoredBundle, 'manifest' | 'cluster'>;

/** Reads a bundle's files (readFolder gives them): checks format version and checksums, then reads each file back. */
export function readBundle(files: BundleFiles): BundleReading {
  const reading = readBundleMeaning(files);
  if (reading.kind === 'broken') return reading;
  const { state, problems } = readState(reading.meaning.manifest, files);
  if (problems.length > 0) return { kind: 'broken', problems };
  return { kind: 'bundle', bundle: { ...reading.meaning, state } };
}

/** Reads the part from which everything else in a bundle results, and checks format version and checksums. */
export function readBundleMeaning(
  files: BundleFiles,
): { readonly kind: 'meaning'; readonly meaning: BundleMeaning } | BrokenBundle {
  const listed = readListed(files);
  if (listed.kind === 'broken') return listed;
  const cluster = readCluster(listed.manifest, files);
  if ('kind' in cluster) return { kind: 'broken', problems: [cluster] };
  return { kind: 'meaning', meaning: { manifest: listed.manifest, cluster } };
}

/** The manifest of a bundle whose files are those that it lists, by their checksums too; undefined where that fails. */
export function readListedManifest(files: BundleFiles): Manifest | undefined {
  const listed = readListed(files);
  return listed.kind === 'listed' ? listed.manifest : undefined;
}

/** A bundle that is known to be one that kpc wrote, of which each part is read when it is asked for. */
export function openBundle(manifest: Manifest, files: BundleFiles): StoredBundle {
  let state: KernelState | undefined;
  let cluster: Cluster | undefined;
  return {
    manifest,
    files,
    get state() {
      return (state ??= readState(manifest, files).state);
    },
    get cluster() {
      return (cluster ??= requireCluster(manifest, files));
    },
  };
}

function requireCluster(manifest: Manifest, files: BundleFiles): Cluster {
  const cluster = readCluster(manifest, files);
  if ('kind' in cluster) throw new TypeError(describeBundleProblem(cluster));
  return cluster;
}

function findConflicts(files: BundleFiles): readonly BundleProblem[] {
  return [...files].flatMap(([file, text]): readonly BundleProblem[] => {
    const line = findConflict(text);
    return line === undefined ? [] : [{ kind: 'merge-conflict', file, line }];
  });
}

/** The manifest, where the other files are those that it lists. */
function readListed(files: BundleFiles): { readonly kind: 'listed'; readonly manifest: Manifest } | BrokenBundle {
  if (!files.has('manifest.json') && files.has(goldenHead)) return { kind: 'broken', problems: [{ kind: 'golden' }] };
  const conflicts = findConflicts(files);
  if (conflicts.length > 0) return { kind: 'broken', problems: conflicts };
  const manifest = readManifest(files.get('manifest.json'));
  if ('kind' in manifest) return { kind: 'broken', problems: [manifest] };
  const problems = checkFiles(manifest, files);
  return problems.length > 0 ? { kind: 'broken', problems } : { kind: 'listed', manifest };
}

function readCluster(manifest: Manifest, files: BundleFiles): Cluster | BundleProblem {
  const text = files.get('services.json');
  if (text === undefined) return { kind: 'no-services' };
  const stored = readServices(text);
  if (typeof stored === 'string') return { kind: 'bad-services', reason: stored };
  return { ...stored, serviceCidrs: readServiceRanges(manifest) };
}

/** The ranges of cluster IPs that a manifest names. */
export function readServiceRanges({ serviceCidrs = [] }: Pick<Manifest, 'serviceCidrs'>): Cluster['serviceCidrs'] {
  return sortRanges(serviceCidrs.map(({ cidr, from }) => ({ network: readNetwork(cidr), from })));
}

function readManifest(text: string | undefined): Manifest | BundleProblem {
  if (text === undefined) return { kind: 'no-manifest' };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // What the parser says quotes the text, and that may be of another file altogether.
    return { kind: 'bad-manifest', reason: 'it is not JSON' };
  }
  if (typeof value !== 'object' || value === null) return { kind: 'bad-manifest', reason: 'it is not a JSON object' };
  const found = 'formatVersion' in value ? value.formatVersion : undefined;
  if (found !== formatVersion) return { kind: 'format-version', found, known: formatVersion };
  const reading = readShape(manifestShape, value);
  return 'value' in reading ? reading.value : { kind: 'bad-manifest', reason: reading.wrong };
}

function checkFiles(manifest: Manifest, files: BundleFiles): readonly BundleProblem[] {
  return bundleFileNames.flatMap((file): readonly BundleProblem[] => {
    const expected = manifest.files[file];
    const text = files.get(file);
    if (expected === undefined) return text === undefined ? [] : [{ kind: 'extra-file', file }];
    if (text === undefined) return [{ kind: 'missing-file', file }];
    const found = hashHex(text);
    return found === expected ? [] : [{ kind: 'checksum', file, expected, found }];
  });
}

function readState(
  manifest: Manifest,
  files: BundleFiles,
): { readonly state: KernelState; readonly problems: readonly BundleProblem[] } {
  const problems: BundleProblem[] = [];
  let state: KernelState = { ...emptyState, ipvsTimeouts: manifest.ipvsTimeouts ?? undefined };
  for (const file of stateFileNames) {
    const text = files.get(file);
    if (text === undefined) continue;
    const read = stateFiles[file].read(text, state);
    ({ state } = read);
    for (const line of read.unread) problems.push({ kind: 'unread-line', file, line });
  }
  return { state, problems };
}

/** What is wrong with a bundle, in one line for people. */
export function describeBundleProblem(problem: BundleProblem): string {
  switch (problem.kind) {
    case 'no-manifest':
      return 'there is no manifest.json: this is not a bundle that kpc compile wrote';
    case 'golden':
      return 'it is a golden, for git, and not to be applied: write the bundle of the same manifests with "kpc compile -o"';
    case 'bad-manifest':
      return `manifest.json cannot be read: ${problem.reason}; compile the bundle again`;
    case 'format-version':
      return `the bundle has ${describeVersion(problem.found)}, but this program reads ${problem.known}: use the same version of both`;
    case 'missing-file':
      return `${problem.file} is missing, which manifest.json lists; compile the bundle again`;
    case 'merge-conflict':
      return `${problem.file}:${problem.line}: ${conflictText}, or compile the bundle again`;
    case 'extra-file':
      return `${problem.file} is not listed in manifest.json; compile the bundle again`;
    case 'checksum':
      return `${problem.file} has changed since it was compiled: its SHA-256 is ${problem.found}, manifest.json says ${problem.expected}`;
    case 'unread-line':
      return `${problem.file}:${problem.line.line}: ${problem.line.reason}`;
    case 'no-services':
      return 'services.json is missing, so the bundle does not say what it is for; compile the bundle again';
    case 'bad-services':
      return `services.json cannot be read: ${problem.reason}; compile the bundle again`;
  }
}

/** It may be anything that JSON can say. */
function describeVersion(found: unknown): string {
  if (typeof found === 'number') return `format version ${found}`;
  return typeof found === 'string'
    ? `format version ${quotePrintable(found)}`
    : 'a format version that is not a number';
}
