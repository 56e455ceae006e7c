import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { goldenHead } from '../base/file-names.ts';
import { isObject } from '../base/json-shape.ts';
import { conflictText, findConflict } from '../base/odd-texts.ts';
import { readRegularFile } from '../base/read-file.ts';
import { describeError, hasCode } from '../base/system-errors.ts';
import { isBundleFile, listStrangers, readFolder } from '../bundle/folder.ts';
import { isGoldenFile } from '../bundle/golden.ts';
import type { BundleFiles } from '../bundle/make-bundle.ts';
import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';

/** What kpc wrote into a folder: the bundle or golden of one node, or those of many; `example` is one of them. */
export type FolderContent =
  { readonly kind: 'bundle' | 'golden' | 'other' } | { readonly kind: 'fleet'; readonly example: string };

/** Determines what a folder holds from the names in it. Throws if it cannot be read. */
export function lookInto(folder: string): FolderContent {
  if (holdsFile(folder, goldenHead)) return { kind: 'golden' };
  if (holdsFile(folder, 'manifest.json')) return { kind: 'bundle' };
  const nodes = readdirSync(folder).toSorted();
  const example = nodes
    .map((node) => join(folder, node))
    .find((path) => isWritten(readManifest(path)) || holdsFile(path, goldenHead));
  return example === undefined ? { kind: 'other' } : { kind: 'fleet', example };
}

/** Whether a folder holds a file of that name. A node of a fleet may be called manifest.json or golden.json: that is a folder. */
function holdsFile(folder: string, name: string): boolean {
  const path = join(folder, name);
  return existsSync(path) && !statSync(path).isDirectory();
}

/** Why the bundle of one node, or those of a fleet, cannot be compared with a folder; undefined if they can. */
export function checkFolder(folder: string, isFleet: boolean): Diagnostic | undefined {
  const refuse = (problem: 'missing' | 'no-bundle' | 'one-node') => diagnose('nothing-to-check', { folder, problem });
  try {
    const content = lookInto(folder);
    if (content.kind === 'other') return refuse('no-bundle');
    if (content.kind === 'fleet') {
      const { example } = content;
      return isFleet ? undefined : diagnose('nothing-to-check', { folder, problem: 'fleet', example });
    }
    if (isFleet) return refuse('one-node');
    return content.kind === 'golden' || isBundle(folder) ? undefined : refuse('no-bundle');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return refuse('missing');
    if (hasCode(error, 'ENOTDIR')) return refuse('no-bundle');
    return diagnose('unreadable', { path: folder, reason: describeError(error) });
  }
}

/** An edited bundle is still a bundle, as long as part of one is left. */
function isBundle(folder: string): boolean {
  const manifest = readManifest(folder);
  return manifest === undefined ? readdirSync(folder).filter(isBundleFile).length > 1 : isWritten(manifest);
}

/** Whether kpc compile wrote a manifest.json: a Kubernetes manifest may have that name too, and a dump has one. */
function isWritten(manifest: JsonObject | undefined): boolean {
  return manifest?.['formatVersion'] !== undefined && manifest['dumped'] !== true;
}

/** The manifest.json of a folder; undefined if it is missing or not a JSON object. */
function readManifest(folder: string): JsonObject | undefined {
  try {
    const manifest: unknown = JSON.parse(readRegularFile(join(folder, 'manifest.json')).toString('utf8'));
    return isObject(manifest) ? manifest : undefined;
  } catch {
    return undefined;
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

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
