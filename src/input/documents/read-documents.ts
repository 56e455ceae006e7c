import { addWords, diagnoseFault, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import { createJsonSource, createYamlSource, placeAt, type InputDocument } from './document.ts';
import { findRepeatedJsonKeys } from './repeated-json-keys.ts';
import { findJsonFaults, skipValue } from './json-parser.ts';
import { describeConflict } from './merge-conflict.ts';
import { splitDocuments, type Span } from './split-documents.ts';
import { fullParsers, type Parsers } from './parsers.ts';
import type { TextFile } from './text-file.ts';
import { tooDeep, type SyntaxFault } from './syntax-fault.ts';

/** The documents of one file in their order, and what is wrong with the others. */
export interface FileDocuments {
  readonly documents: readonly InputDocument[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the YAML and JSON documents of a file. What cannot be read is reported and the others are read all the same. */
export function readDocuments(file: TextFile, parsers: Parsers = fullParsers): FileDocuments {
  const documents: InputDocument[] = [];
  const repeated: Diagnostic[] = [];
  const faults = takeDocuments(file, parsers, (document, repeatedKeys) => {
    documents.push(document);
    for (const diagnostic of repeatedKeys) repeated.push(diagnostic);
  });
  return { documents, diagnostics: [...repeated, ...faults] };
}

/** How many documents of one file are told to be broken: of a file that is no YAML, all of them are. */
const mostBroken = 2;

const noMoreTold = '; further YAML errors in this file are not shown';

/** Takes a document, and errors for the keys of its JSON that come twice: the last of them is in the value. */
type TakeDocument = (document: InputDocument, repeatedKeys: readonly Diagnostic[]) => void;

const none: readonly never[] = [];

/**
 * As readDocuments, but hands over one document after the other: what is not kept of one is free before the next is
 * read. Returns what is wrong with those that could not be read.
 */
export function takeDocuments(file: TextFile, parsers: Parsers, take: TakeDocument): readonly Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  let broken = 0;
  let conflict: Diagnostic | undefined;
  const report = (start: number, faults: readonly SyntaxFault[]): void => {
    broken++;
    if (broken === 1) {
      conflict = describeConflict(file.name, file.text);
      if (conflict) diagnostics.push(conflict);
    }
    if (conflict || broken > mostBroken + 1) return;
    const isLast = broken > mostBroken;
    for (const fault of isLast ? faults.slice(0, 1) : faults) {
      const diagnostic = diagnoseFault(fault, placeAt(file, start + fault.offset));
      diagnostics.push(isLast ? addWords(diagnostic, noMoreTold) : diagnostic);
    }
  };
  const json = readJsonValues(file.text, parsers);
  for (const { start, end, value } of json.values) {
    if (value === null) continue;
    const repeated = findRepeatedJsonKeys(file.text, { start, end }).map((fault) => {
      return diagnoseFault(fault, placeAt(file, start + fault.offset));
    });
    take({ file, value, source: createJsonSource(file, { start, end }) }, repeated);
  }
  if (json.broken) report(json.broken.start, faultsBehindJson(file.text.slice(json.broken.start, json.broken.end)));
  if (json.next === undefined) return diagnostics;
  splitDocuments(file.text, json.next, (span) => {
    const parsed = parsers.yaml(file.text, span);
    if (parsed.kind !== 'value') return report(span.start, faultsOf(file, span, parsed.faults));
    if (parsed.value !== null) take({ file, value: parsed.value, source: createYamlSource(file, span) }, none);
  });
  return diagnostics;
}

/** What is wrong with a document: in terms of JSON, where it is meant as that. */
function faultsOf(file: TextFile, { start, end }: Span, faults: readonly SyntaxFault[]): readonly SyntaxFault[] {
  const text = file.text.slice(start, end);
  const isMeantAsJson = file.name.endsWith('.json') || /^[^\S\uFEFF]*\{\s*"/.test(text);
  if (!isMeantAsJson || faults.some(({ code }) => code === tooDeep.code)) return faults;
  const jsonFaults = findJsonFaults(text);
  return jsonFaults.length > 0 ? jsonFaults : faults;
}

/** What is wrong with a text that stands behind a JSON value and is none. */
function faultsBehindJson(text: string): readonly SyntaxFault[] {
  const faults = text.startsWith('{') ? findJsonFaults(text) : [];
  if (faults.length > 0) return faults;
  return [{ offset: 0, code: 'bad-json', arguments: { problem: 'text-after-json' } }];
}

interface JsonValue extends Span {
  readonly value: unknown;
}

/** JSON values that follow each other, and what comes after them. */
interface JsonValues {
  readonly values: readonly JsonValue[];
  /** The value that is none, after which nothing is read. */
  readonly broken?: Span;
  /** From where on the file is YAML. */
  readonly next?: number;
}

/** A byte order mark is white space to JavaScript, and to kubectl a part of the text. */
const blanksAndBrace = /^[^\S\uFEFF]*\{/;
/** Blanks and comments up to the start of a YAML document, or the end of the file. */
const yamlBehind = /(?:[^\S\n]*(?:#[^\n]*)?\n)*(?:---|[^\S\n]*(?:#[^\n]*)?$)/y;

/**
 * The values of a file that begins as JSON does: one, or several one after the other, as `kubectl get -o json` prints them
 * in a loop. What is no JSON from its start is YAML, and so is what comes after a line "---".
 */
function readJsonValues(text: string, parsers: Parsers): JsonValues {
  if (!blanksAndBrace.test(text)) return { values: [], next: 0 };
  const all: Span = { start: 0, end: text.length };
  try {
    // One value is by far the most common, and needs no search for its end. No parser calls itself for each level of it.
    return { values: [{ ...all, value: parsers.json(text, all) }] };
  } catch {
    // Perhaps several values, or YAML.
  }
  const values: JsonValue[] = [];
  const first = /[^\s]|\uFEFF/g;
  for (let at = 0; ;) {
    first.lastIndex = at;
    const start = first.exec(text)?.index ?? text.length;
    if (start === text.length) return { values };
    const end = skipValue(text, start);
    try {
      values.push({ start, end, value: parsers.json(text, { start, end }) });
    } catch {
      yamlBehind.lastIndex = at;
      if (at === 0) return { values, next: /^[\t\r ]*\n?/.exec(text)?.[0].length ?? 0 };
      if (yamlBehind.test(text)) return { values, next: at };
      return { values, broken: { start, end: end > start ? end : text.length } };
    }
    at = end;
  }
}
