import { Failure } from '../state/failure.ts';
import { readJson, readLastBundle, stateFolder, writeJson, type StateFolder } from '../state/record.ts';
import type { Host } from '../node/host.ts';
import { readNetwork } from '../node/network.ts';
import { readTrusted } from '../state/trusted-files.ts';
import { serial as serialCheck } from '#checks';
import { printable } from '../../base/printable.ts';
import { describeError } from '../../base/system-errors.ts';
import { isFile, isStoredFile, largestBundle, readFolder } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import {
  digestOf,
  groupDigest,
  isSignedBy,
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
    const request = { host: this.#host, path, what: 'the bundle' };
    const { files, isPack } = await readTrusted(request, readFiles);
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

  /** Stores the serial, so that --trust refuses lower ones. Call it once the node is on that bundle for good. */
  async remember(): Promise<void> {
    const serial = this.#serial;
    if (serial === undefined || serial <= (await this.#readNewest())) return;
    const { newestSerial } = await this.#openFolder();
    await writeJson(this.#host, newestSerial, { serial }).catch((error: unknown) =>
      this.#terminal.err(
        `warning: ${printable(`the serial of ${this.#path} cannot be kept: ${describeError(error)}`)}\n`,
      ),
    );
  }

  async #say(files: BundleFiles, signer: string): Promise<void> {
    const text = `digest ${groupDigest(digestOf(files))}, ${signer}`;
    if (text !== this.#said) await this.#terminal.err(`${printable(this.#path)}: ${text}\n`);
    this.#said = text;
  }

  /** Only signatures need the state folder. */
  async #openFolder(): Promise<StateFolder> {
    return stateFolder(this.#stateDir, await readNetwork(this.#host, false));
  }

  async #readNewest(): Promise<number> {
    const help = 'remove it: an older bundle is accepted then';
    const { newestSerial } = await this.#openFolder();
    const newest = await readJson(this.#host, newestSerial, serialCheck, help);
    return newest?.serial ?? 0;
  }

  /** The bundle the node is on is no step back, even after a rollback to it. */
  async #assertNoStepBack(files: BundleFiles, found: number): Promise<void> {
    const [newest, last] = [await this.#readNewest(), await readLastBundle(this.#host, await this.#openFolder())];
    const least = Math.max(newest, last?.serial ?? 0);
    if (found >= least || digestOf(files) === last?.digest) return;
    const advice = 'use the newest pack; to go back to an older state, sign it again with a higher --serial';
    throw refuse(`${this.#path} has serial ${found}, and this node had serial ${least} before`, advice);
  }

  /** `files`: all files of a bundle, or only its signature and manifest. */
  async #assertTrusted(files: BundleFiles): Promise<Signature> {
    const readFrom = (file: string) => readTrusted({ host: this.#host, path: file, what: 'the keys in' }, readKeys);
    const keys = (await Promise.all(this.#trust.map(readFrom))).flat();
    const signature = assertSigned(this.#path, files, keys);
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
    if (!files || !signature) throw notSigned(this.#path);
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

async function readFiles(path: string): Promise<{ readonly files: BundleFiles; readonly isPack: boolean }> {
  const packed = await readPackAt(path);
  return packed
    ? { files: packed, isPack: true }
    : { files: await readFolder(path, isStoredFile, largestBundle), isPack: false };
}

function assertSigned(path: string, files: BundleFiles, keys: readonly TrustedKey[]): Signature {
  const signature = readSignature(files);
  if (signature === undefined) throw notSigned(path);
  if (signature === 'damaged') throw refuse(`the signature of ${path} is damaged`, 'copy the pack again');
  const key = keys.find(({ id }) => id === signature.keyId);
  if (!key) {
    const known = keys.map(({ id }) => id).join(', ');
    const advice = `trusted keys: ${known}; if this is your new key, add it to the file of --trust`;
    throw refuse(`${path} is signed by key ${signature.keyId}, which is not trusted`, advice);
  }
  if (isSignedBy(key, files, signature)) return signature;
  throw refuse(`the signature of ${path} is wrong: the bundle has changed since it was signed`, 'do not use this pack');
}

function notSigned(path: string): Failure {
  return refuse(`${path} is not signed`, 'give a pack that "kpc bundle pack --sign" wrote: a folder has no signature');
}

function refuse(text: string, advice: string): Failure {
  return new Failure('not-trusted', text, advice);
}

function readKeys(file: string): readonly TrustedKey[] {
  const keys = readKeyFile(file, readPublicKeys);
  if (typeof keys !== 'string') return keys;
  const advice = 'write the public key there: openssl pkey -in kpc.key -pubout -out kpc.pub';
  throw new Failure('bad-usage', `--trust ${file}: ${keys}`, advice);
}
