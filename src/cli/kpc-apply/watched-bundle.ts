import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { explainError, type Failure } from '../../apply/state/failure.ts';
import { readJson, writeJson, type StateFolder } from '../../apply/state/record.ts';
import { describeError, hasCode } from '../../base/system-errors.ts';
import { isBundleFile } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import { mapOf, objectOf, text } from '../../base/json-shape.ts';
import type { BundleSource } from './bundle-source.ts';
import { reportFailure, reportWarning, type ApplyEnvironment } from './environment.ts';
import { loadBundleToApply } from '../../sides/load-bundle.ts';

/**
 * The last good bundle as the state folder has it: its files, which are checked like any other bundle's, and where it was read
 * from: the last good bundle of another folder is none of this one's.
 */
const keptShape = objectOf({ folder: text, files: mapOf(text) });

/** A bundle that may be replaced or damaged at any time. */
export type WatchedBundle = ReturnType<typeof watchBundle>;

/** Follows the bundle in a folder. Reports once what is wrong with it, and once that it is good again. */
export function watchBundle(
  path: string,
  {
    host,
    folder,
    terminal,
    source,
  }: Pick<ApplyEnvironment, 'host' | 'terminal'> & { readonly folder: StateFolder; readonly source: BundleSource },
) {
  const kept = `${folder.path}/last-good-bundle.json`;
  let good: StoredBundle | undefined;
  let keptManifest: string | undefined;
  let wrong: Failure | undefined;

  async function recall(): Promise<StoredBundle | undefined> {
    try {
      const stored = await readJson(host, kept, keptShape, 'remove it');
      if (stored?.folder !== resolve(path)) return undefined;
      return await loadBundleToApply(kept, () => source.check(new Map(Object.entries(stored.files))));
    } catch {
      // It is of no use then, and what is wrong with the bundle itself is said anyway.
      return undefined;
    }
  }

  async function complain(failure: Failure): Promise<void> {
    if (wrong?.message === failure.message) return;
    wrong = failure;
    await reportFailure(failure, terminal);
    await reportWarning(
      good
        ? 'the node stays on the last good bundle until there is a new good one'
        : 'no good bundle is known: the node is left as it is until there is one',
      terminal,
    );
  }

  return {
    /** The folder that it is in, as an absolute path. */
    path: resolve(path),
    /**
     * The bundle, or the last good one if it is damaged or missing; undefined if none was ever good. `known`: the files
     * of a bundle that had nothing wrong, so that of one that is much alike only the difference is checked.
     */
    async read(known?: BundleFiles): Promise<StoredBundle | undefined> {
      try {
        good = await loadBundleToApply(path, source.read, known);
        await source.remember();
        if (wrong) await terminal.err(`${path} is a good bundle again\n`);
        wrong = undefined;
      } catch (error) {
        good ??= await recall();
        await complain(explainError(error));
      }
      return good;
    },
    /** What is wrong with the bundle, so that the last good one is in its place; undefined if it is good. */
    problem: (): Failure | undefined => wrong,
    /** Keeps what was read last for a watch to come: it has been applied. */
    async keep(): Promise<void> {
      const files = good?.files;
      // The manifest has the checksums of all others.
      const manifest = files?.get('manifest.json');
      if (!files || manifest === keptManifest) return;
      keptManifest = manifest;
      const content = { folder: resolve(path), files: Object.fromEntries(files) };
      await writeJson(host, kept, content).catch((error: unknown) =>
        reportWarning(`the bundle cannot be kept for the next watch: ${describeError(error)}`, terminal),
      );
    },
  };
}

/** Something that changes with any file of a bundle; undefined if there is no folder. Reads none of them. */
export async function readBundleVersion(path: string): Promise<string | undefined> {
  try {
    const isPack = (await stat(path)).isFile();
    const names = isPack ? [''] : (await readdir(path)).filter(isBundleFile).toSorted();
    const found = await Promise.all(names.map((name) => stat(join(path, name), { bigint: true })));
    return found.map(({ dev, ino, size, mtimeNs }, i) => `${names[i]} ${dev} ${ino} ${size} ${mtimeNs}`).join('\n');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return undefined;
    throw error;
  }
}
