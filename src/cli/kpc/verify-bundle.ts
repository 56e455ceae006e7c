import { existsSync, statSync } from 'node:fs';
import { printable } from '../../base/printable.ts';
import { count, formatCount } from '../../base/format-count.ts';
import { describeUnread, readRegularFile, UnreadableFile } from '../../base/read-file.ts';
import { describeError } from '../../base/system-errors.ts';
import { checkBundle } from '../../bundle/check-bundle.ts';
import { holdsGolden, isBundleFile, largestBundle, readFolder } from '../../bundle/folder.ts';
import type { BundleFiles } from '../../bundle/make-bundle.ts';
import {
  bytesOf,
  digestOf,
  groupDigest,
  isSignedBy,
  readPublicKeys,
  readSignature,
  signatureFile,
  type TrustedKey,
} from '../../bundle/pack/signature.ts';
import { compileState } from '../../snapshot/open/compile-node.ts';
import { summarize } from '../../report/bundle-text.ts';
import { formatError } from '../../report/render-diagnostics.ts';
import { exitStatus, type ExitStatus, type Terminal } from '../shared/terminal.ts';
import { refuse } from './messages.ts';

const largestKeyFile = 2 ** 20;

/**
 * kpc bundle verify: what kpc-apply checks before it applies a bundle or a pack, except for what only its node knows. All that is
 * wrong is reported at once.
 */
export async function verifyBundle(path: string, trust: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  const keys: TrustedKey[] = [];
  for (const file of trust) {
    const read = readKeys(file);
    if (typeof read === 'string') return refuse(terminal, `--trust ${file}: ${read}`);
    keys.push(...read);
  }
  const files = await readEither(path);
  if (typeof files === 'string') return refuse(terminal, `${path}: ${files}`);
  const isPack = !statSync(path).isDirectory();
  const signer = describeSigner(files, trust.length > 0 ? keys : undefined);
  const bundle = new Map([...files].filter(([name]) => name !== signatureFile));
  const reading = checkBundle(bundle, compileState);
  const problems = [
    ...(signer.isWrong ? [signer.words] : []),
    ...(reading.kind === 'broken' ? reading.problems : []),
    ...(reading.kind === 'bundle' && reading.bundle.manifest.dumped
      ? ['it is a dump that "kpc-apply dump" wrote, which names no Services']
      : []),
  ];
  if (reading.kind === 'broken' || problems.length > 0) {
    const wrong = `${path} is refused: ${count(problems.length, 'problem')}`;
    const list = problems.map((problem) => `  ${printable(problem)}\n`).join('');
    await terminal.err(`${formatError(wrong)}${list}`);
    return exitStatus.negative;
  }
  const { manifest } = reading.bundle;
  const form = isPack ? 'a pack' : 'a bundle';
  await terminal.out(
    `${printable(path)}: ${form} as kpc ${manifest.kpcVersion} writes it, ${formatCount(bytesOf(bundle))} bytes, ${signer.words}\n` +
      `digest ${groupDigest(digestOf(files))}\n${printable(summarize(manifest))}\n`,
  );
  return exitStatus.ok;
}

/** The files of a folder or a pack; a sentence says why there are none. */
async function readEither(path: string): Promise<BundleFiles | string> {
  try {
    if (!existsSync(path)) return 'there is no such folder or file';
    if (statSync(path).isDirectory()) {
      if (await holdsGolden(path)) return 'it is a golden, for git: write a bundle with "kpc compile -o"';
      return await readFolder(path, isBundleFile, largestBundle);
    }
    const { readPack } = await import('../../bundle/pack/pack.ts');
    return (await readPack(path)) ?? 'it is neither a folder nor a pack that "kpc bundle pack" wrote';
  } catch (error) {
    return error instanceof UnreadableFile ? error.reason : describeError(error);
  }
}

/** A sentence says why there are no keys. */
function readKeys(file: string): readonly TrustedKey[] | string {
  try {
    return readPublicKeys(readRegularFile(file, largestKeyFile).toString('latin1'));
  } catch (error) {
    return describeUnread(error);
  }
}

/** Who signed the bundle. `keys` are those that may have, if it matters. */
function describeSigner(
  files: BundleFiles,
  keys: readonly TrustedKey[] | undefined,
): { readonly isWrong: boolean; readonly words: string } {
  const signature = readSignature(files);
  if (signature === 'damaged') return { isWrong: true, words: 'signature damaged' };
  if (!signature) return { isWrong: keys !== undefined, words: 'not signed' };
  const { keyId, serial } = signature;
  if (!keys) return { isWrong: false, words: `signed by key ${keyId}, which is not checked (no --trust)` };
  const key = keys.find(({ id }) => id === keyId);
  if (!key) {
    const known = keys.map(({ id }) => id).join(', ');
    return { isWrong: true, words: `signed by key ${keyId}, which is not trusted (trusted keys: ${known})` };
  }
  const bundle = new Map([...files].filter(([name]) => name !== signatureFile));
  if (isSignedBy(key, bundle, signature) && bytesOf(bundle) === signature.bytes) {
    return { isWrong: false, words: `signed by key ${keyId}, serial ${serial}` };
  }
  return { isWrong: true, words: 'wrong signature: the bundle has changed since it was signed' };
}
