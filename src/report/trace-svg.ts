import { printable } from '../base/printable.ts';
import type { TraceInWords } from '../packet/trace/trace-words.ts';

const width = 960;
const lineHeight = 18;
const railX = 32;
const cardX = 64;
const textX = 80;
/** Characters that fit a line, of text and of rules, which are written smaller. */
const textColumns = 112;
const ruleColumns = 122;

/** Colours that can be read on a light page and on a dark one. */
const style = `.kpc .page{fill:#ffffff}.kpc .card{fill:#f6f8fa;stroke:#d0d7de}.kpc text{fill:#1f2328}.kpc .dim{fill:#59636e}
.kpc .hook{fill:#0969da}.kpc .rail{stroke:#0969da;fill:none}.kpc .stop{fill:#0969da}.kpc .good{fill:#1a7f37}.kpc .bad{fill:#d1242f}
@media (prefers-color-scheme:dark){.kpc .page{fill:#0d1117}.kpc .card{fill:#161b22;stroke:#30363d}.kpc text{fill:#e6edf3}
.kpc .dim{fill:#9198a1}.kpc .hook{fill:#79c0ff}.kpc .rail{stroke:#79c0ff}.kpc .stop{fill:#79c0ff}.kpc .good{fill:#7ee787}.kpc .bad{fill:#ff7b72}}`;

type Role = 'plain' | 'bold' | 'dim' | 'rule' | 'hook' | 'good' | 'bad';

interface Line {
  readonly role: Role;
  readonly text: string;
  /** The whole text, if it is cut. */
  readonly whole?: string | undefined;
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
function drawTrace(
  { heading, verdict, isGood, endpoints, notes, steps }: TraceInWords,
  top: number,
  parts: string[],
): number {
  let y = drawLines(wrap('bold', heading), railX - 8, top, parts) + 8;
  const first = y;
  const stops: number[] = [];
  for (const lines of stations(steps)) {
    stops.push(y + 20);
    y = drawCard(lines, y, parts);
  }
  stops.push(y + 20);
  y = drawCard(
    [
      ...wrap(isGood ? 'good' : 'bad', verdict),
      ...endpoints.flatMap((text) => wrap('plain', text.trim())),
      ...notes.flatMap((text) => wrap('dim', text)),
    ],
    y,
    parts,
  );
  parts.push(`<path class="rail" stroke-width="2" d="M${railX} ${first + 20}V${stops.at(-1) ?? y}"/>`);
  for (const stop of stops) parts.push(`<circle class="stop" cx="${railX}" cy="${stop}" r="5"/>`);
  return y + 8;
}

/** The steps of each hook that the packet passes, and what routing decides between them. */
function stations(steps: TraceInWords['steps']): readonly (readonly Line[])[] {
  const all: Line[][] = [];
  let before: string | undefined;
  for (const [at, { hook, where, what, rule, servicePort }] of steps.entries()) {
    const name = hook ?? 'routing';
    if (at === 0 || name !== before) all.push([{ role: 'hook', text: name }]);
    before = name;
    const card = all.at(-1) as Line[];
    card.push(...wrap('plain', servicePort === undefined ? what : `${what} [${servicePort}]`));
    if (hook !== undefined) card.push(cut(rule === undefined ? where : `${where}: ${rule}`));
  }
  return all;
}

function wrap(role: Role, text: string): readonly Line[] {
  const lines: string[] = [];
  let line = '';
  for (const word of printable(text).split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (longer.length > textColumns && line !== '') {
      lines.push(line);
      line = word;
    } else line = longer;
  }
  return [...lines, line].map((each) => ({ role, text: shorten(each, textColumns) }));
}

function cut(text: string): Line {
  const line = printable(text);
  const short = shorten(line, ruleColumns);
  return { role: 'rule', text: short, whole: short === line ? undefined : line };
}

function shorten(text: string, columns: number): string {
  const characters = [...text];
  return characters.length > columns ? `${characters.slice(0, columns - 1).join('')}…` : text;
}

function drawCard(lines: readonly Line[], y: number, parts: string[]): number {
  const height = lines.length * lineHeight + 16;
  parts.push(`<rect class="card" x="${cardX}" y="${y}" width="${width - cardX - 16}" height="${height}" rx="6"/>`);
  drawLines(lines, textX, y + 8, parts);
  return y + height + 12;
}

function drawLines(lines: readonly Line[], x: number, top: number, parts: string[]): number {
  for (const [i, { role, text, whole }] of lines.entries()) {
    const title = whole === undefined ? '' : `<title>${escapeXml(whole)}</title>`;
    parts.push(`<text x="${x}" y="${top + i * lineHeight + 13}"${attributes[role]}>${escapeXml(text)}${title}</text>`);
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

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
