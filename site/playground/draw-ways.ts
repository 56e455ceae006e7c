import type { Station, Way, WayEndpoint } from './compiler.ts';

const svgNamespace = 'http://www.w3.org/2000/svg';
const rowHeight = 44;
const gap = 10;
const arrow = 28;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly lines: readonly [title: string, detail: string];
  readonly className: string;
  /** Filled from the left, from 0 to 1. */
  readonly share?: number;
}

/** Draws who sends, what the packet passes on the node, and which endpoints it comes to; below each other if it is narrow. */
export function drawWay(way: Way, width: number): HTMLElement {
  const figure = document.createElement('figure');
  const caption = document.createElement('figcaption');
  const to = document.createElement('strong');
  to.textContent = way.to;
  const verdict = document.createElement('span');
  verdict.className = way.isGood ? 'good' : 'bad';
  verdict.textContent = way.verdict.replace(/:$/, '');
  caption.append(to, ' from ', way.from, ': ', verdict);
  figure.append(caption, width < 560 ? drawColumn(way, width) : drawRow(way, width));
  return figure;
}

function drawRow(way: Way, width: number): SVGElement {
  const column = Math.floor((width - 2 * arrow) / 3);
  const wide = [Math.floor(column * 1.06), Math.floor(column * 1.2), Math.floor(column * 0.74)] as const;
  const ends = endBoxes(way);
  const height = heightOf(Math.max(way.stations.length, ends.length, 1));
  const middle = wide[0] + arrow;
  const right = middle + wide[1] + arrow;
  // The way goes from the top left to the bottom right.
  const sender: Box = { x: 0, y: 0, width: wide[0], lines: senderLines(way), className: 'sender' };
  const stations = place(way.stations.map(stationBox), middle, 0, wide[1]);
  const endpoints = place(ends, right, height - heightOf(ends.length), wide[2]);
  const svg = startPicture(way, width, height);
  const [first] = stations;
  const last = stations.at(-1);
  svg.append(...(first ? [join(sender, first)] : []));
  for (const [i, station] of stations.entries()) {
    const next = stations[i + 1];
    if (next) svg.append(line(center(station), bottom(station), center(next), next.y));
  }
  svg.append(...endpoints.map((endpoint) => join(last ?? sender, endpoint)));
  svg.append(...[sender, ...stations, ...endpoints].map(drawBox));
  return svg;
}

function drawColumn(way: Way, width: number): SVGElement {
  const sender = { lines: senderLines(way), className: 'sender' };
  const ends = endBoxes(way);
  const path = place([sender, ...way.stations.map(stationBox)], 0, 0, width);
  const start = (path.at(-1)?.y ?? 0) + rowHeight + arrow;
  const endpoints = place(ends, 16, start, width - 16);
  const svg = startPicture(way, width, start + heightOf(ends.length));
  for (const [i, box] of path.entries()) {
    const next = path[i + 1];
    if (next) svg.append(line(16, bottom(box), 16, next.y));
  }
  const last = path.at(-1);
  const from = last ? bottom(last) : 0;
  for (const { y } of endpoints) svg.append(elbow(4, from, 16, y + rowHeight / 2));
  svg.append(...[...path, ...endpoints].map(drawBox));
  return svg;
}

/** The address alone: the caption says what it is. */
function senderLines({ from, to }: Way): Box['lines'] {
  return [from, `to ${to.slice(to.lastIndexOf(' ') + 1)}`];
}

function stationBox({ name, detail }: Station): Pick<Box, 'lines' | 'className'> {
  return { lines: [name, detail], className: 'station' };
}

function endBoxes(way: Way): readonly Pick<Box, 'lines' | 'className' | 'share'>[] {
  if (way.endpoints.length > 0) return way.endpoints.map(endpointBox);
  return [
    { lines: [way.isGood ? 'the node' : 'no endpoint', way.verdict], className: way.isGood ? 'end' : 'end lost' },
  ];
}

function endpointBox({ name, share, note }: WayEndpoint): Pick<Box, 'lines' | 'className' | 'share'> {
  return { lines: [name, `${Number((share * 100).toFixed(1))}%, ${note}`], className: 'end', share };
}

function place(
  boxes: readonly Pick<Box, 'lines' | 'className' | 'share'>[],
  x: number,
  top: number,
  width: number,
): readonly Box[] {
  return boxes.map((box, i) => ({ ...box, x, y: top + i * (rowHeight + gap), width }));
}

function heightOf(count: number): number {
  return Math.max(0, count * (rowHeight + gap) - gap);
}

function center({ x, width }: Box): number {
  return x + width / 2;
}

function bottom({ y }: Box): number {
  return y + rowHeight;
}

function startPicture({ from, to, verdict, stations, endpoints }: Way, width: number, height: number): SVGElement {
  const svg = element('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'way' });
  const path = [...stations, ...endpoints].map(({ name }) => name).join(', ');
  svg.setAttribute('aria-label', `From ${from} to ${to}: ${verdict} ${path}`);
  return svg;
}

function join(from: Box, to: Box): SVGElement {
  const [x, y] = [from.x + from.width, from.y + rowHeight / 2];
  const [toX, toY] = [to.x, to.y + rowHeight / 2];
  const half = (x + toX) / 2;
  return element('path', { d: `M${x} ${y}C${half} ${y} ${half} ${toY} ${toX} ${toY}`, class: 'line' });
}

function line(x: number, y: number, toX: number, toY: number): SVGElement {
  return element('path', { d: `M${x} ${y}L${toX} ${toY}`, class: 'line' });
}

function elbow(x: number, y: number, toX: number, toY: number): SVGElement {
  return element('path', { d: `M${x} ${y}V${toY}H${toX}`, class: 'line' });
}

function drawBox({ x, y, width, lines: [title, detail], className, share }: Box): SVGElement {
  const group = element('g', { class: className });
  const shape = { x: x + 0.5, y: y + 0.5, width: width - 1, height: rowHeight - 1, rx: 6 };
  group.append(element('rect', { ...shape, class: 'box' }));
  if (share !== undefined) {
    const filled = Math.max(6, (width - 3) * share);
    group.append(
      element('rect', { x: x + 1.5, y: y + rowHeight - 5, width: filled, height: 3, rx: 1.5, class: 'share' }),
    );
  }
  group.append(text(title, x + 10, y + 18, width - 20, 'name'));
  group.append(text(detail, x + 10, y + 34, width - 20, 'detail'));
  const whole = element('title', {});
  whole.textContent = `${title}\n${detail}`;
  group.append(whole);
  return group;
}

function text(content: string, x: number, y: number, width: number, className: 'name' | 'detail'): SVGElement {
  const node = element('text', { x, y, class: className });
  node.textContent = cut(content, width, className);
  return node;
}

/** The fonts of style.css. */
const fonts = {
  name: "600 12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  detail: "11.5px ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif",
} as const;

/** As much of a text as fits a width. */
function cut(content: string, width: number, className: 'name' | 'detail'): string {
  const context = document.createElement('canvas').getContext('2d');
  if (!context) return content;
  context.font = fonts[className];
  // A hostile name may be long: what no screen shows is not measured.
  const characters = Array.from(content.slice(0, 400));
  if (characters.length === content.length && context.measureText(content).width <= width) return content;
  let count = characters.length;
  while (count > 1 && context.measureText(`${characters.slice(0, count).join('')}…`).width > width) count -= 1;
  return `${characters.slice(0, count).join('')}…`;
}

function element(name: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const made = document.createElementNS(svgNamespace, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
