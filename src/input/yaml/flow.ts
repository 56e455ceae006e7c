import { type Lines, quoted } from './lines.ts';
import { type Counts, countValue } from './parse.ts';
import { keyOf, resolveFinite, unquote } from './plain-scalars.ts';

/** A word that means the same in brackets as elsewhere. */
const flowWord = /(?:[\w+./~]|-(?=[\d.]))[\w+./~-]*/y;
const comma = /, */y;
/** After a key in brackets. */
const wordColon = /: +/y;
const quotedColon = /: */y;
const spaces = / */y;

/** Reads a list or mapping in brackets on one line, of words and quoted strings; undefined for anything else. */
export function readFlow(lines: Lines, counts: Counts, levels: number): unknown {
  const open = lines.text.charAt(lines.pos);
  const isMapping = open === '{';
  if (levels === 0 || !(isMapping || open === '[')) return undefined;
  const close = isMapping ? '}' : ']';
  const mapping: Record<string, unknown> = {};
  const items: unknown[] = [];
  lines.pos++;
  lines.skip(spaces);
  for (let isFirst = true; lines.text.charAt(lines.pos) !== close; isFirst = false) {
    if (!isFirst && !lines.skip(comma)) return undefined;
    countValue(counts);
    const key = isMapping ? readKey(lines) : '';
    const isNested = /[[{]/.test(lines.text.charAt(lines.pos));
    const value = isNested ? readFlow(lines, counts, levels - 1) : readScalar(lines);
    if (key === undefined || value === undefined || Object.hasOwn(mapping, key)) return undefined;
    if (isMapping) mapping[key] = value;
    else items.push(value);
    lines.skip(spaces);
  }
  lines.pos++;
  return isMapping ? mapping : items;
}

function readKey(lines: Lines): string | undefined {
  const start = lines.pos;
  const after = lines.atQuote() ? quotedColon : wordColon;
  const key = keyOf(readScalar(lines), lines.pos - start);
  return key !== undefined && lines.skip(after) ? key : undefined;
}

function readScalar(lines: Lines): unknown {
  const start = lines.pos;
  if (lines.skip(quoted)) return unquote(lines.text.slice(start, lines.pos));
  return lines.skip(flowWord) ? resolveFinite(lines.text.slice(start, lines.pos)) : undefined;
}
