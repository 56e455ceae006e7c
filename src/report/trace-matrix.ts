import { fitRows, joinCells } from '../base/fit-columns.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { DescriptionLine } from '../describe/describe-words.ts';
import { joinHostPort } from '../kernel/address.ts';
import { formatSocketAddress } from '../kernel/socket-address.ts';
import { sourceText, type Fate } from '../packet/packet.ts';
import { endpointsJson } from '../packet/trace/trace-words.ts';
import type { Matrix } from '../packet/trace/matrix.ts';
import { painter } from './colours.ts';

/** A table of a Service's addresses by who sends to them, cut to the width of a terminal if that is what it is for. */
export function formatMatrix(
  { senders, cells, notes }: Matrix,
  node: string,
  { isColoured, width = Infinity }: { readonly isColoured: boolean; readonly width?: number | undefined },
): string {
  const paint = painter(isColoured);
  const rows = groupBy(
    cells,
    ({ kind, target: { address, port, protocol } }) => `${kind} ${joinHostPort(address.text, port)}/${protocol}`,
  );
  const fates = [...rows.values()].map((own) =>
    senders.map((_, at) => inShort(own.find(({ column }) => column === at)?.fate)),
  );
  const table = [
    [node === '' ? 'to' : `on ${node}, to`, ...senders],
    ...[...rows.keys()].map((address, at) => [address, ...(fates[at] ?? []).map(({ text }) => text)]),
  ];
  const [head = [], ...lines] = fitRows(table, { width, weights: { 0: 2 }, names: 0 });
  const painted = lines.map((row, at) =>
    row.map((cell, i) => (i === 0 ? cell : paint(fates[at]?.[i - 1]?.role ?? 'plain', cell))),
  );
  const legend = paint(
    'dim',
    '2 kept: reaches 2 endpoints, which see the client; masq: they see the node; mixed: some of both',
  );
  return `${[paint('heading', joinCells(head)), ...painted.map(joinCells), ...notes, legend].join('\n')}\n`;
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
