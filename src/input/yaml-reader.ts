import { KnownKeys, readYamlFast } from './fast-yaml.ts';
import type { Span } from './split-documents.ts';
import { type ParsedValue, parseYamlValue } from './yaml-parser.ts';

/** Reads the YAML document in a stretch of a text: its value, or why there is none. Offsets count from its start. */
export type ReadYaml = (text: string, span: Span) => ParsedValue;

/** A reader for the documents of one run: fast for the plain ones, with the full parser for all the others. */
export function createYamlReader(): ReadYaml {
  const known = new KnownKeys();
  return (text, span) => {
    const fast = readYamlFast(text, span, known);
    return fast ? { kind: 'value', value: fast.value } : readYamlFully(text, span);
  };
}

/** The full parser alone. */
export const readYamlFully: ReadYaml = (text, { start, end }) => parseYamlValue(text.slice(start, end));
