import type { Diagnostic } from '../cluster/diagnostic.ts';
import { createJsonSource, createYamlSource, type InputDocument, placeAt } from './document.ts';
import { findJsonFaults, skipValue } from './json-parser.ts';
import { type Span, splitDocuments } from './split-documents.ts';
import { fullParsers, type Parsers } from './parsers.ts';
import type { TextFile } from './text-file.ts';
import { nestsTooDeeply } from './nesting.ts';
import type { SyntaxFault } from './yaml-parser.ts';

/** The documents of one file in their order, and what is wrong with the others. */
export interface FileDocuments {
  readonly documents: readonly InputDocument[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the YAML and JSON documents of a file. What cannot be read is reported and the others are read all the same. */
export function readDocuments(file: TextFile, parsers: Parsers = fullParsers): FileDocuments {
  const documents: InputDocument[] = [];
  const diagnostics = takeDocuments(file, parsers, (document) => documents.push(document));
  return { documents, diagnostics };
}

/**
 * As readDocuments, but hands over one document after the other: what is not kept of one is free before the next is
 * read. Returns what is wrong with those that could not be read.
 */
export function takeDocuments(
  file: TextFile,
  parsers: Parsers,
  take: (document: InputDocument) => void,
): readonly Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  const report = (start: number, faults: readonly SyntaxFault[]): void => {
    for (const { offset, code, text } of faults) {
      const place = placeAt(file, start + offset);
      diagnostics.push({ severity: 'error', code, text, place });
    }
  };
  for (const span of splitDocuments(file.text)) {
    const json = readJsonValues(file.text, span, parsers);
    if (json) {
      for (const { start, value } of json.values) {
        take({ file, value, source: createJsonSource(file, { start, end: span.end }) });
      }
      if (json.broken) report(json.broken.start, findJsonFaults(file.text.slice(json.broken.start, json.broken.end)));
      continue;
    }
    const parsed = parsers.yaml(file.text, span);
    if (parsed.kind === 'value') {
      if (parsed.value === null) continue;
      take({ file, value: parsed.value, source: createYamlSource(file, span) });
    } else {
      const text = file.text.slice(span.start, span.end);
      const asJson = isMeantAsJson(file, text) && !nestsTooDeeply(text);
      report(span.start, asJson ? findJsonFaults(text) : parsed.faults);
    }
  }
  return diagnostics;
}

function isMeantAsJson(file: TextFile, text: string): boolean {
  return file.name.endsWith('.json') || /^\s*\{\s*"/.test(text);
}

const blanksAndBrace = /\s*\{/y;

function beginsWithBrace(text: string, start: number): boolean {
  blanksAndBrace.lastIndex = start;
  return blanksAndBrace.test(text);
}

/** JSON values that follow each other, up to the one that is broken if one is. */
interface JsonValues {
  readonly values: readonly { readonly start: number; readonly value: unknown }[];
  readonly broken?: Span;
}

/**
 * The values of a stretch that is JSON: one, or several one after the other, as `kubectl get -o json` prints them in
 * a loop. Undefined where it is not JSON; YAML's flow style looks similar.
 */
function readJsonValues(text: string, span: Span, parsers: Parsers): JsonValues | undefined {
  if (!beginsWithBrace(text, span.start)) return undefined;
  const first = /[^\s]/g;
  const values: { start: number; value: unknown }[] = [];
  try {
    // One value is by far the most common, and needs no search for its end. No parser calls itself for each level of it.
    return { values: [{ start: span.start, value: parsers.json(text, span) }] };
  } catch {
    // Perhaps several values, or YAML.
    if (nestsTooDeeply(text.slice(span.start, span.end))) return undefined;
  }
  for (let at = span.start; ;) {
    first.lastIndex = at;
    const start = first.exec(text)?.index ?? span.end;
    if (start >= span.end) return { values };
    const end = Math.min(skipValue(text, start), span.end);
    try {
      values.push({ start, value: parsers.json(text, { start, end }) });
    } catch {
      // YAML does not take a second mapping after the first one: whatever this is, it is meant as JSON.
      const isStream = values.length > 1 || (values.length === 1 && text[start] === '{');
      return isStream ? { values, broken: { start, end: end > start ? end : span.end } } : undefined;
    }
    at = end;
  }
}
