import { Failure } from '../state/failure.ts';
import { printable } from '../../base/printable.ts';
import { checkBundle } from '../../bundle/check-bundle.ts';
import { describeError, hasCode } from '../../base/system-errors.ts';
import { readFolder } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import type { Manifest } from '../../bundle/manifest.ts';
import type { BundleReading, StoredBundle } from '../../bundle/read-bundle.ts';
import { compileState } from '../../snapshot/open/compile-node.ts';
import { version } from '../../base/version.ts';

interface Source {
  readonly read: () => Promise<BundleFiles>;
}

/**
 * Reads a bundle to compare the node with it. Throws a Failure that names all that is wrong with it: the bundle
 * may come from a pull request that no reviewer has looked at.
 */
export async function loadBundle(
  folder: string,
  source: Source = { read: () => readFolder(folder) },
  known?: StoredBundle,
): Promise<StoredBundle> {
  const checked = await readChecked(source, known);
  if (checked.kind === 'bundle') return checked.bundle;
  throw new Failure(
    'bad-bundle',
    `${folder} is not a bundle that can be applied:\n  ${checked.problems.map(printable).join('\n  ')}`,
    checked.advice ?? adviseOn(checked.manifest),
  );
}

/**
 * As loadBundle, to bring the node to what the bundle says: a dump says what was there, and not for which Services. `known` is a
 * bundle that was loaded before: the same files are not checked again, which takes seconds for a large bundle.
 */
export async function loadBundleToApply(folder: string, source?: Source, known?: StoredBundle): Promise<StoredBundle> {
  const bundle = await loadBundle(folder, source, known);
  if (!bundle.manifest.dumped) return bundle;
  throw new Failure(
    'bad-bundle',
    `${folder} is a dump that "kpc-apply dump" wrote, not a bundle: it names no Services`,
    'compile a bundle from manifests with "kpc compile -o"; "kpc-apply rollback" goes back to the state before the last apply',
  );
}

async function readChecked(
  source: Source,
  known: StoredBundle | undefined,
): Promise<BundleReading & { readonly advice?: string }> {
  try {
    const files = await source.read();
    if (known?.files && areSameFiles(files, known.files)) return { kind: 'bundle', bundle: known };
    return checkBundle(files, compileState);
  } catch (error) {
    if (error instanceof Failure) throw error;
    const broken = { kind: 'broken', manifest: undefined } as const;
    const advice = 'name the folder that "kpc compile -o" wrote, or the file that "kpc bundle pack" wrote';
    if (hasCode(error, 'ENOENT')) return { ...broken, problems: ['there is no such folder or file'], advice };
    if (hasCode(error, 'ENOTDIR')) return { ...broken, problems: ['it is neither a folder nor a pack'], advice };
    return { ...broken, problems: [describeError(error)] };
  }
}

function areSameFiles(a: BundleFiles, b: BundleFiles): boolean {
  return a.size === b.size && [...a].every(([name, text]) => b.get(name) === text);
}

function adviseOn(manifest: Manifest | undefined): string {
  const again = 'compile it again with "kpc compile -o", and copy all of it';
  if (!manifest || manifest.kpcVersion === version) return again;
  return `${again}; kpc ${manifest.kpcVersion} wrote it and this is kpc-apply ${version}: use the same version of both`;
}
