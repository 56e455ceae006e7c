// Loads a bundle to apply, and follows one that may change.
import { remarkOf, type Remark } from '../../base/findings/node-checks.ts';
import { causeOf, Failure, explainError } from '../state/failure.ts';
import { checkBundle } from '../../bundle/check-bundle.ts';
import { describeError, hasCode } from '../../base/system-errors.ts';
import { readFolder, knownNames } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import type { BundleReading, StoredBundle } from '../../bundle/read-bundle.ts';
import { compileState } from '../../snapshot/open/compile-node.ts';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { keptBundle as keptCheck } from '#checks';
import type { Session } from '../change/observe-node.ts';
import { readJsonFile, writeJson } from '../state/record.ts';
import type { BundleSource } from './bundle-source.ts';

type BundleReader = Pick<BundleSource, 'read'>;

/** Reads a bundle to compare with. Throws a Failure with all faults: it may come from an unreviewed pull request. */
export async function loadBundle(
  folder: string,
  source: BundleReader = { read: () => readFolder(folder) },
  known?: StoredBundle,
): Promise<StoredBundle> {
  const checked = await readCheckedBundle(folder, source, known);
  if (checked.kind === 'bundle') return checked.bundle;
  const writer = checked.manifest?.kpcVersion;
  throw new Failure('bad-bundle', { problem: 'broken', path: folder, problems: checked.problems, writer });
}

/** Like loadBundle, but refuses dumps, which lack Services. `known`: unchanged files are not checked again. */
export async function loadBundleToApply(
  folder: string,
  source?: BundleReader,
  known?: StoredBundle,
): Promise<StoredBundle> {
  const bundle = await loadBundle(folder, source, known);
  if (!bundle.manifest.dumped) return bundle;
  throw new Failure('bad-bundle', { problem: 'dump', path: folder });
}

async function readCheckedBundle(
  path: string,
  source: BundleReader,
  known: StoredBundle | undefined,
): Promise<BundleReading> {
  try {
    const files = await source.read();
    if (known && areSameFiles(files, known.files)) return { kind: 'bundle', bundle: known };
    return checkBundle(files, compileState, path);
  } catch (error) {
    if (error instanceof Failure) throw error;
    if (hasCode(error, 'ENOENT')) throw new Failure('bad-bundle', { problem: 'missing', path });
    if (hasCode(error, 'ENOTDIR')) throw new Failure('bad-bundle', { problem: 'no-folder', path });
    return { kind: 'broken', manifest: undefined, problems: [describeError(error)] };
  }
}

function areSameFiles(a: BundleFiles, b: BundleFiles): boolean {
  return a.size === b.size && [...a].every(([name, text]) => b.get(name) === text);
}

interface BundleListener {
  readonly refused: (failure: Failure) => Promise<unknown>;
  readonly warn: (remark: Remark) => Promise<void>;
  readonly note: (text: string) => Promise<void>;
}

/** Follows the bundle in a folder, which may be replaced or damaged at any time. Reports a problem once, and once when it is over. */
export function watchBundle(path: string, { host, folder }: Session, source: BundleSource, listener: BundleListener) {
  const kept = `${folder.path}/last-good-bundle.json`;
  const whole = resolve(path);
  let good: StoredBundle | undefined;
  let keptManifest: string | undefined;
  let wrong: Failure | undefined;

  async function recall(): Promise<StoredBundle | undefined> {
    const stored = await readJsonFile(host, kept, keptCheck, 'copy');
    if (stored?.folder !== whole) return undefined;
    return loadBundleToApply(kept, { read: () => source.check(new Map(Object.entries(stored.files))) });
  }

  async function complain(failure: Failure): Promise<void> {
    if (JSON.stringify(wrong?.finding) === JSON.stringify(failure.finding)) return;
    wrong = failure;
    await listener.refused(failure);
    await listener.warn(remarkOf(good ? 'on-last-good-bundle' : 'no-good-bundle', {}));
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
        // If the stored bundle is bad too, report the problem of the bundle itself.
        good ??= await recall().catch(() => undefined);
        await complain(explainError(error));
      }
      return good;
    },
    /** Undefined if the bundle is good. */
    problem: (): Failure | undefined => wrong,
    serial: () => source.serial(),
    /** Stores the bundle read last, which has been applied, for later watches. */
    async keep(): Promise<void> {
      for (const remark of await source.remember()) await listener.warn(remark);
      const files = good?.files;
      // The manifest has the checksums of all other files.
      const manifest = files?.get('manifest.json');
      if (!files || manifest === keptManifest) return;
      keptManifest = manifest;
      await writeJson(host, kept, { folder: whole, files: Object.fromEntries(files) }).catch((error: unknown) =>
        listener.warn(remarkOf('bundle-not-kept', { cause: causeOf(error) })),
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

/** Changes with any file of a bundle, without reading them; '' if there is none. */
export async function readBundleVersion(path: string): Promise<string> {
  try {
    // Only names of bundle files: another user may have put a folder of any size in place of a pack.
    const names = (await stat(path)).isFile() ? [''] : [...knownNames].toSorted();
    const found = await Promise.all(names.map((name) => statOf(join(path, name))));
    return found.map((each, i) => `${names[i]} ${each}`).join('\n');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return '';
    throw error;
  }
}
