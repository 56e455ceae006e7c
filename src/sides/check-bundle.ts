import { conflictText, findConflict } from '../base/odd-texts.ts';
import { describeError } from '../bundle/errors.ts';
import { isBundleFile, listStrangers, readFolder } from '../bundle/folder.ts';
import { goldenHead } from '../base/file-names.ts';
import { isGoldenFile } from '../bundle/golden-names.ts';
import type { BundleFiles } from '../bundle/make-bundle.ts';

/** A file before and after. */
interface FilePair {
  readonly name: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
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
      readonly pairs: readonly FilePair[];
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
