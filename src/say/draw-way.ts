import { printable } from '../base/printable.ts';
import type { WayInWords } from './way/step.ts';
import { escapeXml } from './formats/junit.ts';

/** A picture of a packet's path from the sender through the stations on the node to the endpoints. Units are pixels. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly label: string;
  /** SVG path data of the lines between the boxes. */
  readonly lines: readonly string[];
  readonly boxes: readonly Box[];
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly texts: readonly Text[];
  readonly className: string;
  /** The filled part of the bar at the bottom, from 0 to 1. Undefined if there is no bar. */
  readonly share: number | undefined;
}

/** A line of text. `y` is the position of its baseline. */
interface Text {
  readonly role: 'name' | 'detail';
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

interface Content {
  readonly title: string;
  readonly detail: string;
  readonly className: string;
  readonly share?: number;
}

const lineHeight = 16;
const padding = 10;
const gap = 10;
const arrow = 28;
const usualWidth = 960;

/** If the picture is narrower than this, the boxes are placed below each other. */
const narrow = 560;

/** The average width of a character in the widest lines, for the fonts in `style`. */
const characterWidth = { name: 7.4, detail: 6.9 } as const;

/** Longer names are cut, because a hostile name could otherwise fill the page. */
const mostCharacters = 400;

export function layOutWay(way: WayInWords, width: number): Picture {
  return width < narrow ? layOutColumn(way, width) : layOutRow(way, width);
}

function layOutRow(way: WayInWords, width: number): Picture {
  const column = Math.floor((width - 2 * arrow) / 3);
  const [side, middle] = [Math.floor(column * 0.9), Math.floor(column * 1.2)];
  const [sender] = placeBoxes([senderBox(way)], 0, 0, side) as [Box];
  const stations = placeBoxes(stationBoxes(way), side + arrow, 0, middle);
  const ends = placeBoxes(endBoxes(way), side + middle + 2 * arrow, 0, side);
  const height = Math.max(...[sender, ...stations, ...ends].map(bottom));
  // The path leads from the top left to the bottom right.
  const drop = height - Math.max(...ends.map(bottom));
  const endpoints = ends.map((box) => lower(box, drop));
  const last = stations.at(-1) ?? sender;
  const lines = [
    ...stations.slice(0, 1).map((entry) => drawCurve(sender, entry)),
    ...stations.slice(1).map((next, i) => down(next.x + next.width / 2, bottom(stations[i] ?? next), next.y)),
    ...endpoints.map((endpoint) => drawCurve(last, endpoint)),
  ];
  return { width, height, label: describeDrawing(way), lines, boxes: [sender, ...stations, ...endpoints] };
}

function layOutColumn(way: WayInWords, width: number): Picture {
  const path = placeBoxes([senderBox(way), ...stationBoxes(way)], 0, 0, width);
  const from = Math.max(...path.map(bottom));
  const ends = placeBoxes(endBoxes(way), 16, from + arrow, width - 16);
  const lines = [
    ...path.slice(1).map((next, i) => down(16, bottom(path[i] ?? next), next.y)),
    ...ends.map(({ y, height }) => `M4 ${from}V${y + height / 2}H16`),
  ];
  const height = Math.max(from, ...ends.map(bottom));
  return { width, height, label: describeDrawing(way), lines, boxes: [...path, ...ends] };
}

function describeDrawing({ from, to, verdict, stations, endpoints }: WayInWords): string {
  return `From ${from} to ${to}: ${verdict} ${[...stations, ...endpoints].map(({ name }) => name).join(', ')}`;
}

function senderBox({ from, to }: WayInWords): Content {
  return { title: from, detail: `to ${to}`, className: 'sender' };
}

function stationBoxes({ stations }: WayInWords): readonly Content[] {
  return stations.map(({ name, detail }) => ({ title: name, detail, className: 'station' }));
}

function endBoxes({ endpoints, isKnown, isGood, verdict }: WayInWords): readonly Content[] {
  if (endpoints.length === 0) {
    const title = !isKnown ? 'not known' : isGood ? 'the node' : 'no endpoint';
    return [{ title, detail: isKnown ? verdict : 'see above', className: isGood ? 'end' : 'end lost' }];
  }
  return endpoints.map(({ name, share, note }) => {
    return { title: name, detail: `${Number((share * 100).toFixed(1))}%, ${note}`, className: 'end', share };
  });
}

/** Places boxes below each other. Each box is as high as its text needs. */
function placeBoxes(contents: readonly Content[], x: number, top: number, width: number): readonly Box[] {
  let y = top;
  return contents.map(({ title, detail, className, share }) => {
    const rows = (['name', 'detail'] as const).flatMap((role) =>
      wrap(role === 'name' ? title : detail, (width - 2 * padding) / characterWidth[role]).map((text) => ({
        role,
        text,
      })),
    );
    const texts = rows.map((row, i) => ({ ...row, x: x + padding, y: y + 18 + i * lineHeight }));
    const box = { x, y, width, height: rows.length * lineHeight + 12, texts, className, share };
    y += box.height + gap;
    return box;
  });
}

function lower(box: Box, by: number): Box {
  return { ...box, y: box.y + by, texts: box.texts.map((text) => ({ ...text, y: text.y + by })) };
}

function bottom({ y, height }: Box): number {
  return y + height;
}

function drawCurve(from: Box, to: Box): string {
  const [x, y] = [from.x + from.width, from.y + from.height / 2];
  const [toX, toY] = [to.x, to.y + to.height / 2];
  const half = (x + toX) / 2;
  return `M${x} ${y}C${half} ${y} ${half} ${toY} ${toX} ${toY}`;
}

function down(x: number, y: number, toY: number): string {
  return `M${x} ${y}V${toY}`;
}

/** Breaks a string into lines of at most `columns` characters. Breaks between words, and inside words that are too long for a line. */
function wrap(content: string, columns: number): readonly string[] {
  const most = Math.max(8, Math.floor(columns));
  const text = printable(content.length > mostCharacters ? `${content.slice(0, mostCharacters)}…` : content);
  const lines: string[] = [];
  let current = '';
  for (const word of text.split(/\s+/)) {
    if (current !== '' && current.length + 1 + word.length > most) {
      lines.push(current);
      current = '';
    }
    current = current === '' ? word : `${current} ${word}`;
    for (; current.length > most; current = current.slice(most)) lines.push(current.slice(0, most));
  }
  return [...lines, current].filter((line) => line !== '');
}

const style = `.page{fill:#fff}.box{fill:#f6f8fa;stroke:#d0d7de}.sender .box{fill:#fff;stroke:#8c959f}.station .box{fill:#eef5ff;stroke:#0969da}
.end .box,.share{stroke:#1a7f37}.share,.good{fill:#1a7f37}.lost .box{stroke:#d1242f}.bad{fill:#d1242f}.line{fill:none;stroke:#8c959f;stroke-width:1.5}
text{fill:#1f2328}.name{font:600 12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
.detail{font:11.5px ui-sans-serif,system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#59636e}
.caption{font:600 13px ui-sans-serif,system-ui,'Segoe UI','DejaVu Sans',sans-serif}
@media (prefers-color-scheme:dark){.page,.sender .box{fill:#0d1117}.box{fill:#161b22;stroke:#3d444d}.station .box{fill:#10233f;stroke:#79c0ff}
text{fill:#e6edf3}.detail{fill:#9198a1}.end .box,.share{stroke:#7ee787}.share,.good{fill:#7ee787}.lost .box{stroke:#ff7b72}.bad{fill:#ff7b72}}`;

/** The average width of a character in a caption. */
const captionWidth = 7.7;

/** Returns an SVG file with the pictures below each other, each with its caption above it. `width` is in pixels. */
export function drawWays(ways: readonly WayInWords[], width = usualWidth): string {
  const [margin, caption] = [16, 20];
  const parts: string[] = [];
  let y = margin;
  for (const way of ways) {
    const captions = [
      ...[way.heading, ...way.assumed].map((text) => ({ text, role: '' })),
      { text: way.verdict.replace(/:$/, ''), role: way.isGood ? ' good' : ' bad' },
    ];
    for (const { text, role } of captions)
      for (const line of wrap(text, (width - 2 * margin) / captionWidth))
        parts.push(captionOf(line, role, margin, (y += caption)));
    const picture = layOutWay(way, width - 2 * margin);
    y += margin;
    parts.push(`<g transform="translate(${margin} ${y})">`, ...svgOf(picture), '</g>');
    y += picture.height + margin;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" role="img">`,
    `<title>${escapeXml(printable(ways.map(({ heading }) => heading).join('; ')))}</title>`,
    `<style>${style}</style>`,
    '<rect class="page" width="100%" height="100%" rx="8"/>',
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function captionOf(text: string, role: string, x: number, y: number): string {
  return `<text class="caption${role}" x="${x}" y="${y}">${escapeXml(text)}</text>`;
}

function svgOf({ lines, boxes }: Picture): readonly string[] {
  return [
    ...lines.map((path) => `<path class="line" d="${path}"/>`),
    ...boxes.flatMap(({ x, y, width, height, texts, className, share }) => [
      `<g class="${className}">`,
      `<rect class="box" x="${x + 0.5}" y="${y + 0.5}" width="${width - 1}" height="${height - 1}" rx="6"/>`,
      ...(share === undefined
        ? []
        : [
            `<rect class="share" x="${x + 1.5}" y="${y + height - 5}" width="${barWidth(width, share)}" height="3" rx="1.5"/>`,
          ]),
      ...texts.map(
        ({ role, text, ...at }) => `<text class="${role}" x="${at.x}" y="${at.y}">${escapeXml(text)}</text>`,
      ),
      '</g>',
    ]),
  ];
}

export function barWidth(width: number, share: number): number {
  return Math.max(6, (width - 3) * share);
}
