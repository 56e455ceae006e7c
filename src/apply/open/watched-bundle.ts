import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { keptBundle as keptCheck } from '#checks';
import { describeError, hasCode } from '../../base/system-errors.ts';
import { knownNames } from '../../bundle/folder.ts';
import type { StoredBundle } from '../../bundle/read-bundle.ts';
import type { Session } from '../change/observe-node.ts';
import { explainError, type Failure } from '../state/failure.ts';
import { readJson, writeJson } from '../state/record.ts';
import type { BundleSource } from './bundle-source.ts';
import { loadBundleToApply } from './load-bundle.ts';

/** A bundle that may be replaced or damaged at any time. */
export type WatchedBundle = ReturnType<typeof watchBundle>;

/** Who hears of the bundle. */
interface Listener {
  readonly refused: (failure: Failure) => Promise<unknown>;
  readonly warn: (problem: string) => Promise<void>;
  readonly note: (text: string) => Promise<void>;
}

/** Follows the bundle in a folder. Reports a problem once, and once that the bundle is good again. */
export function watchBundle(path: string, { host, folder }: Session, source: BundleSource, listener: Listener) {
  const kept = `${folder.path}/last-good-bundle.json`;
  const whole = resolve(path);
  let good: StoredBundle | undefined;
  let keptManifest: string | undefined;
  let wrong: Failure | undefined;

  async function recall(): Promise<StoredBundle | undefined> {
    const stored = await readJson(host, kept, keptCheck, 'remove it');
    if (stored?.folder !== whole) return undefined;
    return loadBundleToApply(kept, { read: () => source.check(new Map(Object.entries(stored.files))) });
  }

  async function complain(failure: Failure): Promise<void> {
    if (wrong?.message === failure.message) return;
    wrong = failure;
    await listener.refused(failure);
    const what = good
      ? 'the node stays on the last good bundle until there is a new good one'
      : 'no good bundle is known: the node is left as it is until there is one';
    await listener.warn(what);
  }

  return {
    /** The bundle's absolute path. */
    path: whole,
    /** Returns the bundle, or the last good one if it is damaged or missing; undefined if none was ever good. */
    async read(): Promise<StoredBundle | undefined> {
      try {
        good = await loadBundleToApply(path, source, good);
        if (wrong) await listener.note(`${path} is a good bundle again`);
        wrong = undefined;
      } catch (error) {
        // If the stored bundle is bad too, still report the problem of the bundle itself.
        good ??= await recall().catch(() => undefined);
        await complain(explainError(error));
      }
      return good;
    },
    /** Why the last good bundle is used instead; undefined if the bundle is good. */
    problem: (): Failure | undefined => wrong,
    serial: () => source.serial(),
    /** Stores the bundle that was read last, for later watches: it has been applied. */
    async keep(): Promise<void> {
      await source.remember();
      const files = good?.files;
      // The manifest has the checksums of all other files.
      const manifest = files?.get('manifest.json');
      if (!files || manifest === keptManifest) return;
      keptManifest = manifest;
      await writeJson(host, kept, { folder: whole, files: Object.fromEntries(files) }).catch((error: unknown) =>
        listener.warn(`the bundle cannot be kept for the next watch: ${describeError(error)}`),
      );
    },
  };
}

async function statOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
    return `${dev} ${ino} ${size} ${mtimeNs}`;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}

/** Returns a value that changes with any file of a bundle; '' if there is none. Does not read the files. */
export async function readBundleVersion(path: string): Promise<string> {
  try {
    // The names of a bundle, not those of the folder: another user may have put one of any size in the place of a pack.
    const names = (await stat(path)).isFile() ? [''] : [...knownNames].toSorted();
    const found = await Promise.all(names.map((name) => statOf(join(path, name))));
    return found.map((each, i) => `${names[i]} ${each}`).join('\n');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return '';
    throw error;
  }
}
