import { nameSome, percent } from '../../base/printable.ts';
import { sourceText } from '../../packet/packet.ts';
import { sharesOf, type Unexpected } from '../../ask/trace/expectation.ts';
import type { PacketResult } from '../../ask/trace/packet-tests.ts';
import { connectionWords, connectionDoes } from './connection.ts';
import { verdictCondition } from './stop.ts';

/** A sentence for each difference between a packet's fate and the expectation. */
export function faultsInWords(result: PacketResult): readonly string[] {
  return result.faults.map((fault) => faultWords(fault, result));
}

function faultWords(fault: Unexpected, { trace, scene }: Pick<PacketResult, 'trace' | 'scene'>): string {
  const { fate, target } = trace;
  const connection = connectionWords(trace, scene);
  const why = connection.reason === undefined ? '' : `: ${connection.reason}`;
  switch (fault.kind) {
    case 'works':
      return `expected that the connection fails, but it ${connectionDoes[connection.kind]}`;
    case 'fails':
      return `it is ${fate.verdict}, but the connection fails${why}`;
    case 'verdict': {
      const reached = fate.verdict === 'delivered' ? ` to ${[...sharesOf(fate).keys()].join(', ')}` : '';
      return `expected ${fault.expected}, but it is ${fate.verdict}${reached}${verdictCondition(target, fate, scene)}`;
    }
    case 'lost':
      return `${percent(fault.share)} of connections are not ${fate.verdict}`;
    case 'failing':
      return `${percent(fault.share)} of connections fail${why}`;
    case 'endpoints': {
      const [reached, missed] = [nameSome(fault.reached), nameSome(fault.missed)];
      if (reached === '') return `did not go to ${missed}`;
      return missed === '' ? `also went to ${reached}` : `went to ${reached}, expected ${missed}`;
    }
    case 'share':
      return `${fault.endpoint} got ${percent(fault.share)} of connections, expected ${percent(fault.wanted)}`;
    case 'source': {
      const changed = fault.seen === 'changed' ? ` (${sourceText(fate.source)})` : '';
      return `expected the source ${fault.expected}, but it is ${fault.seen}${changed}`;
    }
  }
}
