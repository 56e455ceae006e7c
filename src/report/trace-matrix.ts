import { columnGap, cutCell, fitColumns } from '../base/fit-columns.ts';
import { fateInShort, type Matrix } from '../packet/trace/matrix.ts';
import { descriptionPainter } from './colours.ts';
import { sourceText, type Fate } from '../packet/packet.ts';
import { endpointsJson } from '../packet/trace/explain.ts';

/** A table of a Service's addresses by who sends to them, cut to the width of a terminal if that is what it is for. */
export function formatMatrix(
  { senders, rows, healthChecks }: Matrix,
  node: string,
  { isColoured, width = Infinity }: { readonly isColoured: boolean; readonly width?: number | undefined },
): string {
  const paint = descriptionPainter(isColoured);
  const cells = [
    [node === '' ? 'to' : `on ${node}, to`, ...senders],
    ...rows.map(({ target, fates }) => [target, ...senders.map((_, i) => fateInShort(fates[i]))]),
  ];
  const columns = ['', ...senders].map((_, i) => ({
    wanted: Math.max(...cells.map((row) => row[i]?.length ?? 0)),
    weight: i === 0 ? 2 : 1,
  }));
  const widths = fitColumns(columns, width);
  const [head = '', ...lines] = cells.map((row, at) =>
    row
      .map((cell, i) => {
        const text = cutCell(cell, widths[i] ?? 0, i === 0 && at > 0 ? 'end' : 'start').padEnd(widths[i] ?? 0);
        return at > 0 && i > 0 ? paint(roleOf(rows[at - 1]?.fates[i - 1]), text) : text;
      })
      .join(columnGap)
      .trimEnd(),
  );
  const legend = paint(
    'dim',
    '2 kept: reaches 2 endpoints, which see the client; masq: they see the node; mixed: some of both',
  );
  return `${[paint('heading', head), ...lines, ...healthChecks, legend].join('\n')}\n`;
}

function roleOf(fate: Fate | undefined): 'good' | 'bad' | 'plain' | 'dim' {
  switch (fate?.verdict) {
    case 'delivered':
      return 'good';
    case 'refused':
    case 'dropped':
    case 'unknown':
      return 'bad';
    case 'local':
    case 'forwarded':
      return 'plain';
    case undefined:
      return 'dim';
  }
}

/** The same for programs. */
export function matrixJson({ senders, rows }: Matrix): unknown {
  return rows.flatMap(({ address, port, protocol, fates }) =>
    senders.flatMap((from, i) => {
      const fate = fates[i];
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
