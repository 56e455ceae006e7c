import { Argument, InvalidArgumentError, type Command } from 'commander';
import { formatCount } from '../../base/format-count.ts';
import { describeUnread, readRegularFile } from '../../base/read-file.ts';
import { replaceFile } from '../../base/replace-file.ts';
import { describeError, hasCode } from '../../base/system-errors.ts';
import { isBundleFile, readFolder } from '../../bundle/folder.ts';
import { addSignature, digestOf, groupDigest, readPrivateKey, signBundle } from '../../bundle/pack/signature.ts';
import { readBundle } from '../../bundle/read-bundle.ts';
import { type Done, type ExitStatus, type Terminal, exitStatus } from '../shared/terminal.ts';
import { flagRow } from '../../settings/flag.ts';
import { addFlags } from './flags.ts';
import { refuse } from './messages.ts';
import { verifyBundle } from './verify-bundle.ts';

interface BundleOptions {
  readonly out?: string;
  readonly sign?: string;
  readonly serial?: number;
  readonly trust?: readonly string[];
}

const actions = ['pack', 'verify'] as const;

/** The options of each action; -o is needed for the first. */
const optionsOf: Readonly<Record<(typeof actions)[number], readonly (keyof BundleOptions)[]>> = {
  pack: ['out', 'sign', 'serial'],
  verify: ['trust'],
};

export function addBundleCommand(program: Command, terminal: Terminal, done: Done): void {
  const command: Command = program
    .command('bundle')
    .description(
      'Pack a bundle into one file, to carry it to its node: the same bytes for the same bundle. Or verify a bundle or a pack ' +
        'before it is carried, as kpc-apply does on the node: exit status 1 if kpc-apply would refuse it.',
    )
    .addArgument(new Argument('<action>', 'what to do').choices(actions))
    .argument('<bundle>', 'the folder of the bundle; to verify, also a pack');
  addFlags(command, [
    flagRow('text', '-o, --out <file>', 'pack: the pack to write, such as node.tgz'),
    flagRow('text', '--sign <file>', 'pack: sign it with the Ed25519 private key in this PEM file'),
    flagRow(
      'text',
      '--serial <number>',
      'pack: sign this number too (default: 0); with --trust, a node refuses lower ones from then on',
      { parse: parseSerial },
    ),
    flagRow(
      'list',
      '--trust <file>',
      'verify: the pack must be signed by one of the public keys in this PEM file (repeat for more)',
    ),
  ]).action(async (action: (typeof actions)[number], path: string, options: BundleOptions) => {
    const strange = (Object.keys(options) as (keyof BundleOptions)[]).filter(
      (name) => !optionsOf[action].includes(name),
    );
    if (strange.length > 0) {
      command.error(`error: kpc bundle ${action} takes no ${strange.map((name) => `--${name}`).join(' and no ')}`);
    }
    if (action === 'verify') {
      done(await verifyBundle(path, options.trust ?? [], terminal));
      return;
    }
    const { out, sign, serial = 0 } = options;
    if (out === undefined)
      command.error('error: no pack is named\nname the file to write with -o, such as -o node.tgz');
    done(await runPack(path, { out, sign, serial }, terminal));
  });
}

function parseSerial(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write a whole number, such as the one that "date +%s" prints.');
}

interface PackOptions {
  readonly out: string;
  readonly sign: string | undefined;
  readonly serial: number;
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
    const { isPackable, packFiles } = await import('../../bundle/pack/pack.ts');
    const signature = key && signBundle(files, key, serial);
    const bytes = packFiles(signature ? addSignature(files, signature) : files);
    if (!isPackable(files, bytes)) {
      return await refuse(terminal, `${folder} is too large to pack: copy the folder instead`);
    }
    await replaceFile(out, bytes, { mode: 0o644, isDurable: false });
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

/** A sentence says why there is no private key. */
function readKeyFile(path: string): ReturnType<typeof readPrivateKey> {
  try {
    return readPrivateKey(readRegularFile(path).toString('latin1'));
  } catch (error) {
    return describeUnread(error);
  }
}
