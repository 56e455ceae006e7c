import { barWidth, layOutWay, type Box } from '../../src/say/draw-way.ts';
import type { NamedWay } from './questions.ts';

const svgNamespace = 'http://www.w3.org/2000/svg';

export function drawWay({ kind, way }: NamedWay, width: number): HTMLElement {
  const figure = document.createElement('figure');
  const caption = document.createElement('figcaption');
  const to = document.createElement('strong');
  to.textContent = `${kind} ${way.to}`;
  const verdict = document.createElement('span');
  verdict.className = way.isGood ? 'good' : 'bad';
  verdict.textContent = way.verdict.replace(/:$/, '');
  caption.append(to, ' from ', way.from, ': ', verdict);
  const { height, label, lines, boxes } = layOutWay(way, width);
  const svg = element('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'way' });
  svg.setAttribute('aria-label', label);
  svg.append(...lines.map((d) => element('path', { d, class: 'line' })), ...boxes.map(drawBox));
  figure.append(caption, svg);
  return figure;
}

function drawBox({ x, y, width, height, texts, className, share }: Box): SVGElement {
  const group = element('g', { class: className });
  const shape = { x: x + 0.5, y: y + 0.5, width: width - 1, height: height - 1, rx: 6 };
  group.append(element('rect', { ...shape, class: 'box' }));
  if (share !== undefined) {
    const bar = { x: x + 1.5, y: y + height - 5, width: barWidth(width, share), height: 3, rx: 1.5 };
    group.append(element('rect', { ...bar, class: 'share' }));
  }
  for (const { role, text, ...at } of texts) {
    const node = element('text', { ...at, class: role });
    node.textContent = text;
    group.append(node);
  }
  return group;
}

function element(name: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const made = document.createElementNS(svgNamespace, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}
