import { columnGap } from '../base/fit-columns.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { DescriptionLine } from '../describe/describe-words.ts';
import { joinHostPort } from '../kernel/address.ts';
import { formatSocketAddress } from '../kernel/socket-address.ts';
import { sourceText, type Fate } from '../packet/packet.ts';
import { endpointsJson } from '../packet/trace/trace-words.ts';
import type { Matrix } from '../packet/trace/matrix.ts';
import { descriptionPainter } from './colours.ts';

/** A table of a Service's addresses by who sends to them. */
export function formatMatrix({ senders, cells, notes }: Matrix, node: string, isColoured: boolean): string {
  const paint = descriptionPainter(isColoured);
  const rows = groupBy(
    cells,
    ({ kind, target: { address, port, protocol } }) => `${kind} ${joinHostPort(address.text, port)}/${protocol}`,
  );
  const table = [
    [node === '' ? 'to' : `on ${node}, to`, ...senders].map((text) => ({ role: 'plain', text }) as const),
    ...[...rows].map(([text, own]) => [
      { role: 'plain', text } as const,
      ...senders.map((sender) => inShort(own.find(({ from }) => from === sender)?.fate)),
    ]),
  ];
  const widths = ['', ...senders].map((_, i) => Math.max(...table.map((row) => row[i]?.text.length ?? 0)));
  const [head = '', ...lines] = table.map((row) =>
    row
      .map(({ role, text }, i) => paint(role, text.padEnd(widths[i] ?? 0)))
      .join(columnGap)
      .trimEnd(),
  );
  const legend = paint(
    'dim',
    '2 kept: reaches 2 endpoints, which see the client; masq: they see the node; mixed: some of both',
  );
  return `${[paint('heading', head), ...lines, ...notes, legend].join('\n')}\n`;
}

const roles: { readonly [V in Fate['verdict']]: DescriptionLine['role'] } = {
  delivered: 'good',
  refused: 'bad',
  dropped: 'bad',
  unknown: 'bad',
  local: 'plain',
  forwarded: 'plain',
};

/** Where packets end, and whether endpoints see the client. */
function inShort(fate: Fate | undefined): Pick<DescriptionLine, 'role' | 'text'> {
  if (!fate) return { role: 'dim', text: '-' };
  const role = roles[fate.verdict];
  if (fate.verdict !== 'delivered') return { role, text: fate.verdict };
  const count = new Set(fate.endpoints.map(formatSocketAddress)).size;
  const isMasqueraded = new Set(fate.endpoints.map(({ source }) => source === 'masqueraded'));
  return { role, text: `${count} ${isMasqueraded.size > 1 ? 'mixed' : isMasqueraded.has(true) ? 'masq' : 'kept'}` };
}

/** The same for programs. */
export function matrixJson({ cells }: Matrix): unknown {
  return cells.map(({ from, target: { address, port, protocol }, fate }) => ({
    from,
    to: { address: address.text, port, protocol },
    verdict: fate.verdict,
    endpoints: endpointsJson(fate),
    sourceAfter: sourceText(fate.source),
  }));
}
