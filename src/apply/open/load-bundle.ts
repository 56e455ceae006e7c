// Loads a bundle to apply, and follows one that may change.
import { Failure, explainError } from '../state/failure.ts';
import { printable } from '../../base/printable.ts';
import { checkBundle } from '../../bundle/check-bundle.ts';
import { describeError, hasCode } from '../../base/system-errors.ts';
import { readFolder, knownNames } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import type { Manifest } from '../../bundle/manifest.ts';
import type { BundleReading, StoredBundle } from '../../bundle/read-bundle.ts';
import { compileState } from '../../snapshot/open/compile-node.ts';
import { version } from '../../base/version.ts';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { keptBundle as keptCheck } from '#checks';
import type { Session } from '../change/observe-node.ts';
import { readJson, writeJson } from '../state/record.ts';
import type { BundleSource } from './bundle-source.ts';

interface Source {
  readonly read: () => Promise<BundleFiles>;
}

/** Reads a bundle to compare with. Throws a Failure with all faults: it may come from an unreviewed pull request. */
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

/** As loadBundle, but refuses dumps, which lack Services. `known`: unchanged files are not checked again. */
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

/** A bundle that may be replaced or damaged at any time. */
export type WatchedBundle = ReturnType<typeof watchBundle>;

interface Listener {
  readonly refused: (failure: Failure) => Promise<unknown>;
  readonly warn: (problem: string) => Promise<void>;
  readonly note: (text: string) => Promise<void>;
}

/** Follows the bundle in a folder. Reports a problem once, and once when it is over. */
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
