import { readFolder } from '../bundle/folder.ts';
import type { BundleFiles } from '../bundle/make-bundle.ts';
import { formatUnifiedDiff } from './unified-diff.ts';

/** How a folder differs from the bundle that would be written to it. */
export type CheckResult =
  | { readonly kind: 'same' }
  | { readonly kind: 'differs'; readonly files: readonly string[]; readonly diff: string }
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Compares the bundle in a folder (old) with a fresh one (new). */
export async function checkBundle(folder: string, fresh: BundleFiles): Promise<CheckResult> {
  const present = await readFolder(folder).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  if (present instanceof Error) return { kind: 'unreadable', reason: present.message };
  const names = [...new Set([...fresh.keys(), ...present.keys()])];
  const differing = names.filter((name) => fresh.get(name) !== present.get(name));
  if (differing.length === 0) return { kind: 'same' };
  const diff = differing
    .map((name) => formatUnifiedDiff(`${folder}/${name}`, present.get(name), fresh.get(name)))
    .join('');
  return { kind: 'differs', files: differing, diff };
}
