import type { Station, Way, WayEndpoint } from './questions.ts';

const svgNamespace = 'http://www.w3.org/2000/svg';
const lineHeight = 16;
const padding = 10;
const gap = 10;
const arrow = 28;

/** What stands in a box, and how full it is from the left, from 0 to 1. */
interface Content {
  readonly title: string;
  readonly detail: string;
  readonly className: string;
  readonly share?: number;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly lines: readonly { readonly role: Role; readonly text: string }[];
  readonly className: string;
  readonly share: number | undefined;
}

type Role = 'name' | 'detail';

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
  const [first, second, third] = [Math.floor(column * 0.9), Math.floor(column * 1.2), Math.floor(column * 0.9)];
  const middle = first + arrow;
  const [sender] = place([senderBox(way)], 0, 0, first);
  const stations = place(way.stations.map(stationBox), middle, 0, second);
  const ends = place(endBoxes(way), middle + second + arrow, 0, third);
  const height = Math.max(...[sender, stations.at(-1), ends.at(-1)].map((box) => (box ? bottom(box) : 0)));
  // The way goes from the top left to the bottom right.
  const drop = height - Math.max(...ends.map(bottom));
  const endpoints = ends.map((box) => ({ ...box, y: box.y + drop }));
  const svg = startPicture(way, width, height);
  const [entry] = stations;
  const last = stations.at(-1) ?? sender;
  if (sender && entry) svg.append(join(sender, entry));
  for (const [i, station] of stations.entries()) {
    const next = stations[i + 1];
    const x = station.x + station.width / 2;
    if (next) svg.append(line(x, bottom(station), next.y));
  }
  if (last) svg.append(...endpoints.map((endpoint) => join(last, endpoint)));
  svg.append(...[...(sender ? [sender] : []), ...stations, ...endpoints].map(drawBox));
  return svg;
}

function drawColumn(way: Way, width: number): SVGElement {
  const path = place([senderBox(way), ...way.stations.map(stationBox)], 0, 0, width);
  const last = path.at(-1);
  const from = last ? bottom(last) : 0;
  const endpoints = place(endBoxes(way), 16, from + arrow, width - 16);
  const end = endpoints.at(-1);
  const svg = startPicture(way, width, end ? bottom(end) : from);
  for (const [i, box] of path.entries()) {
    const next = path[i + 1];
    if (next) svg.append(line(16, bottom(box), next.y));
  }
  for (const { y, height } of endpoints) svg.append(elbow(4, from, 16, y + height / 2));
  svg.append(...[...path, ...endpoints].map(drawBox));
  return svg;
}

/** The address alone: the caption says what it is. */
function senderBox({ from, to }: Way): Content {
  return { title: from, detail: `to ${to.slice(to.lastIndexOf(' ') + 1)}`, className: 'sender' };
}

function stationBox({ name, detail }: Station): Content {
  return { title: name, detail, className: 'station' };
}

function endBoxes(way: Way): readonly Content[] {
  if (way.endpoints.length > 0) return way.endpoints.map(endpointBox);
  const title = !way.isKnown ? 'not known' : way.isGood ? 'the node' : 'no endpoint';
  // The caption says why.
  return [{ title, detail: way.isKnown ? way.verdict : 'see above', className: way.isGood ? 'end' : 'end lost' }];
}

function endpointBox({ name, share, note }: WayEndpoint): Content {
  return { title: name, detail: `${Number((share * 100).toFixed(1))}%, ${note}`, className: 'end', share };
}

/** Boxes below each other, each as high as its text needs. */
function place(contents: readonly Content[], x: number, top: number, width: number): readonly Box[] {
  let y = top;
  return contents.map(({ title, detail, className, share }) => {
    const lines = [...wrap(title, width - 2 * padding, 'name'), ...wrap(detail, width - 2 * padding, 'detail')];
    const box = { x, y, width, height: lines.length * lineHeight + 12, lines, className, share };
    y += box.height + gap;
    return box;
  });
}

function bottom({ y, height }: Box): number {
  return y + height;
}

function startPicture({ from, to, verdict, stations, endpoints }: Way, width: number, height: number): SVGElement {
  const svg = element('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'way' });
  const path = [...stations, ...endpoints].map(({ name }) => name).join(', ');
  svg.setAttribute('aria-label', `From ${from} to ${to}: ${verdict} ${path}`);
  return svg;
}

function join(from: Box, to: Box): SVGElement {
  const [x, y] = [from.x + from.width, from.y + from.height / 2];
  const [toX, toY] = [to.x, to.y + to.height / 2];
  const half = (x + toX) / 2;
  return element('path', { d: `M${x} ${y}C${half} ${y} ${half} ${toY} ${toX} ${toY}`, class: 'line' });
}

function line(x: number, y: number, toY: number): SVGElement {
  return element('path', { d: `M${x} ${y}V${toY}`, class: 'line' });
}

function elbow(x: number, y: number, toX: number, toY: number): SVGElement {
  return element('path', { d: `M${x} ${y}V${toY}H${toX}`, class: 'line' });
}

function drawBox({ x, y, width, height, lines, className, share }: Box): SVGElement {
  const group = element('g', { class: className });
  const shape = { x: x + 0.5, y: y + 0.5, width: width - 1, height: height - 1, rx: 6 };
  group.append(element('rect', { ...shape, class: 'box' }));
  if (share !== undefined) {
    const filled = Math.max(6, (width - 3) * share);
    group.append(element('rect', { x: x + 1.5, y: y + height - 5, width: filled, height: 3, rx: 1.5, class: 'share' }));
  }
  for (const [i, { role, text }] of lines.entries()) {
    const node = element('text', { x: x + padding, y: y + 18 + i * lineHeight, class: role });
    node.textContent = text;
    group.append(node);
  }
  return group;
}

/** The fonts of style.css. */
const fonts: { readonly [R in Role]: string } = {
  name: "600 12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
  detail: "11.5px ui-sans-serif, system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif",
};

/** Nobody reads more of a name: a hostile one would fill the page. */
const mostCharacters = 400;

/** A text in lines of a width: between words, or inside of one that is too long. */
function wrap(content: string, width: number, role: Role): Box['lines'] {
  const context = document.createElement('canvas').getContext('2d');
  if (!context) return [{ role, text: content }];
  context.font = fonts[role];
  const fits = (text: string): boolean => context.measureText(text).width <= width;
  const lines: string[] = [];
  let current = '';
  const text = content.length > mostCharacters ? `${content.slice(0, mostCharacters)}…` : content;
  for (const word of text.split(' ')) {
    const longer = current === '' ? word : `${current} ${word}`;
    if (fits(longer)) {
      current = longer;
      continue;
    }
    if (current !== '') lines.push(current);
    current = '';
    for (const character of word) {
      if (current !== '' && !fits(current + character)) {
        lines.push(current);
        current = '';
      }
      current += character;
    }
  }
  return [...lines, current].map((each) => ({ role, text: each }));
}

function element(name: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const made = document.createElementNS(svgNamespace, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
