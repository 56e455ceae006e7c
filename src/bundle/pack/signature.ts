import { createHash, createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto';
import type { Unread } from '../../base/unread.ts';
import { readRegularFile, shortUnreadOf } from '../../base/read-file.ts';
import type { FailureArguments } from '../../base/findings/apply.ts';
import type { Shaped } from '../../base/json/schema.ts';
import { parseChecked } from '../../base/json/check.ts';
import { signature as signatureCheck } from '#checks';
import { hashHex } from '#hash';
import type { BundleFiles } from '../make-bundle.ts';
import type { signatureSchema } from '../schemas.ts';

export const signatureFile = 'signature.json';

/** The signer of a bundle, with a serial number that grows with each bundle signed later. */
export type Signature = Shaped<typeof signatureSchema>;

export interface TrustedKey {
  readonly id: string;
  readonly key: KeyObject;
}

/** Identifies a bundle by the SHA-256 of its manifest. The manifest lists the SHA-256 of each other file. */
export function digestOf(files: BundleFiles): string {
  return hashHex(files.get('manifest.json') ?? '');
}

export function groupDigest(digest: string): string {
  return (digest.match(/.{8}/g) ?? []).join(' ');
}

/** Returns the bytes to sign. They begin with their purpose, so that the signature cannot be reused for anything else. */
function message(files: BundleFiles, { serial, bytes }: Pick<Signature, 'serial' | 'bytes'>): Buffer {
  const manifest = `manifest.json sha256 ${digestOf(files)}`;
  return Buffer.from(`kpc bundle\n${manifest}\nserial ${serial}\nbytes ${bytes}\n`);
}

export function bytesOf(files: BundleFiles): number {
  return [...files.values()].reduce((total, text) => total + Buffer.byteLength(text), 0);
}

export function signBundle(files: BundleFiles, key: KeyObject, serial: number): Signature {
  const { id } = nameKey(createPublicKey(key));
  const bytes = bytesOf(files);
  const signature = sign(null, message(files, { serial, bytes }), key).toString('base64');
  return { keyId: id, serial, bytes, signature };
}

export function addSignature(files: BundleFiles, signature: Signature): BundleFiles {
  return new Map([[signatureFile, formatSignature(signature)], ...files]);
}

function formatSignature({ keyId, serial, bytes, signature }: Signature): string {
  return `${JSON.stringify({ keyId, serial, bytes, signature }, undefined, 2)}\n`;
}

/** Returns the signature without checking it. Undefined if there is none; "damaged" if kpc would not write it. */
export function readSignature(files: BundleFiles): Signature | 'damaged' | undefined {
  const text = files.get(signatureFile);
  if (text === undefined) return undefined;
  const reading = parseChecked(signatureCheck, text);
  return 'value' in reading && formatSignature(reading.value) === text ? reading.value : 'damaged';
}

function isSignedBy({ key }: TrustedKey, files: BundleFiles, signature: Signature): boolean {
  return verify(null, message(files, signature), key, Buffer.from(signature.signature, 'base64'));
}

/** Returns the signature, or why none of these keys verifies it. `files` must include the signature and the manifest. */
export function checkSignature(
  path: string,
  files: BundleFiles,
  keys: readonly TrustedKey[],
): Signature | FailureArguments<'not-trusted'> {
  const signature = readSignature(files);
  if (signature === undefined) return { problem: 'unsigned', path };
  if (signature === 'damaged') return { problem: 'damaged', path };
  const key = keys.find(({ id }) => id === signature.keyId);
  if (!key) return { problem: 'unknown-key', path, key: signature.keyId, known: keys.map(({ id }) => id) };
  return isSignedBy(key, files, signature) ? signature : { problem: 'wrong', path };
}

const largestKeyFile = 2 ** 20;

interface NoKey {
  readonly reason: Unread;
}

export function readKeyFile<Keys>(file: string, read: (pem: string) => Keys | NoKey): Keys | NoKey {
  try {
    return read(readRegularFile(file, largestKeyFile).toString('latin1'));
  } catch (error) {
    return { reason: shortUnreadOf(error, file) };
  }
}

export function readPrivateKey(pem: string): KeyObject | NoKey {
  if (/-----BEGIN ENCRYPTED /.test(pem)) return { reason: 'passphrase' };
  return readPemKey(pem, 'private', createPrivateKey);
}

export function readPublicKeys(pem: string): readonly TrustedKey[] | NoKey {
  // A private key is refused, because none must be on a node. A PEM reader would accept it by deriving the public key.
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) return { reason: 'private-key' };
  const blocks = pem.match(/-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----/g) ?? [];
  if (blocks.length === 0) return { reason: { problem: 'no-key', of: 'public' } };
  // A file with other blocks, such as a certificate or an incompletely copied key, is refused.
  if (pem.split('-----BEGIN').length - 1 > blocks.length) return { reason: 'more-than-keys' };
  const keys: TrustedKey[] = [];
  for (const text of blocks) {
    const key = readPemKey(text, 'public', createPublicKey);
    if ('reason' in key) return key;
    keys.push(nameKey(key));
  }
  return keys;
}

function readPemKey(pem: string, of: 'private' | 'public', create: (pem: string) => KeyObject): KeyObject | NoKey {
  try {
    const key = create(pem);
    const { asymmetricKeyType: type } = key;
    return type === 'ed25519' ? key : { reason: { problem: 'no-key', of, type } };
  } catch {
    return { reason: { problem: 'no-key', of } };
  }
}

function nameKey(key: KeyObject): TrustedKey {
  const der = key.export({ type: 'spki', format: 'der' });
  return { id: createHash('sha256').update(der).digest('hex').slice(0, 16), key };
}
