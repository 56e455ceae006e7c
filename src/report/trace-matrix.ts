import type { Fate } from '../packet/packet.ts';
import { fateInShort, type Matrix } from '../packet/trace/matrix.ts';
import { descriptionPainter } from './colours.ts';
import { endpointsJson, sourceText } from '../packet/trace/explain.ts';

/** A table of a Service's addresses by who sends to them. */
export function formatMatrix({ senders, rows, healthChecks }: Matrix, node: string, isColoured: boolean): string {
  const paint = descriptionPainter(isColoured);
  const cells = rows.map(({ fates }) => senders.map((_, i) => fateInShort(fates[i])));
  const first = Math.max(4, ...rows.map(({ target }) => target.length));
  const widths = senders.map((sender, i) => Math.max(sender.length, ...cells.map((row) => row[i]?.length ?? 0)));
  const head = [
    (node === '' ? 'to' : `on ${node}, to`).padEnd(first),
    ...senders.map((each, i) => each.padEnd(widths[i] ?? 0)),
  ];
  const lines = rows.map(({ target, fates }, at) => {
    const row = senders.map((_, i) => paint(roleOf(fates[i]), (cells[at]?.[i] ?? '').padEnd(widths[i] ?? 0)));
    return [target.padEnd(first), ...row].join('  ').trimEnd();
  });
  const legend = paint(
    'dim',
    '2 kept: reaches 2 endpoints, which see the client; masq: they see the node; mixed: some of both',
  );
  return `${[paint('heading', head.join('  ').trimEnd()), ...lines, ...healthChecks, legend].join('\n')}\n`;
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
