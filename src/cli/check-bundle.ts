import { printable } from '../base/printable.ts';
import { describeError } from '../bundle/errors.ts';
import { isBundleFile, listStrangers, readFolder } from '../bundle/folder.ts';
import { goldenHead, isGoldenFile } from '../bundle/golden-names.ts';
import type { BundleFiles } from '../bundle/make-bundle.ts';
import { formatUnifiedDiff } from './unified-diff.ts';

/** How a folder differs from the bundle that would be written to it. */
export type CheckResult =
  | { readonly kind: 'same' }
  | {
      readonly kind: 'differs';
      readonly files: readonly string[];
      /** Those of the files that no bundle has. */
      readonly strangers: readonly string[];
      readonly diff: string;
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
  const names = [...new Set([...fresh.keys(), ...present.keys()])];
  const differing = names.filter((name) => fresh.get(name) !== present.get(name));
  if (differing.length + strangers.length === 0) return { kind: 'same' };
  const diffs = differing.map((name) => formatUnifiedDiff(`${folder}/${name}`, present.get(name), fresh.get(name)));
  // As diff -r has it.
  const others = strangers.map((name) => `${printable(`Only in ${folder}: ${name}`)}\n`);
  return { kind: 'differs', files: [...differing, ...strangers], strangers, diff: [...diffs, ...others].join('') };
}
