import type { Span } from './split-documents.ts';
import { readYamlFast } from '../yaml/fast-reader.ts';
import { KnownKeys } from '../yaml/known-keys.ts';
import { parseYamlValue, type ParsedValue } from '../yaml/parse.ts';

/** Reads the YAML document in a stretch of a text: its value, or why there is none. Offsets count from its start. */
export type YamlReader = (text: string, span: Span) => ParsedValue;

/** What reads the documents of one run: a fast parser for plain ones, with the full one for all others. */
export function createYamlReader(): YamlReader {
  const known = new KnownKeys();
  return (text, span) => {
    const fast = readYamlFast(text, span, known) ?? readMarkedJson(text, span);
    return fast ? { kind: 'value', value: fast.value } : parseYamlValue(text.slice(span.start, span.end));
  };
}

/** Deeper nesting and longer keys are for the YAML parser to refuse: it has limits there that JSON has not. */
const maxDepth = 64;
const maxKeyLength = 150;

/** The line that starts a YAML document, with a mapping in JSON straight after it. */
const marker = /---[ \n](?=\{)/y;

/** What JSON and YAML take for different things, or YAML not at all: white space and characters. */
const doubtful = /[\t\r\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/;

/** A string, which is kept, or blanks between tokens, which are not. */
const stringOrBlanks = /("(?:[^"\\]|\\.)*"?)|[ \n]+/g;

/**
 * Reads a YAML document that is all JSON, as tools print that write a stream of objects; undefined for any other. What JSON
 * means it means as YAML too, but for little. JSON.parse takes a tenth of the time of the YAML parser, and what it reads
 * counts only where the same text comes of writing it again: no key stands there twice, and no number or escape is read
 * otherwise in YAML.
 */
export function readMarkedJson(text: string, { start, end }: Span): { readonly value: unknown } | undefined {
  marker.lastIndex = start;
  if (!marker.test(text)) return undefined;
  const json = text.slice(marker.lastIndex, end);
  if (doubtful.test(json)) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    if (!keepsLimits(value, maxDepth)) return undefined;
    return JSON.stringify(value) === json.replaceAll(stringOrBlanks, '$1') ? { value } : undefined;
  } catch {
    return undefined;
  }
}

function keepsLimits(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0) return false;
  if (Array.isArray(value)) return value.every((item) => keepsLimits(item, levels - 1));
  return Object.entries(value).every(([key, inner]) => key.length <= maxKeyLength && keepsLimits(inner, levels - 1));
}
