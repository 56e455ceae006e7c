import { Failure } from '../../apply/state/failure.ts';
import { readJson, stateFolder, writeJson } from '../../apply/state/record.ts';
import { readTrusted } from '../../apply/state/trusted-files.ts';
import { describeUnread, readRegularFile } from '../../base/read-file.ts';
import { objectOf, wholeNumber } from '../../base/json-shape.ts';
import { printable } from '../../base/printable.ts';
import { isFile, readFolder } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import {
  digestOf,
  groupDigest,
  isSignedBy,
  readPublicKeys,
  readSignature,
  type Signature,
  type TrustedKey,
} from '../../bundle/pack/signature.ts';
import type { ApplyEnvironment } from './environment.ts';
import type { Options } from './options.ts';

const largestKeyFile = 2 ** 20;
const serialShape = objectOf({ serial: wholeNumber(0) });

/** Where a command has its bundle from: a folder, or a pack, which may be signed. */
export type BundleSource = ReturnType<typeof openSource>;

/** Opens a source for one command. Says on stderr which bundle it read, once for each digest. */
export function openSource(
  path: string,
  { trust, stateDir }: Options<'trust' | 'stateDir'>,
  { host, terminal }: Pick<ApplyEnvironment, 'host' | 'terminal'>,
) {
  const serialFile = `${stateFolder(stateDir).path}/newest-serial.json`;
  let serial = 0;
  let said = '';

  async function say(files: BundleFiles, signer: string): Promise<void> {
    const text = `digest ${groupDigest(digestOf(files))}, ${signer}`;
    if (text !== said) await terminal.err(`${printable(path)}: ${text}\n`);
    said = text;
  }

  const readNewest = async (): Promise<number> =>
    (await readJson(host, serialFile, serialShape, 'remove it: an older bundle is accepted then'))?.serial ?? 0;

  async function check(files: BundleFiles): Promise<BundleFiles> {
    if (trust.length === 0) return files;
    const readFrom = (file: string) => readTrusted({ host, path: file, what: 'the keys in' }, () => readKeys(file));
    const keys = (await Promise.all(trust.map(readFrom))).flat();
    const { keyId, serial: found } = assertSigned(path, files, keys);
    const newest = await readNewest();
    if (found < newest) {
      const advice = 'use the newest pack; to go back to an older state, sign it again with a higher --serial';
      throw refuse(`${path} has serial ${found}, and this node had serial ${newest} before`, advice);
    }
    serial = found;
    await say(files, `signed by key ${keyId}`);
    return files;
  }

  return {
    /** Gives files that were read before, as read does. */
    check,
    /** The files, with the signature if there is one. Throws a Failure for what --trust refuses: nothing of it has been parsed then. */
    async read(): Promise<BundleFiles> {
      // Other users can change a signed pack, but not without breaking its signature.
      if (trust.length > 0) return check((await readFiles(path)).files);
      const { files, isPack } = await readTrusted({ host, path, what: 'the bundle' }, () => readFiles(path));
      if (!isPack) return files;
      const signature = readSignature(files);
      const signer = typeof signature === 'object' && signature.keyId;
      await say(files, signer ? `signed by key ${signer}, which was not checked (no --trust)` : 'not signed');
      return files;
    },
    /** Keeps the serial of what was read last: --trust refuses lower ones from then on. */
    async remember(): Promise<void> {
      if (trust.length > 0 && serial > (await readNewest())) await writeJson(host, serialFile, { serial });
    },
  };
}

async function readFiles(path: string): Promise<{ readonly files: BundleFiles; readonly isPack: boolean }> {
  // A folder does without Node's zlib.
  const packed = (await isFile(path)) && (await (await import('../../bundle/pack/pack.ts')).readPack(path));
  return packed ? { files: packed, isPack: true } : { files: await readFolder(path), isPack: false };
}

function assertSigned(path: string, files: BundleFiles, keys: readonly TrustedKey[]): Signature {
  const signature = readSignature(files);
  if (signature === undefined) {
    throw refuse(`${path} is not signed`, 'give a pack that "kpc bundle pack --sign" wrote: a folder has no signature');
  }
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

function refuse(text: string, advice: string): Failure {
  return new Failure('not-trusted', text, advice);
}

function readKeys(file: string): readonly TrustedKey[] {
  let keys: readonly TrustedKey[] | string;
  try {
    keys = readPublicKeys(readRegularFile(file, largestKeyFile).toString('latin1'));
  } catch (error) {
    keys = describeUnread(error);
  }
  if (typeof keys !== 'string') return keys;
  const advice = 'write the public key there: openssl pkey -in kpc.key -pubout -out kpc.pub';
  throw new Failure('bad-usage', `--trust ${file}: ${keys}`, advice);
}
