/**
 * A figure with a limit. Both have the unit `unit`.
 *
 * @typedef {{ what: string, value: number, limit: number, unit?: string }} Check
 */
/** @typedef {import('./measure.mjs').Figures} Figures */
/** @typedef {import('./measure.mjs').Comparison} Comparison */
/** @typedef {Comparison & { name: string }} NamedComparison */

/** @param {number} number */
export function count(number) {
  return number.toLocaleString('en');
}

/** @param {number} number */
export function seconds(number) {
  return number < 1 ? `${Math.round(number * 1000)} ms` : `${number.toFixed(number < 10 ? 2 : 0)} s`;
}

/** @param {number | undefined} number */
function mebibytes(number) {
  return number === undefined ? '' : `${Math.round(number)} MiB`;
}

/** @param {number} number */
export function ratio(number) {
  return Number.isNaN(number) ? '' : number.toFixed(2);
}

/**
 * Formats the figures of one run, for the columns time, CPU and memory.
 *
 * @param {Figures} run
 */
export function figures({ wall, cpu, peak }) {
  return [seconds(wall), cpu === undefined ? '' : seconds(cpu), mebibytes(peak)];
}

/**
 * Formats CPU time and memory of one run as a cell.
 *
 * @param {Figures} run
 */
export function cell({ wall, cpu, peak }) {
  return [seconds(cpu ?? wall), mebibytes(peak)].filter(Boolean).join(', ');
}

/**
 * Formats one comparison per row.
 *
 * @param {string} against
 * @param {NamedComparison[]} rows
 */
export function comparisons(against, rows) {
  return table(
    ['', 'time', 'CPU', 'peak memory', `CPU of ${against}`, 'ratio of time', 'ratio of CPU', 'ratio of memory'],
    rows.map(({ name, own, other, ratio: { wall, cpu, peak } }) => [
      name,
      ...figures(own),
      seconds(other.cpu ?? other.wall),
      ...[wall, cpu, peak].map(ratio),
    ]),
  );
}

/**
 * @param {string[]} header
 * @param {string[][]} rows
 */
export function table(header, rows) {
  const align = header.map((_, i) => (i === 0 ? '---' : '--:'));
  return [header, align, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** @param {Check} check */
export function isMissed({ value, limit }) {
  // A figure that could not be measured is NaN, and counts as missed.
  return !(value <= limit);
}

/** @param {Check[]} checks */
export function limitsTable(checks) {
  return table(
    ['limit', 'measured', 'allowed', 'kept'],
    checks.map((check) => {
      const { what, value, limit, unit = '' } = check;
      return [
        what,
        `${value.toFixed(value < 10 ? 2 : 0)}${unit}`,
        `${limit}${unit}`,
        isMissed(check) ? '**no**' : 'yes',
      ];
    }),
  );
}
