import { shellWord } from '../../base/printable.ts';

/** A packet in the words of kpc trace. */
export interface TracedPacket {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  readonly interface?: string | undefined;
  /** Empty if nothing names the node. */
  readonly node: string;
}

/** A command to paste that traces a packet. `words` name the input, without the packet; of stdin, the command says to give it again. */
export function traceCommand(words: readonly string[], example: TracedPacket): string {
  const flags = [
    ...(example.node === '' ? [] : ['--node', example.node]),
    '--from',
    example.from,
    '--to',
    example.to,
    '--proto',
    example.protocol,
    ...(example.interface === undefined ? [] : ['--in-interface', example.interface]),
  ];
  const at = example.node === '' ? -1 : words.indexOf('--node');
  const input = at < 0 ? words : words.toSpliced(at, 2);
  const again = words.includes('-') ? ' < THE-SAME-INPUT' : '';
  return `${[...input, ...flags].map(shellWord).join(' ')}${again}`;
}
