import type { BundleFault } from '../../base/findings/bundle.ts';
import { unreadOf } from '../../base/unread.ts';
import { parseJson } from '../../base/bounds.ts';
import { goldenHead } from '../../base/names.ts';
import { isObject, type JsonObject } from '../../base/json/check.ts';
import { findConflict } from '../../base/odd-texts.ts';
import { hasCode } from '../../base/system-errors.ts';
import { isBundleFile, listStrangers, readFolder } from '../../bundle/folder.ts';
import { isGoldenFile, isSameInGolden } from '../../bundle/golden.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { disk, type FileTree } from '../../input/files/file-tree.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';

/** `example`: the path of one bundle or golden in a fleet's folder. `nodes`: the names of all nodes in it. */
export type FolderContent =
  | { readonly kind: 'bundle' | 'golden' | 'other' }
  | { readonly kind: 'fleet'; readonly example: string; readonly nodes: () => readonly string[] };

/** Recognises what a folder holds by its file names, and a fleet also by the content of a manifest. Throws if the folder cannot be read. */
export function lookInto(folder: string, tree: FileTree = disk): FolderContent {
  if (holdsFile(folder, goldenHead, tree)) return { kind: 'golden' };
  if (holdsFile(folder, 'manifest.json', tree)) return { kind: 'bundle' };
  const names = tree
    .list(folder)
    .map(({ name }) => name)
    .toSorted();
  const isOfNode = (name: string): boolean => {
    const path = tree.join(folder, name);
    return isWritten(peekManifest(path, tree)) || holdsFile(path, goldenHead, tree);
  };
  const first = names.find(isOfNode);
  if (first === undefined) return { kind: 'other' };
  return { kind: 'fleet', example: tree.join(folder, first), nodes: () => names.filter(isOfNode) };
}

/** Reports whether a folder holds a file of this name. In a fleet, a node's folder may be named manifest.json or golden.json. */
function holdsFile(folder: string, name: string, tree: FileTree): boolean {
  const path = tree.join(folder, name);
  return tree.exists(path) && !tree.isFolder(path);
}

export function checkFolder(folder: string, isFleet: boolean, tree: FileTree = disk): Finding | undefined {
  const refuse = (problem: 'missing' | 'no-bundle' | 'file' | 'one-node' | 'revision') =>
    diagnose('nothing-to-check', { folder, problem });
  try {
    if (isFleet && tree !== disk) return refuse('revision');
    const content = lookInto(folder, tree);
    if (content.kind === 'other') return refuse('no-bundle');
    if (content.kind === 'fleet') {
      const { example } = content;
      return isFleet ? undefined : diagnose('nothing-to-check', { folder, problem: 'fleet', example });
    }
    if (isFleet) return refuse('one-node');
    return content.kind === 'golden' || isBundle(folder, tree) ? undefined : refuse('no-bundle');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return refuse('missing');
    if (hasCode(error, 'ENOTDIR')) return refuse('file');
    return diagnose('unreadable', { path: folder, reason: unreadOf(error, folder) });
  }
}

function isBundle(folder: string, tree: FileTree): boolean {
  const manifest = peekManifest(folder, tree);
  if (manifest !== undefined) return isWritten(manifest);
  return tree.list(folder).filter(({ name }) => isBundleFile(name)).length > 1;
}

/** Reports whether kpc compile wrote the manifest. A Kubernetes manifest or the manifest of a dump may have the same file name. */
function isWritten(manifest: JsonObject | undefined): boolean {
  return manifest?.['formatVersion'] !== undefined && manifest['dumped'] !== true;
}

/** Returns the name of the node whose bundle or golden is in the folder. Undefined if the files name no node. */
export function nodeOfFolder(folder: string, tree: FileTree = disk): string | undefined {
  const { node } = peekManifest(folder, tree, goldenHead) ?? peekManifest(folder, tree) ?? {};
  const name = isObject(node) ? node['name'] : undefined;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** Reads a manifest without checking it. Undefined if the file is missing or is not a JSON object. */
function peekManifest(folder: string, tree: FileTree, file = 'manifest.json'): JsonObject | undefined {
  try {
    const manifest = parseJson(tree.read(tree.join(folder, file)).toString('utf8'));
    return isObject(manifest) ? manifest : undefined;
  } catch {
    return undefined;
  }
}

export type CheckResult =
  | { readonly kind: 'same'; readonly present: BundleFiles }
  | {
      readonly kind: 'differs';
      readonly files: readonly string[];
      readonly strangers: readonly string[];
      /** Bundle files before and after writing. Undefined on the side where a file does not exist. */
      readonly pairs: readonly {
        readonly name: string;
        readonly from: string | undefined;
        readonly to: string | undefined;
      }[];
    }
  | { readonly kind: 'unreadable'; readonly fault: BundleFault };

export async function checkBundleFolder(
  folder: string,
  fresh: BundleFiles,
  tree: FileTree = disk,
): Promise<CheckResult> {
  let present: BundleFiles;
  let strangers: readonly string[];
  try {
    present = await readFolderTexts(folder, tree, fresh.has(goldenHead) ? isGoldenFile : isBundleFile);
    strangers = tree === disk ? await listStrangers(folder) : [];
  } catch (error) {
    return { kind: 'unreadable', fault: { problem: 'unread', reason: unreadOf(error, folder) } };
  }
  for (const [name, text] of present) {
    const line = findConflict(text);
    if (line !== undefined) return { kind: 'unreadable', fault: { file: name, line, problem: 'merge-conflict' } };
  }
  const names = [...new Set([...fresh.keys(), ...present.keys()])];
  const differing = names.filter((name) => !isSameInGolden(name, present.get(name), fresh.get(name)));
  if (differing.length + strangers.length === 0) return { kind: 'same', present };
  const pairs = differing.map((name) => ({ name, from: present.get(name), to: fresh.get(name) }));
  return { kind: 'differs', files: [...new Set([...differing, ...strangers])], strangers, pairs };
}

export async function readFolderTexts(
  folder: string,
  tree: FileTree,
  isOwn: (name: string) => boolean,
): Promise<BundleFiles> {
  if (tree === disk) return readFolder(folder, isOwn);
  const names = tree.list(folder).flatMap(({ name }) => (isOwn(name) ? [name] : []));
  tree.expect(names.map((name) => tree.join(folder, name)));
  return new Map(names.toSorted().map((name) => [name, tree.read(tree.join(folder, name)).toString('utf8')]));
}
