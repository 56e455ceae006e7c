// Writes docs/measurements.md, where the figures of each part lie between two marks.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';

const docs = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'docs');
const path = join(docs, 'measurements.md');

/** @param {string} part */
const marks = (part) => [`<!-- ${part}: written by npm run bench -->`, `<!-- end of ${part} -->`];

/**
 * Replaces the figures of a part.
 *
 * @param {string} part
 * @param {string} text
 * @param {Map<string, string>} plots name of a file → SVG
 */
export async function writePart(part, text, plots) {
  const page = readFileSync(path, 'utf8');
  const [begin, end] = /** @type {[string, string]} */ (marks(part));
  const [start, stop] = [page.indexOf(begin), page.indexOf(end)];
  if (start < 0 || stop < start) throw new Error(`docs/measurements.md lacks the lines ${begin} and ${end}`);
  for (const [name, svg] of plots) writeFileSync(join(docs, name), svg);
  const fresh = `${page.slice(0, start)}${begin}\n\n${text}\n\n${page.slice(stop)}`;
  writeFileSync(path, await format(fresh, { ...(await resolveConfig(path)), filepath: path }));
}
