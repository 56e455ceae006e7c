import { Failure } from '../apply/state/failure.ts';
import { printable } from '../base/printable.ts';
import { certifyChange } from '../bundle/certify-change.ts';
import { checkDumpedForms, checkForms, compileChecked } from '../bundle/check-forms.ts';
import { describeError, hasCode } from '../bundle/errors.ts';
import { readFolder } from '../bundle/folder.ts';
import type { BundleFiles } from '../bundle/make-bundle.ts';
import { describeBundleProblem, readBundle, readBundleMeaning, type StoredBundle } from '../bundle/read-bundle.ts';
import { compileState } from '../compile/compile-node.ts';
import { version } from '../base/version.ts';

/** Reads the files of a bundle, by name, from wherever they are kept. */
type BundleReader = () => Promise<BundleFiles>;

/**
 * Reads a bundle to compare the node with it. Throws a Failure that names all that is wrong with it: the bundle
 * may come from a pull request that no reviewer has looked at.
 */
export async function loadBundle(
  folder: string,
  readFiles: BundleReader = () => readFolder(folder),
  known?: BundleFiles,
): Promise<StoredBundle> {
  const { bundle, problems, isFolder = true } = await readCheckedBundle(readFiles, known);
  if (bundle && problems.length === 0) return bundle;
  throw new Failure(
    'bad-bundle',
    `${folder} is not a bundle that can be applied:\n  ${problems.map(printable).join('\n  ')}`,
    isFolder
      ? adviseOn(bundle)
      : 'name the folder that "kpc compile -o" wrote, or the file that "kpc bundle pack" wrote',
  );
}

/**
 * As loadBundle, to bring the node to what the bundle says. `known` are the files of a bundle that had nothing wrong: of one
 * that differs in few endpoints only, those are checked.
 */
export async function loadBundleToApply(
  folder: string,
  readFiles?: BundleReader,
  known?: BundleFiles,
): Promise<StoredBundle> {
  const bundle = await loadBundle(folder, readFiles, known);
  if (!bundle.manifest.dumped) return bundle;
  throw new Failure(
    'bad-bundle',
    `${folder} is a dump that "kpc-apply dump" wrote, not a bundle: it names no Services`,
    'compile a bundle from manifests with "kpc compile -o"; "kpc-apply rollback" goes back to the state before the last apply',
  );
}

/** A bundle, and all that is wrong with it. `isFolder`: whether there is a folder at all. */
interface CheckedBundle {
  readonly bundle: StoredBundle | undefined;
  readonly problems: readonly string[];
  readonly isFolder?: boolean;
}

async function readCheckedBundle(readFiles: BundleReader, before: BundleFiles | undefined): Promise<CheckedBundle> {
  try {
    const files = await readFiles();
    const good = (before && certifyChange(before, files, compile)) ?? readGoodBundle(files);
    if (good) return { bundle: good, problems: [] };
    const reading = readBundle(files);
    const bundle = reading.kind === 'bundle' ? reading.bundle : undefined;
    const meaning = reading.kind === 'bundle' ? reading.bundle : reading.meaning;
    // What was dumped is only looked at: it holds what is in a kernel already, and no Services to compile.
    if (bundle?.manifest.dumped) return { bundle, problems: checkDumpedForms(bundle) };
    const known = reading.kind === 'broken' ? reading.problems.map(describeBundleProblem) : [];
    const strange = meaning && !meaning.manifest.dumped ? checkForms(meaning, files, compile) : [];
    // A line that cannot be read is none that kpc writes either.
    return { bundle, problems: strange.length > 0 ? strange : known };
  } catch (error) {
    if (error instanceof Failure) throw error;
    const bundle = undefined;
    if (hasCode(error, 'ENOENT')) return { bundle, problems: ['there is no such folder or file'], isFolder: false };
    if (hasCode(error, 'ENOTDIR')) return { bundle, problems: ['it is neither a folder nor a pack'], isFolder: false };
    return { bundle, problems: [describeError(error)] };
  }
}

/** A bundle that kpc compiled, with nothing wrong; of any other, reading all files tells what is. */
function readGoodBundle(files: BundleFiles): StoredBundle | undefined {
  const meaning = readBundleMeaning(files);
  if (!meaning || meaning.manifest.dumped) return undefined;
  const state = compileChecked(meaning, files, compile);
  return state && { ...meaning, state, files };
}

const compile: Parameters<typeof checkForms>[2] = (cluster, node, settings, families) =>
  compileState(cluster, node, settings, families, undefined);

function adviseOn(bundle: StoredBundle | undefined): string {
  const again = 'compile it again with "kpc compile -o", and copy the whole folder';
  if (!bundle || bundle.manifest.kpcVersion === version) return again;
  return `${again}; kpc ${bundle.manifest.kpcVersion} wrote it and this is kpc-apply ${version}: use the same version of both`;
}
