import type { BundleFiles } from './make-bundle.ts';

/** Lists all files: to compare their rules would take too much code for a page. */
export function findEdited(files: BundleFiles): readonly string[] {
  return [...files.keys()].filter((file) => file.endsWith('.txt'));
}
