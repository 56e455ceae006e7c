import { remarkOf, type Remark } from '../../base/findings/node-checks.ts';
import { causeOf, Failure } from '../state/failure.ts';
import { readJsonFile, readLastBundle, stateFolder, writeJson, type StateFolder } from '../state/record.ts';
import type { Host } from '../node/host.ts';
import { readNodeNetwork } from '../node/network.ts';
import { readTrusted } from '../state/trusted-files.ts';
import { serial as serialCheck } from '#checks';
import { printable } from '../../base/printable.ts';
import { isFile, isStoredFile, largestBundle, readFolder } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
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
  /** `err` reports what was read. */
  readonly terminal: { readonly err: (text: string) => Promise<void> };
}

/** A command's bundle: a folder, or a pack, maybe signed. Reports each digest once, on stderr. */
export class BundleSource {
  readonly #path: string;
  readonly #trust: SourceOptions['trust'];
  readonly #stateDir: string;
  readonly #host: SourceEnvironment['host'];
  readonly #terminal: SourceEnvironment['terminal'];
  #serial: number | undefined;
  #said = '';

  constructor(path: string, { trust, stateDir }: SourceOptions, { host, terminal }: SourceEnvironment) {
    this.#path = path;
    this.#trust = trust;
    this.#stateDir = stateDir;
    this.#host = host;
    this.#terminal = terminal;
  }

  /** Checks files that were read before, as read does. */
  async check(files: BundleFiles): Promise<BundleFiles> {
    return this.#trust.length === 0 ? files : this.#accept(files, await this.#assertTrusted(files));
  }

  /** The files, with the signature if any. Throws a Failure if --trust refuses them, before any is parsed. */
  async read(): Promise<BundleFiles> {
    const path = this.#path;
    // Changing a signed pack breaks its signature, so its owner does not matter.
    if (this.#trust.length > 0) return this.#readSigned();
    const request = { host: this.#host, path, of: 'bundle' } as const;
    const { files, isPack } = await readTrusted(request, readBundleFiles);
    if (!isPack) return files;
    const signature = readSignature(files);
    const signer = typeof signature === 'object' && signature.keyId;
    await this.#say(files, signer ? `signed by key ${signer}, which was not checked (no --trust)` : 'not signed');
    return files;
  }

  /** The serial last read, if its signature was checked. */
  serial(): number | undefined {
    return this.#serial;
  }

  /**
   * Stores the serial, so that --trust refuses lower ones. Call it once the node is on that bundle for good. Returns why it is not stored.
   */
  async remember(): Promise<readonly Remark[]> {
    const serial = this.#serial;
    if (serial === undefined || serial <= (await this.#readNewest())) return [];
    const { newestSerial } = await this.#openFolder();
    try {
      await writeJson(this.#host, newestSerial, { serial });
      return [];
    } catch (error) {
      return [remarkOf('serial-not-kept', { path: this.#path, cause: causeOf(error) })];
    }
  }

  async #say(files: BundleFiles, signer: string): Promise<void> {
    const text = `digest ${groupDigest(digestOf(files))}, ${signer}`;
    if (text !== this.#said) await this.#terminal.err(`${printable(this.#path)}: ${text}\n`);
    this.#said = text;
  }

  /** Only signatures need the state folder. */
  async #openFolder(): Promise<StateFolder> {
    return stateFolder(this.#stateDir, await readNodeNetwork(this.#host, false));
  }

  async #readNewest(): Promise<number> {
    const { newestSerial } = await this.#openFolder();
    const newest = await readJsonFile(this.#host, newestSerial, serialCheck, 'serial');
    return newest?.serial ?? 0;
  }

  /** The bundle that the node already has is always accepted, even after a rollback to it. */
  async #assertNoStepBack(files: BundleFiles, found: number): Promise<void> {
    const [newest, last] = [await this.#readNewest(), await readLastBundle(this.#host, await this.#openFolder())];
    const least = Math.max(newest, last?.serial ?? 0);
    if (found >= least || digestOf(files) === last?.digest) return;
    throw new Failure('not-trusted', { problem: 'older', path: this.#path, serial: found, least });
  }

  /** `files`: all files of a bundle, or only its signature and manifest. */
  async #assertTrusted(files: BundleFiles): Promise<Signature> {
    const readFrom = (file: string) =>
      readTrusted({ host: this.#host, path: file, of: 'keys' }, (examined) => readKeys(examined, file));
    const keys = (await Promise.all(this.#trust.map(readFrom))).flat();
    const signature = checkSignature(this.#path, files, keys);
    if ('problem' in signature) throw new Failure('not-trusted', signature);
    await this.#assertNoStepBack(files, signature.serial);
    return signature;
  }

  async #accept(files: BundleFiles, { keyId, serial }: Signature): Promise<BundleFiles> {
    this.#serial = serial;
    await this.#say(files, `signed by key ${keyId}`);
    return files;
  }

  async #readSigned(): Promise<BundleFiles> {
    let signature: Signature | undefined;
    const files = await readPackAt(this.#path, async (head) => void (signature = await this.#assertTrusted(head)));
    if (!files || !signature) throw new Failure('not-trusted', { problem: 'unsigned', path: this.#path });
    return this.#accept(files, signature);
  }
}

async function readPackAt(
  path: string,
  check?: (head: BundleFiles) => Promise<void>,
): Promise<BundleFiles | undefined> {
  // A folder needs no zlib of Node.
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

function readKeys(examined: string, path: string): readonly TrustedKey[] {
  const keys = readKeyFile(examined, readPublicKeys);
  if (typeof keys !== 'string') return keys;
  throw new Failure('bad-usage', { problem: 'no-keys', path, reason: keys });
}
