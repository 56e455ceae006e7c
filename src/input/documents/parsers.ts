import { readYamlFast } from '../yaml/fast-reader.ts';
import { KnownKeys } from '../yaml/known-keys.ts';
import { readMarkedJson } from './marked-json.ts';
import type { Span } from './split-documents.ts';
import { parseYamlValue, type ParsedValue } from '../yaml/parse.ts';

/** What reads the documents of one run. */
export interface Parsers {
  /** The YAML document in a stretch of a text: its value, or why there is none. Offsets count from its start. */
  readonly yaml: (text: string, span: Span) => ParsedValue;
  /** The JSON value in a stretch of a text. Throws a SyntaxError where it is none. */
  readonly json: (text: string, span: Span) => unknown;
}

/** A fast parser for plain YAML documents, with the full one for all the others. */
export function createParsers(): Parsers {
  const known = new KnownKeys();
  return {
    ...fullParsers,
    yaml: (text, span) => {
      const fast = readYamlFast(text, span, known) ?? readMarkedJson(text, span);
      return fast ? { kind: 'value', value: fast.value } : fullParsers.yaml(text, span);
    },
  };
}

/** The full parsers alone. */
export const fullParsers: Parsers = {
  yaml: (text, { start, end }) => parseYamlValue(text.slice(start, end)),
  json: (text, { start, end }) => JSON.parse(text.slice(start, end)) as unknown,
};
