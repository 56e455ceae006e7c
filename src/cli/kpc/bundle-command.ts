import { Argument, InvalidArgumentError, Option, type Command } from 'commander';
import { formatCount } from '../../base/format-count.ts';
import { describeUnread, readRegularFile } from '../../base/read-file.ts';
import { replaceFile } from '../../base/replace-file.ts';
import { describeError, hasCode } from '../../base/system-errors.ts';
import { isBundleFile, readFolder } from '../../bundle/folder.ts';
import { addSignature, digestOf, groupDigest, readPrivateKey, signBundle } from '../../bundle/pack/signature.ts';
import { readBundle } from '../../bundle/read-bundle.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { refuse } from './messages.ts';

interface PackOptions {
  readonly out: string;
  readonly sign?: string;
  readonly serial: number;
}

export function addBundleCommand(program: Command, terminal: Terminal, done: Done): void {
  program
    .command('bundle')
    .description('Pack a bundle into one file, to carry it to its node: the same bytes for the same bundle.')
    .addArgument(new Argument('<action>', 'what to do').choices(['pack']))
    .argument('<folder>', 'the bundle')
    .requiredOption('-o, --out <file>', 'the pack to write, such as node.tgz')
    .option('--sign <file>', 'sign it with the Ed25519 private key in this PEM file')
    .addOption(
      new Option('--serial <number>', 'sign this number too: with --trust, a node refuses lower ones from then on')
        .argParser(parseSerial)
        .default(0),
    )
    .action(async (_action: string, folder: string, options: PackOptions) => {
      done(await runPack(folder, options, terminal));
    });
}

function parseSerial(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write a whole number, such as the one that "date +%s" prints.');
}

async function runPack(folder: string, { out, sign, serial }: PackOptions, terminal: Terminal): Promise<ExitStatus> {
  try {
    const files = await readFolder(folder, isBundleFile);
    const reading = readBundle(files);
    if (reading.kind === 'broken') {
      return await refuse(terminal, `${folder} is not a bundle: ${reading.problems.join('; ')}`);
    }
    const key = sign === undefined ? undefined : readKeyFile(sign);
    if (typeof key === 'string') {
      return await refuse(
        terminal,
        `--sign ${sign}: ${key}`,
        'make one: openssl genpkey -algorithm ed25519 -out kpc.key',
      );
    }
    const size = [...files.values()].reduce((total, text) => total + Buffer.byteLength(text), 0);
    const { largestBundle, packFiles } = await import('../../bundle/pack/pack.ts');
    if (size > largestBundle) return await refuse(terminal, `${folder} is too large to pack: copy the folder instead`);
    const signature = key && signBundle(files, key, serial);
    const bytes = packFiles(signature ? addSignature(files, signature) : files);
    replaceFile(out, bytes);
    const { name } = reading.bundle.manifest.node;
    const node = name === '' ? '' : ` for node ${name}`;
    const signer = signature ? `signed by key ${signature.keyId}` : 'not signed';
    await terminal.err(
      `${out}: the bundle${node}, ${formatCount(bytes.length)} bytes, ${signer}\ndigest ${groupDigest(digestOf(files))}\n`,
    );
    return exitStatus.ok;
  } catch (error) {
    return refuse(terminal, hasCode(error, 'ENOTDIR') ? `${folder} is not a folder` : describeError(error));
  }
}

/** The private key in a file; a sentence says why there is none. */
function readKeyFile(path: string): ReturnType<typeof readPrivateKey> {
  try {
    return readPrivateKey(readRegularFile(path).toString('latin1'));
  } catch (error) {
    return describeUnread(error);
  }
}
