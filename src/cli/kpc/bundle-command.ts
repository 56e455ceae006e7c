import { refuse } from '../../library/refusal.ts';
import { InvalidArgumentError } from 'commander';
import { count, printable } from '../../base/printable.ts';
import { packBundle, verifyBundle } from '../../library/node/bundle.ts';
import { formatError, formatHelp } from '../../say/formats/text.ts';
import { flagRow } from '../../library/options.ts';
import { exitStatus } from '../shared/terminal.ts';
import { defineCommand } from './call.ts';
import type { MessageOptions } from './messages.ts';

interface BundleOptions extends MessageOptions {
  readonly out?: string;
  readonly sign?: string;
  readonly serial?: number;
  readonly trust?: readonly string[];
}

const actions = ['pack', 'verify'] as const;

/** The flags of each action. `pack` needs -o. */
const optionsOf: Readonly<Record<(typeof actions)[number], readonly (keyof BundleOptions)[]>> = {
  pack: ['out', 'sign', 'serial'],
  verify: ['trust'],
};

export const addBundleCommand = defineCommand<BundleOptions>({
  name: 'bundle',
  summary: 'Pack a bundle into one file to carry to its node, or verify a bundle or a pack.',
  description:
    'Pack a bundle into one file to carry to its node; the same bundle always gives the same bytes. Or verify a bundle or a pack ' +
    'before it is carried, as kpc-apply does on the node: exit status 1 if kpc-apply would refuse it.',
  arguments: [
    ['<action>', 'what to do', actions],
    ['<bundle>', 'the folder of the bundle; to verify, also a pack'],
  ],
  flags: [
    flagRow('text', '-o, --out <file>', 'pack: the pack to write, such as node.tgz'),
    flagRow('text', '--sign <file>', 'pack: sign it with the Ed25519 private key in this PEM file'),
    flagRow(
      'text',
      '--serial <number>',
      'pack: sign this number too (default: 0); with --trust, a node refuses lower numbers from then on',
      { parse: parseSerial },
    ),
    flagRow(
      'list',
      '--trust <file>',
      'verify: the pack must be signed by one of the public keys in this PEM file (repeat for more)',
    ),
  ],
  run: async (call) => {
    const [word, path = ''] = call.words;
    const action = word === 'verify' ? 'verify' : 'pack';
    const strange = (call.given.map(({ key }) => key) as (keyof BundleOptions)[]).filter(
      (name) => !optionsOf[action].includes(name),
    );
    if (strange.length > 0)
      refuse({ problem: 'flag-of-other-action', action, flags: strange.map((name) => `--${name}`) });
    const { out, sign, serial = 0, trust = [] } = call.options;
    if (action === 'pack') {
      if (out === undefined) return refuse({ problem: 'no-pack' });
      await call.terminal.err(await packBundle(path, { out, sign, serial }));
      return exitStatus.ok;
    }
    const verified = await verifyBundle(path, trust);
    if ('text' in verified) {
      await call.out(verified.text);
      return exitStatus.ok;
    }
    const { problems } = verified;
    const list = problems.map((problem) => `  ${printable(problem)}\n`).join('');
    await call.terminal.err(
      `${formatError(`${path} is refused: ${count(problems.length, 'problem')}`)}${list}${formatHelp(verified.advice)}`,
    );
    return exitStatus.negative;
  },
});

function parseSerial(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Write a whole number, such as the one that "date +%s" prints.');
}
