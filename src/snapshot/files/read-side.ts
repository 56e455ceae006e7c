import { existsSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { isStoredFile } from '../../bundle/folder.ts';
import { isGoldenFile } from '../../bundle/golden.ts';
import type { FileOptions } from './read-texts.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { openTrees } from '../../git/revision-paths.ts';
import { disk, type FileTree, type Trees } from '../../input/files/file-tree.ts';
import { isInside, listFolder } from '../../input/files/list-files.ts';
import {
  type Recognised,
  alone,
  manifests,
  sideOfBundle,
  sideOfDump,
  sideOfGolden,
  unknownInFleet,
  unreadable,
} from '../open/stored-side.ts';
import { lookInto, readFolderTexts } from './check-folder.ts';
import { firstOfArchive, readSupportFiles } from './support-files.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { loadFile } from '../../input/files/load-files.ts';
import {
  DumpTexts,
  isDocument,
  mayBeManifest,
  withStrangers,
  type DumpFiles,
  type FoundFile,
  type GivenText,
} from '../open/recognise-texts.ts';
import { decodePrinted, type Decoded } from '../../base/odd-texts.ts';
import { unreadOf } from '../../base/unread.ts';
import { bundleOfPath } from '../../dumps/support-bundles.ts';

export interface SideOptions extends FileOptions {
  readonly node?: string | undefined;
}

type SideContext = Pick<SideOptions, 'node' | 'readStdin'>;

interface SideSource {
  readonly path: string;
  readonly tree: FileTree;
  readonly isFolder: boolean;
  readonly trees: Trees;
  readonly context: SideContext;
}

/** Recognises the kinds of input, in this order. A row returns undefined for input of another kind. Unrecognised input is manifests. */
const kindsOfInput: readonly ((source: SideSource) => Promise<Recognised | undefined>)[] = [
  async ({ path, tree, isFolder }) => (isFolder ? readStoredFolder(path, tree) : undefined),
  recognisePack,
  ({ path, context, trees }) => readStoredDump([path], context, trees),
  readOneOfMany,
];

/** Reads a path on disk or in a git revision. */
export async function readStoredSide(path: string, context: SideContext = {}): Promise<Recognised> {
  const { trees, faults } = await openTrees([path]);
  const fault = faults.get(path);
  if (fault) return unreadable([fault]);
  const tree = trees.get(path) ?? disk;
  if (path !== '-' && !tree.exists(path)) return manifests;
  try {
    const source = { path, tree, isFolder: path !== '-' && tree.isFolder(path), trees, context };
    for (const read of kindsOfInput) {
      const found = await read(source);
      if (found) return found;
    }
    return manifests;
  } catch (error) {
    return unreadable([diagnose('unreadable', { path, reason: unreadOf(error, path) })]);
  }
}

async function readStoredFolder(path: string, tree: FileTree): Promise<Recognised | undefined> {
  switch (lookInto(path, tree).kind) {
    case 'bundle':
      return sideOfBundle(path, await readFolderTexts(path, tree, isStoredFile));
    case 'golden':
      return sideOfGolden(path, await readFolderTexts(path, tree, isGoldenFile));
    case 'fleet':
    case 'other':
      return undefined;
  }
}

async function recognisePack({ path, tree, isFolder }: SideSource): Promise<Recognised | undefined> {
  if (isFolder || !/\.(?:tgz|tar\.gz)$/.test(path)) return undefined;
  const { beginsPack, largestPack, unpack } = await import('../../bundle/pack/pack.ts');
  const first = tree === disk ? await firstOfArchive(path) : undefined;
  const packed = beginsPack(first ?? 'manifest.json') ? await unpack(path, tree.read(path, largestPack)) : undefined;
  return packed && sideOfBundle(path, packed);
}

/** Reads the named node's bundle from a fleet. Reports an error if the fleet lacks it, or if the folder holds several dumps. */
async function readOneOfMany({ path, tree, isFolder, context }: SideSource): Promise<Recognised | undefined> {
  if (!isFolder || listFolder(path, [], tree).files.length > 0) return undefined;
  const { node } = context;
  const content = lookInto(path, tree);
  if (content.kind === 'fleet') {
    const own = node === undefined || /[/\\]/.test(node) ? undefined : tree.join(path, node);
    const found = own !== undefined && tree.exists(own) ? await readStoredFolder(own, tree) : undefined;
    if (found) return found;
    if (node !== undefined) return unreadable([unknownInFleet(node, content.nodes())]);
    return unreadable([diagnose('nodes-folder', { path, example: content.example, of: 'bundles' })]);
  }
  // Links are skipped, as in a support bundle. Otherwise the folder's author could make kpc search any other folder.
  const folders = tree.list(path).filter((entry) => entry.isDirectory());
  for (const example of folders.map(({ name }) => tree.join(path, name)).toSorted()) {
    if (!(await readDumpFiles([example], undefined, new Map([[example, tree]])))) continue;
    return unreadable([diagnose('nodes-folder', { path, example, of: 'dumps' })]);
  }
  return undefined;
}

async function readStoredDump(
  paths: readonly string[],
  { readStdin }: SideContext,
  trees: Trees,
): Promise<Recognised | undefined> {
  const found = await readDumpFiles(paths, paths.includes('-') ? await readStdin?.() : undefined, trees);
  if (!found) return undefined;
  return sideOfDump(paths.join(', '), found.dump, found.diagnostics, found.manifests);
}

/** Classifies paths by their content. Leaves errors in manifests to the code that reads manifests. */
export async function recogniseInputs(paths: readonly string[], context: SideContext): Promise<Recognised> {
  const beside: string[] = [];
  const dumps: string[] = [];
  const folders = new Map<string, AddsTexts>();
  let dump: Recognised | undefined;
  for (const path of paths) {
    const stored = await readUnlessManifests(path, context);
    const other = paths.find((each) => each !== path);
    if (stored.kind === 'bundle' || stored.kind === 'unreadable') {
      return { ...alone(stored, other === undefined ? [] : [{ name: other }]), beside };
    }
    if (stored.kind === 'dump') dump ??= stored;
    if (stored.kind === 'dump' && stored.withMore) folders.set(path, stored.withMore);
    (stored.kind === 'dump' ? dumps : beside).push(path);
  }
  const whole = (dumps.length > 1 ? await joinDumps(dumps, folders, context) : undefined) ?? dump;
  const strangers = await readStrangers(beside, context);
  const names = new Set(strangers.map(({ name }) => name));
  return withStrangers({ ...(whole ?? manifests), beside: beside.filter((path) => !names.has(path)) }, strangers);
}

async function readStrangers(paths: readonly string[], { readStdin }: SideContext): Promise<readonly GivenText[]> {
  const { trees } = await openTrees(paths);
  const unnamed = paths.filter((path) => !mayBeManifest({ name: path, text: '' }));
  const files = unnamed.filter((path) => {
    const tree = treeOf(path, trees);
    return path === '-' || (tree.exists(path) && !tree.isFolder(path));
  });
  const stdin = files.includes('-') ? await readStdin?.() : undefined;
  return files.flatMap((path) => {
    const file = loadFile(path, stdin, trees.get(path));
    return file instanceof TextFile && !mayBeManifest(file) ? [file] : [];
  });
}

type AddsTexts = NonNullable<(Recognised & { readonly kind: 'dump' })['withMore']>;

/** Joins dumps of one node. `folders`: the dumps that kpc-apply wrote. If there is exactly one, all other texts are added to it. */
async function joinDumps(paths: readonly string[], folders: ReadonlyMap<string, AddsTexts>, context: SideContext) {
  const { trees } = await openTrees(paths);
  const [[folder, add] = [], second] = folders;
  if (!add || second) return readStoredDump(paths, context, trees);
  const others = paths.filter((path) => path !== folder);
  const found = await readDumpFiles(others, others.includes('-') ? await context.readStdin?.() : undefined, trees);
  return found && add(found.texts, found.diagnostics);
}

export async function describeNoManifests(
  paths: readonly string[],
  context: SideContext,
): Promise<Finding | undefined> {
  for (const path of paths) {
    const { kind, diagnostics } = await readUnlessManifests(path, context);
    if (kind === 'unreadable') return diagnostics[0];
    if (kind !== 'manifests') return diagnose('no-manifests', { what: kind, path });
  }
  return undefined;
}

/** Reads a path, but skips files that are named like manifests, because these may be large. */
async function readUnlessManifests(path: string, context: SideContext): Promise<Recognised> {
  const isNamed = path !== '-' && /\.ya?ml$/i.test(path) && existsSync(path) && !statSync(path).isDirectory();
  return isNamed ? manifests : readStoredSide(path, context);
}

/**
 * Reads files from one node. `sources`: folders, single files, and - for stdin. Undefined unless a file is, or should be, the output of a
 * tool. The `diagnostics` in the result are about the files.
 */
async function readDumpFiles(
  sources: readonly string[],
  stdin: Uint8Array | string | undefined,
  trees: Trees,
): Promise<DumpFiles | undefined> {
  const found = new DumpTexts();
  for await (const file of findFiles(sources, stdin, trees)) if (!found.add(file)) break;
  return found.read(sources.some((source) => source !== '-' && treeOf(source, trees).isFolder(source)));
}

async function* findFiles(
  sources: readonly string[],
  stdin: Uint8Array | string = '',
  trees: Trees = new Map(),
): AsyncGenerator<FoundFile> {
  const isOneOfMany = sources.length > 1;
  for (const source of sources) {
    const tree = treeOf(source, trees);
    if (source === '-') {
      const file = typeof stdin === 'string' ? ({ kind: 'text', text: stdin } as const) : decodePrinted(stdin);
      yield { name: '-', path: '-', file, isNamed: true };
      continue;
    }
    const collected = tree === disk ? await readSupportFiles(source, tree.isFolder(source)) : undefined;
    if (collected) {
      for (const { path: inside, bytes } of collected) {
        const path = tree.join(source, inside);
        const isManifest = bundleOfPath(inside)?.isManifest === true;
        yield { name: isOneOfMany ? path : inside, path, file: decodePrinted(bytes), isNamed: false, isManifest };
      }
    } else if (tree.isFolder(source)) {
      const listed = tree.list(source).map(({ name }) => name);
      const names = listed.filter((name) => !isDocument.test(name)).toSorted();
      tree.expect(names.map((name) => tree.join(source, name)));
      const root = tree.realPath(source);
      for (const name of names) {
        const path = tree.join(source, name);
        const file = isInside(path, root, tree) ? readAs(path, tree.read) : linkOutside(source);
        yield { name: isOneOfMany ? path : name, path, file, isNamed: false };
      }
    } else {
      const file = readAs(source, tree.readNamed);
      yield { name: isOneOfMany ? source : basename(source), path: source, file, isNamed: true };
    }
  }
}

function treeOf(source: string, trees: Trees): FileTree {
  return trees.get(source) ?? disk;
}

function linkOutside(folder: string): Decoded {
  return { kind: 'none', reason: { problem: 'link-outside', folder } };
}

function readAs(path: string, read: (path: string) => Uint8Array): Decoded {
  try {
    return decodePrinted(read(path));
  } catch (error) {
    return { kind: 'none', reason: unreadOf(error, path) };
  }
}
