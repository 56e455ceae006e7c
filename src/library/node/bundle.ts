import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve, sep } from 'node:path';
import type { FailureArguments } from '../../base/findings/apply.ts';
import { shortUnreadOf } from '../../base/read-file.ts';
import { replaceFile } from '../../base/open-folder.ts';
import { hasCode } from '../../base/system-errors.ts';
import { checkBundle } from '../../bundle/check-bundle.ts';
import { holdsGolden, isBundleFile, isFile, largestBundle, readFolder } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import { readBundle, type BundleReading } from '../../bundle/read-bundle.ts';
import {
  addSignature,
  bytesOf,
  checkSignature,
  digestOf,
  groupDigest,
  readKeyFile,
  readPrivateKey,
  readPublicKeys,
  readSignature,
  signatureFile,
  signBundle,
  type TrustedKey,
} from '../../bundle/pack/signature.ts';
import { compileState } from '../../snapshot/open/compile-node.ts';
import { bundleFaultWords } from '../../say/words/bundle.ts';
import { sayApply } from '../../say/words/apply.ts';
import { packedWords, verifiedWords } from '../../say/bundle-text.ts';
import { refuse } from '../refusal.ts';

/** Writes a pack, and returns a description of it. Refuses a folder that contains no bundle. */
export async function packBundle(
  folder: string,
  { out, sign, serial }: { readonly out: string; readonly sign: string | undefined; readonly serial: number },
): Promise<string> {
  const files = await readFilesOf(folder);
  const reading = readBundle(files, compileState);
  if (reading.kind === 'broken') return refuse({ problem: 'no-bundle', folder, problems: reading.problems });
  const key = sign === undefined ? undefined : readKeyFile(sign, readPrivateKey);
  if (key && 'reason' in key) return refuse({ problem: 'no-key', flag: '--sign', file: sign ?? '', ...key });
  const { isPackable, isPack, packFiles } = await import('../../bundle/pack/pack.ts');
  const { size = 0 } = statSync(out, { throwIfNoEntry: false }) ?? {};
  if (isWithin(out, folder)) refuse({ problem: 'folder', wrong: { kind: 'is-in-bundle', folder: out } });
  if (size > 0 && (await isFile(out)) && !(await isPack(out)))
    refuse({ problem: 'folder', wrong: { kind: 'is-no-pack', folder: out } });
  const signature = key && signBundle(files, key, serial);
  const bytes = packFiles(signature ? addSignature(files, signature) : files);
  if (!isPackable(files, bytes)) refuse({ problem: 'too-large-to-pack', folder });
  try {
    await replaceFile(out, bytes, { mode: 0o644, isDurable: false });
  } catch (error) {
    return refuse({ problem: 'folder', wrong: { kind: 'io', folder: out, reason: shortUnreadOf(error, out) } });
  }
  const { name: node } = reading.bundle.manifest.node;
  return packedWords(out, node, { bytes: bytes.length, digest: groupDigest(digestOf(files)), keyId: signature?.keyId });
}

function isWithin(file: string, folder: string): boolean {
  const parent = dirname(resolve(file));
  if (!existsSync(parent)) return false;
  const [inner, outer] = [parent, folder].map((path) => `${realpathSync(path)}${sep}`);
  return inner !== undefined && outer !== undefined && inner.startsWith(outer);
}

async function readFilesOf(folder: string, most?: number): Promise<BundleFiles> {
  try {
    return await readFolder(folder, isBundleFile, most);
  } catch (error) {
    if (!existsSync(folder)) return refuse({ problem: 'neither-bundle-nor-pack', path: folder, is: 'missing' });
    if (hasCode(error, 'ENOTDIR')) return refuse({ problem: 'not-a-folder', path: folder });
    return refuse({ problem: 'unreadable', path: folder, reason: shortUnreadOf(error, folder) });
  }
}

/** Makes kpc-apply's checks before an apply, except checks of the node. Returns a description, or all reasons to refuse the bundle. */
export async function verifyBundle(path: string, trust: readonly string[]) {
  const keys: TrustedKey[] = [];
  for (const file of trust) {
    const read = readKeyFile(file, readPublicKeys);
    if ('reason' in read) return refuse({ problem: 'no-key', flag: '--trust', file, ...read });
    keys.push(...read);
  }
  const files = await readEither(path);
  const isPack = !statSync(path).isDirectory();
  const bundle = new Map([...files].filter(([name]) => name !== signatureFile));
  const signature = readSignature(files);
  const checked = trust.length > 0 || signature === 'damaged' ? checkSignature(path, files, keys) : undefined;
  const untrusted = checked && 'problem' in checked ? sayApply({ code: 'not-trusted', arguments: checked }) : undefined;
  const reading = checkBundle(bundle, compileState);
  const fault = faultOf(path, reading);
  const unfit = fault && sayApply({ code: 'bad-bundle', arguments: fault });
  if (reading.kind === 'broken' || untrusted || unfit) {
    const problems = reading.kind === 'broken' ? reading.problems.map(bundleFaultWords) : unfit ? [unfit.text] : [];
    return { problems: [...(untrusted ? [untrusted.text] : []), ...problems], advice: (unfit ?? untrusted)?.help };
  }
  const { keyId, serial } = typeof signature === 'object' ? signature : {};
  const facts = { bytes: bytesOf(bundle), digest: groupDigest(digestOf(files)), keyId };
  const what = `${path}: ${isPack ? 'a pack' : 'a bundle'}`;
  return { text: verifiedWords(what, reading.bundle, facts, trust.length > 0 ? serial : undefined) };
}

function faultOf(path: string, reading: BundleReading): FailureArguments<'bad-bundle'> | undefined {
  if (reading.kind === 'broken')
    return { problem: 'broken', path, problems: reading.problems, writer: reading.manifest?.kpcVersion };
  return reading.bundle.manifest.dumped && { problem: 'dump', path };
}

async function readEither(path: string): Promise<BundleFiles> {
  if (!existsSync(path) || statSync(path).isDirectory()) {
    if (await holdsGolden(path)) return refuse({ problem: 'neither-bundle-nor-pack', path, is: 'golden' });
    return readFilesOf(path, largestBundle);
  }
  const { readPack } = await import('../../bundle/pack/pack.ts');
  const files = await readPack(path).catch((error: unknown) =>
    refuse({ problem: 'unreadable', path, reason: shortUnreadOf(error, path) }),
  );
  return files ?? refuse({ problem: 'neither-bundle-nor-pack', path, is: 'other' });
}
