import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { goldenHead } from '../base/file-names.ts';
import { conflictText, findConflict } from '../base/odd-texts.ts';
import { describeError, hasCode } from '../base/system-errors.ts';
import { isBundleFile, listStrangers, readFolder } from '../bundle/folder.ts';
import { isGoldenFile, isGoldenServiceFile } from '../bundle/golden.ts';
import type { BundleFiles } from '../bundle/make-bundle.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { readAnyFile } from './dump-files.ts';

/** What --check is to compare with: the bundle of one node, or a folder with those of many. */
export type Expected = { readonly kind: 'bundle' } | { readonly kind: 'fleet'; readonly nodes: number };

/** Why nothing can be compared with a folder; undefined if something can. */
export function checkFolder(folder: string, expected: Expected): Diagnostic | undefined {
  const refuse = (problem: 'missing' | 'no-bundle' | 'one-node') => diagnose('nothing-to-check', { folder, problem });
  try {
    if (!statSync(folder).isDirectory()) return refuse('no-bundle');
    const isFleet = expected.kind === 'fleet';
    if (isFleet && expected.nodes === 0) return undefined;
    const names = readdirSync(folder).toSorted();
    const isGolden = holdsFile(folder, goldenHead);
    if (isGolden || holdsFile(folder, 'manifest.json')) {
      if (isFleet) return refuse('one-node');
      return isGolden || isBundle(folder, names) ? undefined : refuse('no-bundle');
    }
    const node = findNode(folder, names);
    if (node === undefined) return refuse('no-bundle');
    return isFleet
      ? undefined
      : diagnose('nothing-to-check', { folder, problem: 'fleet', example: join(folder, node) });
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return refuse('missing');
    return diagnose('unreadable', { path: folder, reason: describeError(error) });
  }
}

/** Whether a folder holds a file of that name. A node of a fleet may be called manifest.json or golden.json: that is a folder. */
export function holdsFile(folder: string, name: string): boolean {
  const path = join(folder, name);
  return existsSync(path) && !statSync(path).isDirectory();
}

/** A bundle that was edited is still one, as long as something of one is left. */
function isBundle(folder: string, names: readonly string[]): boolean {
  const manifest = readManifest(join(folder, 'manifest.json'));
  return manifest?.dumped !== true && (manifest?.formatVersion !== undefined || names.filter(isBundleFile).length > 1);
}

/** The first folder inside a folder that holds a bundle or a golden, as compile --all-nodes writes one for each node. */
export function findNode(folder: string, names: readonly string[]): string | undefined {
  return names.find(
    (name) =>
      readManifest(join(folder, name, 'manifest.json'))?.formatVersion !== undefined ||
      existsSync(join(folder, name, goldenHead)),
  );
}

/** Whether a folder holds a bundle or a golden of a node, or of many, that programs Services. A damaged one counts as such. */
export function holdsServices(folder: string): boolean {
  return [folder, ...readableNames(folder).map((name) => join(folder, name))].some(programsServices);
}

function programsServices(folder: string): boolean {
  if (holdsFile(folder, goldenHead)) return readableNames(folder).some(isGoldenServiceFile);
  // A bundle that lost its manifest is damaged, too.
  if (!holdsFile(folder, 'manifest.json')) return holdsFile(folder, 'services.json');
  return readManifest(join(folder, 'manifest.json'))?.counts?.servicePorts !== 0;
}

function readableNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

interface AnyManifest {
  readonly formatVersion?: unknown;
  readonly dumped?: unknown;
  readonly counts?: { readonly servicePorts?: unknown } | null;
}

/** Manifests of Kubernetes may be called so too, and have no version of a format. */
function readManifest(path: string): AnyManifest | undefined {
  const file = readAnyFile(path);
  if (file.kind !== 'text') return undefined;
  try {
    const value: unknown = JSON.parse(file.text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** How a folder differs from the bundle that would be written to it. */
export type CheckResult =
  | { readonly kind: 'same' }
  | {
      readonly kind: 'differs';
      readonly files: readonly string[];
      /** Those of the files that no bundle has. */
      readonly strangers: readonly string[];
      /** Those that a bundle has, as they are and as they would be written; undefined for one that is not there. */
      readonly pairs: readonly {
        readonly name: string;
        readonly from: string | undefined;
        readonly to: string | undefined;
      }[];
    }
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Compares the bundle or golden in a folder (old) with a fresh one (new). */
export async function checkBundle(folder: string, fresh: BundleFiles): Promise<CheckResult> {
  let present: BundleFiles;
  let strangers: readonly string[];
  try {
    present = await readFolder(folder, fresh.has(goldenHead) ? isGoldenFile : isBundleFile);
    strangers = await listStrangers(folder);
  } catch (error) {
    return { kind: 'unreadable', reason: describeError(error) };
  }
  for (const [name, text] of present) {
    const line = findConflict(text);
    if (line !== undefined)
      return { kind: 'unreadable', reason: `${name}:${line}: ${conflictText}, or write it again` };
  }
  const names = [...new Set([...fresh.keys(), ...present.keys()])];
  const differing = names.filter((name) => fresh.get(name) !== present.get(name));
  if (differing.length + strangers.length === 0) return { kind: 'same' };
  const pairs = differing.map((name) => ({ name, from: present.get(name), to: fresh.get(name) }));
  return { kind: 'differs', files: [...new Set([...differing, ...strangers])], strangers, pairs };
}
