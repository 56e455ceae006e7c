import { printable } from '../base/printable.ts';
import { escapeXml } from './junit.ts';
import type { TraceInWords } from '../packet/trace/trace-words.ts';

const width = 960;
const lineHeight = 18;
const railX = 32;
const cardX = 64;

/** Colours that can be read on a light page and on a dark one. */
const style = `.kpc .page{fill:#ffffff}.kpc .card{fill:#f6f8fa;stroke:#d0d7de}.kpc text{fill:#1f2328}.kpc .dim{fill:#59636e}
.kpc .hook{fill:#0969da}.kpc .rail{stroke:#0969da;fill:none}.kpc .stop{fill:#0969da}.kpc .good{fill:#1a7f37}.kpc .bad{fill:#d1242f}
@media (prefers-color-scheme:dark){.kpc .page{fill:#0d1117}.kpc .card{fill:#161b22;stroke:#30363d}.kpc text{fill:#e6edf3}
.kpc .dim{fill:#9198a1}.kpc .hook{fill:#79c0ff}.kpc .rail{stroke:#79c0ff}.kpc .stop{fill:#79c0ff}.kpc .good{fill:#7ee787}.kpc .bad{fill:#ff7b72}}`;

type Role = 'plain' | 'bold' | 'dim' | 'rule' | 'hook' | 'good' | 'bad';

interface Line {
  readonly role: Role;
  readonly text: string;
}

/** Draws the ways of packets through the hooks of the kernel, one below the other. */
export function drawTraces(traces: readonly TraceInWords[]): string {
  const parts: string[] = [];
  let y = 16;
  for (const trace of traces) y = drawTrace(trace, y, parts);
  const title = escapeXml(printable(traces.map(({ heading }) => heading).join('; ')));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="kpc" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" role="img">`,
    `<title>${title}</title>`,
    `<style>${style}</style>`,
    '<rect class="page" width="100%" height="100%" rx="8"/>',
    `<g font-family="ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">`,
    ...parts,
    '</g>\n</svg>\n',
  ].join('\n');
}

/** Draws one packet's way from a height on, and returns where it ends. */
function drawTrace(trace: TraceInWords, top: number, parts: string[]): number {
  let y = drawLines(wrap('bold', trace.heading), railX - 8, top, parts) + 8;
  const stops: number[] = [];
  for (const lines of cards(trace)) {
    const height = lines.length * lineHeight + 16;
    parts.push(`<rect class="card" x="${cardX}" y="${y}" width="${width - cardX - 16}" height="${height}" rx="6"/>`);
    drawLines(lines, cardX + 16, y + 8, parts);
    stops.push(y + 20);
    y += height + 12;
  }
  parts.push(`<path class="rail" stroke-width="2" d="M${railX} ${stops[0] ?? y}V${stops.at(-1) ?? y}"/>`);
  for (const stop of stops) parts.push(`<circle class="stop" cx="${railX}" cy="${stop}" r="5"/>`);
  return y + 8;
}

/** The steps of each hook that the packet passes, what routing decides between them, and how it ends. */
function cards({ steps, isGood, verdict, endpoints, notes }: TraceInWords): readonly (readonly Line[])[] {
  const all: Line[][] = [];
  let before: string | undefined;
  for (const { hook = 'routing', where, what, rule, servicePort } of steps) {
    if (hook !== before) all.push([{ role: 'hook', text: hook }]);
    before = hook;
    const card = all.at(-1) as Line[];
    card.push(...wrap('plain', servicePort === undefined ? what : `${what} [${servicePort}]`));
    if (hook !== 'routing') card.push(...wrap('rule', rule === undefined ? where : `${where}: ${rule}`));
  }
  const end = [
    ...wrap(isGood ? 'good' : 'bad', verdict),
    ...endpoints.flatMap((text) => wrap('plain', text.trim())),
    ...notes.flatMap((text) => wrap('dim', text)),
  ];
  return [...all, end];
}

/** As many words on each line as fit; a word that is too long is cut into pieces. */
function wrap(role: Role, text: string): readonly Line[] {
  const lines = printable(text).match(/\S.{0,111}(?=\s|$)|\S{1,112}/g) ?? [];
  return lines.map((line) => ({ role, text: line }));
}

function drawLines(lines: readonly Line[], x: number, top: number, parts: string[]): number {
  for (const [i, { role, text }] of lines.entries()) {
    parts.push(`<text x="${x}" y="${top + i * lineHeight + 13}"${attributes[role]}>${escapeXml(text)}</text>`);
  }
  return top + lines.length * lineHeight;
}

const attributes: { readonly [R in Role]: string } = {
  plain: '',
  bold: ' font-weight="bold"',
  dim: ' class="dim"',
  rule: ` class="dim" font-size="11" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"`,
  hook: ' class="hook" font-weight="bold"',
  good: ' class="good" font-weight="bold"',
  bad: ' class="bad" font-weight="bold"',
};
