import { remarkOf, type Remark } from '../../base/findings/node-checks.ts';
import { unreadOf } from '../../base/unread.ts';
import { causeOf, Failure, explainError } from '../state/failure.ts';
import { checkBundle } from '../../bundle/check-bundle.ts';
import { hasCode } from '../../base/system-errors.ts';
import { readFolder, knownNames, isFile, isStoredFile, largestBundle } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import type { BundleReading, StoredBundle } from '../../bundle/read-bundle.ts';
import { compileState } from '../../snapshot/open/compile-node.ts';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { keptBundle as keptCheck, serial as serialCheck } from '#checks';
import type { Session } from '../change/observe-node.ts';
import { readJsonFile, writeJson, readLastBundle, stateFolder, type StateFolder } from '../state/record.ts';
import type { Host } from '../node/host.ts';
import { readNodeNetwork } from '../node/network.ts';
import { readTrusted } from '../state/trusted-files.ts';
import {
  checkSignature,
  digestOf,
  groupDigest,
  readKeyFile,
  readPublicKeys,
  readSignature,
  type Signature,
  type TrustedKey,
} from '../../bundle/pack/signature.ts';

interface SourceOptions {
  readonly trust: readonly string[];
  readonly stateDir: string;
}

interface SourceEnvironment {
  readonly host: Host;
  readonly terminal: { readonly note: (remark: Remark) => Promise<void> };
}

/** A command's bundle, in a folder or a pack, which may be signed. Prints a note for each pack with a new digest. */
export type BundleSource = ReturnType<typeof bundleSource>;

export function bundleSource(path: string, { trust, stateDir }: SourceOptions, { host, terminal }: SourceEnvironment) {
  let serial: number | undefined;
  let noted = '';
  const openFolder = async () => stateFolder(stateDir, await readNodeNetwork(host, false));

  async function note(files: BundleFiles, signer: string | undefined, isChecked: boolean): Promise<void> {
    const digest = groupDigest(digestOf(files));
    const now = `${digest} ${signer}`;
    if (now === noted) return;
    noted = now;
    await terminal.note(remarkOf('read-pack', { path, digest, signer, isChecked }));
  }

  /** `files`: all files of a bundle, or only its signature and manifest. */
  async function assertTrusted(files: BundleFiles): Promise<Signature> {
    const keys = await Promise.all(trust.map((file) => readKeys(host, file)));
    const signature = checkSignature(path, files, keys.flat());
    if ('problem' in signature) throw new Failure('not-trusted', signature);
    await assertNoStepBack(host, await openFolder(), { path, files, serial: signature.serial });
    return signature;
  }

  async function accept(files: BundleFiles, signature: Signature): Promise<BundleFiles> {
    ({ serial } = signature);
    await note(files, signature.keyId, true);
    return files;
  }

  async function readSigned(): Promise<BundleFiles> {
    let signature: Signature | undefined;
    const files = await readPackAt(path, async (head) => void (signature = await assertTrusted(head)));
    if (!files || !signature) throw new Failure('not-trusted', { problem: 'unsigned', path });
    return accept(files, signature);
  }

  return {
    check: async (files: BundleFiles): Promise<BundleFiles> =>
      trust.length === 0 ? files : accept(files, await assertTrusted(files)),
    /** Reads the files. Throws a Failure if --trust refuses them, before any file is parsed. */
    async read(): Promise<BundleFiles> {
      // A signed pack may have any owner, because a change would break its signature.
      if (trust.length > 0) return readSigned();
      const { files, isPack } = await readTrusted({ host, path, of: 'bundle' }, readBundleFiles);
      if (!isPack) return files;
      await note(files, keyOf(readSignature(files)), false);
      return files;
    },
    serial: () => serial,
    /** Stores the serial, so that --trust refuses lower ones. Call once the bundle is applied for good. Returns a remark on failure. */
    async remember(): Promise<readonly Remark[]> {
      if (serial === undefined) return [];
      const folder = await openFolder();
      if (serial <= (await readNewest(host, folder))) return [];
      return writeJson(host, folder.newestSerial, { serial }).then(
        () => [],
        (error: unknown) => [remarkOf('serial-not-kept', { path, cause: causeOf(error) })],
      );
    },
  };
}

function keyOf(signature: ReturnType<typeof readSignature>): string | undefined {
  return typeof signature === 'object' ? signature.keyId : undefined;
}

async function readNewest(host: Host, { newestSerial }: StateFolder): Promise<number> {
  const newest = await readJsonFile(host, newestSerial, serialCheck, 'serial');
  return newest?.serial ?? 0;
}

/** Throws a Failure for a serial lower than an applied one. Accepts the node's present bundle, even after a rollback to it. */
async function assertNoStepBack(
  host: Host,
  folder: StateFolder,
  { path, files, serial }: { readonly path: string; readonly files: BundleFiles; readonly serial: number },
): Promise<void> {
  const [newest, last] = [await readNewest(host, folder), await readLastBundle(host, folder)];
  const least = Math.max(newest, last?.serial ?? 0);
  if (serial >= least || digestOf(files) === last?.digest) return;
  throw new Failure('not-trusted', { problem: 'older', path, serial, least });
}

async function readPackAt(
  path: string,
  check?: (head: BundleFiles) => Promise<void>,
): Promise<BundleFiles | undefined> {
  // Import zlib only for a pack. A folder does not need it.
  if (!(await isFile(path))) return undefined;
  const { readPack } = await import('../../bundle/pack/pack.ts');
  return readPack(path, check);
}

async function readBundleFiles(path: string) {
  const packed = await readPackAt(path);
  return packed
    ? { files: packed, isPack: true }
    : { files: await readFolder(path, isStoredFile, largestBundle), isPack: false };
}

function readKeys(host: Host, path: string): Promise<readonly TrustedKey[]> {
  return readTrusted({ host, path, of: 'keys' }, (examined) => {
    const keys = readKeyFile(examined, readPublicKeys);
    if (!('reason' in keys)) return keys;
    throw new Failure('bad-usage', { problem: 'no-keys', path, ...keys });
  });
}

type BundleReader = Pick<BundleSource, 'read'>;

/** Reads a bundle to compare with. Throws a Failure with all faults of the bundle, which may come from an unreviewed pull request. */
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

/** Like loadBundle, but refuses dumps, because they lack Services. `known`: a bundle to return if its files are the same. */
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
    return { kind: 'broken', manifest: undefined, problems: [{ problem: 'unread', reason: unreadOf(error, path) }] };
  }
}

function areSameFiles(a: BundleFiles, b: BundleFiles): boolean {
  return a.size === b.size && [...a].every(([name, text]) => b.get(name) === text);
}

interface BundleListener {
  readonly refused: (failure: Failure) => Promise<unknown>;
  readonly warn: (remark: Remark) => Promise<void>;
  readonly note: (remark: Remark) => Promise<void>;
}

/** Follows the bundle in a folder, which may be replaced or damaged at any time. Reports each problem once, and once when it is solved. */
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
    path: whole,
    /** Returns the bundle, or the last good bundle if the present one is damaged or missing; undefined if none was ever good. */
    async read(): Promise<StoredBundle | undefined> {
      try {
        good = await loadBundleToApply(path, source, good);
        if (wrong) await listener.note(remarkOf('good-bundle-again', { path }));
        wrong = undefined;
      } catch (error) {
        // If the stored bundle is bad too, report only the problem of the bundle itself.
        good ??= await recall().catch(() => undefined);
        await complain(explainError(error));
      }
      return good;
    },
    problem: (): Failure | undefined => wrong,
    serial: () => source.serial(),
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

/** Returns a text that changes with any file of the bundle, without reading the files; "" if there is no bundle. */
export async function readBundleVersion(path: string): Promise<string> {
  try {
    // Look only at names of bundle files, because another user may have put a folder of any size in place of a pack.
    const names = (await stat(path)).isFile() ? [''] : [...knownNames].toSorted();
    const found = await Promise.all(names.map((name) => statOf(join(path, name))));
    return found.map((each, i) => `${names[i]} ${each}`).join('\n');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return '';
    throw error;
  }
}
