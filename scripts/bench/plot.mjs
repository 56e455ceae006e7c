// Draws lines on logarithmic axes, as plain SVG that reads well on paper and in dark mode.

/** @typedef {{ name: string, points: [number, number][] }} Series */
/** @typedef {{ ticks: number[], at: (number: number) => number }} Axis */

const box = { left: 80, right: 610, top: 60, bottom: 350 };
const colours = ['#1a5fb4', '#c64600', '#26a269', '#613583', '#202020', '#a51d6d'];
const legend = { top: 396, rowHeight: 22 };

/**
 * Each axis begins and ends at 1, 2 or 5 times a power of ten.
 * @param {{
 *   title: string, xTitle: string, yTitle: string, series: Series[], formatY?: (y: number) => string,
 * }} plot
 */
export function plotLines({ title, xTitle, yTitle, series, formatY = String }) {
  const all = series.flatMap(({ points }) => points);
  const xs = axis(
    all.map(([x]) => x),
    box.left,
    box.right,
  );
  const ys = axis(
    all.map(([, y]) => y),
    box.bottom,
    box.top,
  );
  if (series.length > colours.length) throw new Error(`${series.length} series, but only ${colours.length} colours`);
  const height = legend.top + Math.ceil(series.length / 2) * legend.rowHeight + 12;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 ${height}" font-family="sans-serif" font-size="14">`,
    `<title>${escape(title)}</title>`,
    `<rect width="640" height="${height}" fill="#ffffff"/>`,
    text(box.left, 32, title, 'font-size="17"'),
    ...xs.ticks.map(
      (x) =>
        line(xs.at(x), box.top, xs.at(x), box.bottom) +
        text(xs.at(x), box.bottom + 20, x.toLocaleString('en'), 'text-anchor="middle"'),
    ),
    ...ys.ticks.map(
      (y) =>
        line(box.left, ys.at(y), box.right, ys.at(y)) +
        text(box.left - 8, ys.at(y) + 5, formatY(y), 'text-anchor="end"'),
    ),
    text((box.left + box.right) / 2, box.bottom + 44, xTitle, 'text-anchor="middle"'),
    text(20, box.top - 12, yTitle, ''),
    ...series.flatMap((one, i) => drawSeries(one, /** @type {string} */ (colours[i]), i, xs, ys)),
    '</svg>',
  ].join('\n')}\n`;
}

/**
 * @param {Series} series
 * @param {string} colour
 * @param {number} index
 * @param {Axis} xs
 * @param {Axis} ys
 */
function drawSeries({ name, points }, colour, index, xs, ys) {
  const at = points.map(([x, y]) => `${xs.at(x)},${ys.at(y)}`);
  const left = box.left + 10 + (index % 2) * 265;
  const base = legend.top + Math.floor(index / 2) * legend.rowHeight;
  return [
    `<polyline points="${at.join(' ')}" fill="none" stroke="${colour}" stroke-width="2.5"/>`,
    ...points.map(([x, y]) => `<circle cx="${xs.at(x)}" cy="${ys.at(y)}" r="3.5" fill="${colour}"/>`),
    `<line x1="${left}" y1="${base + 9}" x2="${left + 24}" y2="${base + 9}" stroke="${colour}" stroke-width="2.5"/>`,
    text(left + 32, base + 14, name, ''),
  ];
}

/**
 * Returns a logarithmic axis: the position of a number between two ends, and the numbers to write at the axis.
 * @param {number[]} numbers
 * @param {number} from
 * @param {number} to
 * @returns {Axis}
 */
function axis(numbers, from, to) {
  const steps = [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6].flatMap((power) =>
    [1, 2, 5].map((digit) => Number(`${digit}e${power}`)),
  );
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const first = steps.findLast((step) => step <= low) ?? low;
  const last = steps.find((step) => step >= high) ?? high;
  const span = Math.log(last / first);
  return {
    ticks: steps.filter((step) => step >= first && step <= last),
    at: (number) => Math.round((from + ((to - from) * Math.log(number / first)) / span) * 10) / 10,
  };
}

/**
 * @param {number} x1
 * @param {number} y1
 * @param {number} x2
 * @param {number} y2
 */
function line(x1, y1, x2, y2) {
  return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#d5d8dc"/>`;
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} words
 * @param {string} attributes
 */
function text(x, y, words, attributes) {
  return `<text x="${x}" y="${y}" fill="#202020" ${attributes}>${escape(words)}</text>`;
}

/** @param {string} words */
function escape(words) {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
