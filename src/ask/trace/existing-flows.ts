import { count, formatCount } from '../../base/printable.ts';
import { formatSocketAddress, type SocketAddress } from '../../kernel/ports-and-marks.ts';
import type { Trace } from './question.ts';
import type { Scene } from './scene.ts';

/** Destinations of the dump's flows between the packet's two ends. */
interface ExistingFlows {
  /** Whether these are the sender's own flows; if not, they are those of all clients. */
  readonly isSender: boolean;
  /** Sorted by number of flows, the most first. */
  readonly ends: readonly { readonly end: SocketAddress; readonly flows: number }[];
}

/**
 * Finds the listed flows to the packet's destination, because rules only decide for the first packet of a flow. Prefers the
 * sender's own flows. Undefined if there are none.
 */
export function findExistingFlows(
  { sender, target }: Pick<Trace, 'sender' | 'target'>,
  { side: { flows = [] } }: Pick<Scene, 'side'>,
): ExistingFlows | undefined {
  const to = formatSocketAddress(target);
  const all = flows.filter((flow) => flow.protocol === target.protocol && formatSocketAddress(flow.destination) === to);
  const own = all.filter(({ source }) => source.address.text === sender.address?.text);
  const ends = new Map<string, { readonly end: SocketAddress; flows: number }>();
  for (const { answers: end } of own.length > 0 ? own : all) {
    const known = ends.get(formatSocketAddress(end));
    if (known) known.flows++;
    else ends.set(formatSocketAddress(end), { end, flows: 1 });
  }
  if (ends.size === 0) return undefined;
  return { isSender: own.length > 0, ends: [...ends.values()].sort((a, b) => b.flows - a.flows) };
}

/** Most ends that a sentence names. */
const mostNamed = 5;

/** A sentence about them. `serves`: whether an endpoint takes new flows; undefined if unknown. */
export function existingFlowWords(
  { isSender, ends }: ExistingFlows,
  serves: (endpoint: string) => boolean | undefined,
): string {
  const total = ends.reduce((sum, { flows }) => sum + flows, 0);
  const named = ends.slice(0, mostNamed).map(({ end, flows }) => {
    const at = formatSocketAddress(end);
    return `${formatCount(flows)} to ${at}${serves(at) === false ? ', where no rule leads now' : ''}`;
  });
  const more = ends.length > mostNamed ? `; and ${count(ends.length - mostNamed, 'more end')}` : '';
  const whose = isSender ? 'of this sender' : 'to the same address';
  const exist = total === 1 ? 'exists and keeps its end' : 'exist and keep their ends';
  return `${count(total, 'flow')} ${whose} ${exist}, whatever the rules say: ${named.join('; ')}${more}`;
}
