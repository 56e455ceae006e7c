import { columnGap } from '../base/fit-columns.ts';
import type { DescriptionLine } from '../describe/describe-words.ts';
import { joinHostPort } from '../kernel/address.ts';
import { formatSocketAddress } from '../kernel/socket-address.ts';
import { sourceText, type Fate } from '../packet/packet.ts';
import { endpointsJson } from '../packet/trace/trace-words.ts';
import type { Matrix } from '../packet/trace/matrix.ts';
import { descriptionPainter } from './colours.ts';

/** A table of a Service's addresses by who sends to them. */
export function formatMatrix({ senders, rows, notes }: Matrix, node: string, isColoured: boolean): string {
  const paint = descriptionPainter(isColoured);
  const cells = [
    [node === '' ? 'to' : `on ${node}, to`, ...senders],
    ...rows.map(({ kind, address, port, protocol, cells: own }) => [
      `${kind} ${joinHostPort(address.text, port)}/${protocol}`,
      ...senders.map((_, i) => fateInShort(own[i]?.fate)),
    ]),
  ];
  const widths = ['', ...senders].map((_, i) => Math.max(...cells.map((row) => row[i]?.length ?? 0)));
  const [head = '', ...lines] = cells.map((row, at) =>
    row
      .map((cell, i) => {
        const text = cell.padEnd(widths[i] ?? 0);
        return at > 0 && i > 0 ? paint(roles[rows[at - 1]?.cells[i - 1]?.fate.verdict ?? 'none'], text) : text;
      })
      .join(columnGap)
      .trimEnd(),
  );
  const legend = paint(
    'dim',
    '2 kept: reaches 2 endpoints, which see the client; masq: they see the node; mixed: some of both',
  );
  return `${[paint('heading', head), ...lines, ...notes, legend].join('\n')}\n`;
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
      const to = { address: address.text, port, protocol };
      const end = fate && {
        verdict: fate.verdict,
        endpoints: endpointsJson(fate),
        sourceAfter: sourceText(fate.source),
      };
      return end ? [{ from, to, ...end }] : [];
    }),
  );
}
