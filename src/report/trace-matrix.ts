import { fitRows, joinCells } from '../base/fit-columns.ts';
import type { DescriptionLine } from '../describe/describe-words.ts';
import { joinHostPort } from '../kernel/address.ts';
import { formatSocketAddress } from '../kernel/socket-address.ts';
import { sourceText, type Fate } from '../packet/packet.ts';
import { endpointsJson } from '../packet/trace/trace-words.ts';
import type { Matrix } from '../packet/trace/matrix.ts';
import { painter } from './colours.ts';

/** A table of a Service's addresses by who sends to them, cut to the width of a terminal if that is what it is for. */
export function formatMatrix(
  { senders, rows, notes }: Matrix,
  node: string,
  { isColoured, width = Infinity }: { readonly isColoured: boolean; readonly width?: number | undefined },
): string {
  const paint = painter(isColoured);
  const cells = [
    [node === '' ? 'to' : `on ${node}, to`, ...senders],
    ...rows.map(({ kind, address, port, protocol, cells: own }) => [
      `${kind} ${joinHostPort(address.text, port)}/${protocol}`,
      ...senders.map((_, i) => fateInShort(own[i]?.fate)),
    ]),
  ];
  const [head = [], ...lines] = fitRows(cells, { width, weights: { 0: 2 }, names: 0 });
  const painted = lines.map((row, at) =>
    row.map((cell, i) => (i === 0 ? cell : paint(roles[rows[at]?.cells[i - 1]?.fate.verdict ?? 'none'], cell))),
  );
  const legend = paint(
    'dim',
    '2 kept: reaches 2 endpoints, which see the client; masq: they see the node; mixed: some of both',
  );
  return `${[paint('heading', joinCells(head)), ...painted.map(joinCells), ...notes, legend].join('\n')}\n`;
}

const roles: { readonly [V in Fate['verdict'] | 'none']: DescriptionLine['role'] } = {
  delivered: 'good',
  refused: 'bad',
  dropped: 'bad',
  unknown: 'bad',
  local: 'plain',
  forwarded: 'plain',
  none: 'dim',
};

/** Where packets end, and whether endpoints see the client. */
function fateInShort(fate: Fate | undefined): string {
  if (!fate) return '-';
  if (fate.verdict !== 'delivered') return fate.verdict;
  const count = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const isMasqueraded = new Set(fate.endpoints.map(({ source }) => source === 'masqueraded'));
  return `${count} ${isMasqueraded.size > 1 ? 'mixed' : isMasqueraded.has(true) ? 'masq' : 'kept'}`;
}

/** The same for programs. */
export function matrixJson({ senders, rows }: Matrix): unknown {
  return rows.flatMap(({ address, port, protocol, cells }) =>
    senders.flatMap((from, i) => {
      const fate = cells[i]?.fate;
      if (!fate) return [];
      return [
        {
          from,
          to: { address: address.text, port, protocol },
          verdict: fate.verdict,
          endpoints: endpointsJson(fate),
          sourceAfter: sourceText(fate.source),
        },
      ];
    }),
  );
}
