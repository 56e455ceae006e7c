import { printable } from '../base/printable.ts';
import { escapeXml } from './junit.ts';
import type { TraceInWords } from '../trace/trace-words.ts';

const usualWidth = 960;
const lineHeight = 18;
/** The widest characters of a line, on average. */
const characterWidth = 7.7;

/** Where things are: the line of the way, the cards beside it, and how many characters fit into one. */
interface Frame {
  readonly width: number;
  readonly railX: number;
  readonly cardX: number;
  readonly columns: number;
}

function frameOf(width: number): Frame {
  const [railX, cardX, padding] = width < 600 ? [12, 28, 24] : [32, 64, 32];
  return { width, railX, cardX, columns: Math.max(20, Math.floor((width - cardX - padding) / characterWidth)) };
}

const style = `.kpc .page{fill:#ffffff}.kpc .card{fill:#f6f8fa;stroke:#d0d7de}.kpc text{fill:#1f2328}.kpc .dim{fill:#59636e}
.kpc .hook{fill:#0969da}.kpc .rail{stroke:#0969da;fill:none}.kpc .stop{fill:#0969da}.kpc .good{fill:#1a7f37}.kpc .bad{fill:#d1242f}
@media (prefers-color-scheme:dark){.kpc .page{fill:#0d1117}.kpc .card{fill:#161b22;stroke:#30363d}.kpc text{fill:#e6edf3}
.kpc .dim{fill:#9198a1}.kpc .hook{fill:#79c0ff}.kpc .rail{stroke:#79c0ff}.kpc .stop{fill:#79c0ff}.kpc .good{fill:#7ee787}.kpc .bad{fill:#ff7b72}}`;

type Role = 'plain' | 'bold' | 'dim' | 'rule' | 'hook' | 'good' | 'bad';

interface Line {
  readonly role: Role;
  readonly text: string;
}

/** Draws the paths of packets through the hooks of the kernel, one below the other. `width` is in pixels. */
export function drawTraces(traces: readonly TraceInWords[], width = usualWidth): string {
  const parts: string[] = [];
  const frame = frameOf(width);
  let y = 16;
  for (const trace of traces) y = drawTrace(trace, y, parts, frame);
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

/** Draws one packet's path from `top`, and returns where the drawing ends. */
function drawTrace(trace: TraceInWords, top: number, parts: string[], frame: Frame): number {
  const { width, railX, cardX, columns } = frame;
  let y = drawLines(wrap('bold', trace.heading, columns), railX - 8, top, parts) + 8;
  const stops: number[] = [];
  for (const lines of cards(trace, columns)) {
    const height = lines.length * lineHeight + 16;
    parts.push(
      `<rect class="card" x="${cardX}" y="${y}" width="${width - cardX - railX / 2}" height="${height}" rx="6"/>`,
    );
    drawLines(lines, cardX + railX / 2, y + 8, parts);
    stops.push(y + 20);
    y += height + 12;
  }
  parts.push(`<path class="rail" stroke-width="2" d="M${railX} ${stops[0] ?? y}V${stops.at(-1) ?? y}"/>`);
  for (const stop of stops) parts.push(`<circle class="stop" cx="${railX}" cy="${stop}" r="5"/>`);
  return y + 8;
}

/** The steps of each hook on the packet's path, the routing between them, and the result. */
function cards(
  { steps, isGood, verdict, doubts, endpoints, notes }: TraceInWords,
  columns: number,
): readonly (readonly Line[])[] {
  const all: Line[][] = [];
  let before: string | undefined;
  for (const { hook = 'routing', where, what, rule, servicePort } of steps) {
    if (hook !== before) all.push([{ role: 'hook', text: hook }]);
    before = hook;
    const card = all.at(-1) as Line[];
    card.push(...wrap('plain', servicePort === undefined ? what : `${what} [${servicePort}]`, columns));
    if (hook !== 'routing') card.push(...wrap('rule', rule === undefined ? where : `${where}: ${rule}`, columns));
  }
  const end = [
    ...wrap(isGood ? 'good' : 'bad', verdict, columns),
    ...doubts.flatMap((text) => wrap('bad', text, columns)),
    ...endpoints.flatMap((text) => wrap('plain', text.trim(), columns)),
    ...notes.flatMap((text) => wrap('dim', text, columns)),
  ];
  return [...all, end];
}

/** Breaks words into lines of so many columns, and a word that is longer inside. */
function wrap(role: Role, text: string, columns: number): readonly Line[] {
  const lines: string[] = [];
  let current = '';
  for (const word of printable(text).split(/\s+/)) {
    if (current !== '' && current.length + 1 + word.length > columns) {
      lines.push(current);
      current = '';
    }
    current = current === '' ? word : `${current} ${word}`;
    for (; current.length > columns; current = current.slice(columns)) lines.push(current.slice(0, columns));
  }
  return [...lines, current].filter((line) => line !== '').map((line) => ({ role, text: line }));
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
