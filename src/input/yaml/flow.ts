import { type Lines, quoted } from './lines.ts';
import { type ParseCounts, countValue } from './parse.ts';
import type { YamlPlaces } from './places.ts';
import type { JsonEntry } from '../../base/json/locate.ts';
import { plainKey, resolveFinite, unquoteScalar } from './scalars.ts';

/** A word that has the same meaning inside brackets as outside. */
const flowWord = /(?:[\w+./~]|-(?=[\d.]))[\w+./~-]*/y;
const comma = /, */y;
const wordColon = /: +/y;
const quotedColon = /: */y;
const spaces = / */y;

/** Reads a list or mapping in brackets on one line, with words and quoted strings; undefined for anything else. Adds to `places`. */
export function readFlow(lines: Lines, counts: ParseCounts, levels: number, places?: YamlPlaces): unknown {
  const open = lines.text.charAt(lines.pos);
  const isMapping = open === '{';
  if (levels === 0 || !(isMapping || open === '[')) return undefined;
  const close = isMapping ? '}' : ']';
  const mapping: Record<string, unknown> = {};
  const items: unknown[] = [];
  const entries = places && new Map<string, JsonEntry>();
  lines.pos++;
  lines.skip(spaces);
  for (let isFirst = true; lines.text.charAt(lines.pos) !== close; isFirst = false) {
    if (!isFirst && !lines.skip(comma)) return undefined;
    countValue(counts);
    const start = lines.pos;
    const key = isMapping ? readFlowKey(lines) : '';
    entries?.set(isMapping ? String(key) : String(items.length), { key: start, value: lines.pos });
    const isNested = /[[{]/.test(lines.text.charAt(lines.pos));
    const value = isNested ? readFlow(lines, counts, levels - 1, places) : readScalar(lines);
    if (key === undefined || value === undefined || Object.hasOwn(mapping, key)) return undefined;
    if (isMapping) mapping[key] = value;
    else items.push(value);
    lines.skip(spaces);
  }
  lines.pos++;
  const value = isMapping ? mapping : items;
  if (entries) places?.set(value, entries);
  return value;
}

function readFlowKey(lines: Lines): string | undefined {
  const start = lines.pos;
  const after = lines.atQuote() ? quotedColon : wordColon;
  const key = plainKey(readScalar(lines), lines.pos - start);
  return key !== undefined && lines.skip(after) ? key : undefined;
}

function readScalar(lines: Lines): unknown {
  const start = lines.pos;
  if (lines.skip(quoted)) return unquoteScalar(lines.text.slice(start, lines.pos));
  return lines.skip(flowWord) ? resolveFinite(lines.text.slice(start, lines.pos)) : undefined;
}
