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
    ...(example.node === '' || words.includes('--node') ? [] : ['--node', example.node]),
    '--from',
    example.from,
    '--to',
    example.to,
    '--proto',
    example.protocol,
    ...(example.interface === undefined ? [] : ['--in-interface', example.interface]),
  ];
  const again = words.includes('-') ? ' < THE-SAME-INPUT' : '';
  return `${[...words, ...flags].map(shellWord).join(' ')}${again}`;
}
