import { parse, printParseErrorCode, type ParseError } from 'jsonc-parser';
import { findRepeatedKeys, skipValue } from '../../base/json/locate.ts';
import { diagnoseMergeConflict, type Span, type TextFile } from './text-file.ts';
import { tooDeep, mostJsonValues, tooLong, type SyntaxFault } from './faults-and-limits.ts';
import { diagnoseFault, Tally, type Finding } from '../../base/findings/finding.ts';
import { DocumentSource, placeAt, type InputDocument } from './document.ts';
import { findExcess, parseJson, TooLong } from '../../base/bounds.ts';
import { Memory, readYamlFast } from '../yaml/fast-reader.ts';
import { readLongList } from '../yaml/long-list.ts';
import { parseYamlValue, type ParsedValue } from '../yaml/parse.ts';
import { findUnclosed } from '../yaml/unclosed.ts';

function findJsonFaults(text: string): readonly SyntaxFault[] {
  const errors: ParseError[] = [];
  try {
    parse(text, errors, { disallowComments: true, allowTrailingComma: false });
  } catch (error) {
    // The parser is recursive.
    if (!(error instanceof RangeError)) throw error;
    return [tooDeep];
  }
  return firstOfLines(errors, text).map(({ error, offset }) => {
    const reason = printParseErrorCode(error)
      .replace(/(?!^)([A-Z])/g, ' $1')
      .toLowerCase();
    return { offset, code: 'bad-json', arguments: { reason } };
  });
}

function firstOfLines(errors: readonly ParseError[], text: string): readonly ParseError[] {
  return errors.filter(({ offset }, i) => {
    const before = errors[i - 1];
    return before === undefined || text.slice(before.offset, offset).includes('\n');
  });
}

export function findRepeatedJsonKeys(text: string, { start, end }: Span): SyntaxFault[] {
  return findRepeatedKeys(text, start, end).map(({ second, times }) => ({
    offset: second - start,
    code: 'duplicate-key',
    arguments: { times },
  }));
}

/** Reads the YAML and JSON documents of a file. Reports a broken document and continues with the next one. */
export function readDocuments(file: TextFile, readYaml?: YamlReader) {
  const excess = findExcess([file]);
  if (excess) return { documents: [], diagnostics: [diagnoseFault(tooLong(excess.of, excess.most), placeAt(file, 0))] };
  const documents: InputDocument[] = [];
  const tally = new Tally();
  const { diagnostics } = takeDocuments(file, readYaml ?? createYamlReader(), (each) => documents.push(each), {
    tally,
  });
  return { documents, diagnostics: [...diagnostics, ...tally.rest(file.name)] };
}

interface FileFaults {
  readonly diagnostics: readonly Finding[];
  /** Whether the returned documents are complete and correctly split, even if others are broken. */
  readonly areApart: boolean;
}

/**
 * How many broken documents to report in full per file. The limit matters for a file that is not YAML, because all its documents are
 * broken.
 */
const mostBroken = 2;

/**
 * Like readDocuments, but passes documents on one at a time, so that each can be freed before the next is read. Returns the faults of
 * unreadable documents and of unreadable parts of others: it keeps the last of repeated JSON keys, and replaces a value that JSON cannot
 * express with NaN. With `leavesOut`, skips YAML documents with such parts. Ignores a broken YAML document if `isOfNoUse` accepts its text.
 * Faults that `tally` does not admit are only counted.
 */
export function takeDocuments(
  file: TextFile,
  readYaml: YamlReader,
  take: (document: InputDocument) => void,
  {
    tally,
    isOfNoUse = () => false,
    leavesOut = false,
  }: {
    readonly tally: Tally;
    readonly isOfNoUse?: ((text: string) => boolean) | undefined;
    readonly leavesOut?: boolean;
  },
): FileFaults {
  const diagnostics: Finding[] = [];
  const reportFaults = (start: number, faults: readonly SyntaxFault[], isLast?: true): void => {
    for (const fault of faults) {
      if (!tally.admits(fault.code, 'error')) continue;
      const diagnostic = diagnoseFault(fault, placeAt(file, start + fault.offset));
      diagnostics.push(isLast ? { ...diagnostic, isLast } : diagnostic);
    }
  };
  const broken: (readonly [start: number, faults: readonly SyntaxFault[]])[] = [];
  const faulty: typeof broken = [];
  const json = readJsonValues(file);
  for (const { start, end, value } of json.values) {
    if (value === null) continue;
    reportFaults(start, findRepeatedJsonKeys(file.text, { start, end }));
    take({ file, value, source: new DocumentSource(file, { start, end }, 'json') });
  }
  if (json.isTooLong) broken.push([0, [tooLong('values', mostJsonValues)]]);
  if (json.broken) {
    const { start, end } = json.broken;
    const text = file.text.slice(start, end);
    if (!isOfNoUse(text)) broken.push([start, faultsBehindJson(file, json.broken)]);
  }
  splitDocuments(file.text, json.next, (span) => {
    const parsed = readYaml(file.text, span);
    if (parsed.faults && isOfNoUse(file.text.slice(span.start, span.end))) return;
    if (parsed.kind === 'faults' || (parsed.faults && parsed.isUncertain)) {
      if (broken.length <= mostBroken) broken.push([span.start, faultsInSpan(file, span, parsed.faults ?? [])]);
      return;
    }
    if (parsed.faults) faulty.push([span.start, parsed.faults]);
    if (parsed.value !== null && !(parsed.faults && leavesOut))
      take({ file, value: parsed.value, source: new DocumentSource(file, span, 'yaml') });
  });
  const conflict = broken.length > 0 ? diagnoseMergeConflict(file.name, file.text) : undefined;
  if (conflict) return { diagnostics: [...diagnostics, conflict], areApart: false };
  const areApart =
    diagnostics.length === 0 && json.broken === undefined && !json.isTooLong && broken.length <= mostBroken;
  for (const [start, faults] of faulty) reportFaults(start, faults);
  for (const [i, [start, faults]] of broken.entries()) {
    if (i < mostBroken) reportFaults(start, faults);
    else reportFaults(start, faults.slice(0, 1), true);
  }
  return { diagnostics, areApart };
}

/** Returns the faults of a document. If the document is meant as JSON, returns the JSON parser's faults instead of `faults`. */
function faultsInSpan(file: TextFile, span: Span, faults: readonly SyntaxFault[]): readonly SyntaxFault[] {
  const text = file.text.slice(span.start, span.end);
  const isMeantAsJson = !file.hasByteOrderMark && (file.name.endsWith('.json') || /^[^\S\uFEFF]*\{\s*"/.test(text));
  if (faults.some(({ code }) => code === tooDeep.code || code === 'too-long')) return faults;
  if (!isMeantAsJson) return unclosedIn(file, span, faults, 'YAML');
  const jsonFaults = findJsonFaults(text);
  return jsonFaults.length > 0 ? unclosedIn(file, span, jsonFaults, 'JSON') : faults;
}

/** Returns the faults of non-JSON text after a JSON value. */
function faultsBehindJson(file: TextFile, span: Span): readonly SyntaxFault[] {
  const text = file.text.slice(span.start, span.end);
  const faults = text.startsWith('{') ? findJsonFaults(text) : [];
  if (faults.length > 0) return unclosedIn(file, span, faults, 'JSON');
  return [{ offset: 0, code: 'bad-json', arguments: {} }];
}

/** Returns an unclosed bracket or quote instead, if that is the cause of the parser's fault. */
function unclosedIn(
  file: TextFile,
  { start, end }: Span,
  faults: readonly SyntaxFault[],
  language: 'JSON' | 'YAML',
): readonly SyntaxFault[] {
  // An unclosed bracket or quote does not cause faults that only kubectl's reader sees.
  if (
    !faults.some(({ code, arguments: details }) => code === 'bad-json' || (code === 'bad-yaml' && 'lines' in details))
  )
    return faults;
  const unclosed = findUnclosed(file.text.slice(start, end)).map(({ sign, offset }): SyntaxFault => {
    const { line } = file.locationAt(start + offset);
    return { offset, code: 'not-closed', arguments: { language, sign, line } };
  });
  return unclosed.length > 0 ? unclosed : faults;
}

interface JsonValues {
  readonly values: readonly (Span & { readonly value: unknown })[];
  /** A broken value. Nothing after it is read. */
  readonly broken?: Span;
  readonly isTooLong?: true;
  /** The offset from which the file is YAML. */
  readonly next: number;
}

/** In a regular expression, \s includes the byte order mark, which is text for kubectl. */
const blanksAndBrace = /^[^\S\uFEFF]*\{/;
const yamlBehind = /(?:[^\S\n]*(?:#[^\n]*)?\n)*(?:---|[^\S\n]*(?:#[^\n]*)?$)/y;

/**
 * Reads one JSON value, or several as `kubectl get -o json` prints them in a loop. All other text is YAML, and so is all text after a line
 * "---".
 */
function readJsonValues({ text, hasByteOrderMark }: TextFile): JsonValues {
  const all = { start: 0, end: text.length };
  if (!blanksAndBrace.test(text)) return { values: [], next: 0 };
  // After a byte order mark, kubectl reads YAML: one value, with YAML's escapes.
  if (hasByteOrderMark && text.includes('\\')) return { values: [], next: 0 };
  try {
    // Try the most common case first, which needs no search for the end and no recursive parser.
    return { values: [{ ...all, value: parseJson(text, mostJsonValues) }], next: text.length };
  } catch (error) {
    if (error instanceof TooLong) return { values: [], isTooLong: true, next: text.length };
    if (hasByteOrderMark) return { values: [], next: 0 };
  }
  const values: (Span & { readonly value: unknown })[] = [];
  const first = /[^\s]|\uFEFF/g;
  for (let at = 0; ;) {
    first.lastIndex = at;
    const start = first.exec(text)?.index ?? text.length;
    if (start === text.length) return { values, next: start };
    const end = skipValue(text, start);
    try {
      values.push({ start, end, value: JSON.parse(text.slice(start, end)) as unknown });
    } catch {
      yamlBehind.lastIndex = at;
      if (at === 0) return { values, next: /^[\t\r ]*\n?/.exec(text)?.[0].length ?? 0 };
      if (yamlBehind.test(text)) return { values, next: at };
      return { values, broken: { start, end: end > start ? end : text.length }, next: text.length };
    }
    at = end;
  }
}

/** Reads the YAML document in a span of a text. Offsets count from the span's start. */
export type YamlReader = (text: string, span: Span) => ParsedValue;

/** Returns a reader for one run: a fast parser for plain documents, the full parser for all others. */
export function createYamlReader(): YamlReader {
  const memory = new Memory();
  return (text, span) => {
    const fast = readYamlFast(text, span, memory);
    if (fast) return fast;
    const document = text.slice(span.start, span.end);
    return readLongList(document, memory) ?? parseYamlValue(document);
  };
}

/**
 * Calls `take` with each YAML document from an offset on. Splits like kubectl, at lines that begin with "---" as a word, even inside a
 * quoted string. A document keeps its own "---" line, because the line may hold the start of the value. It loses the dashes of "---#",
 * because no parser reads them as a marker. Blanks and comments alone count as a document without a value.
 */
export function splitDocuments(text: string, from: number, take: (document: Span) => void): void {
  let start = from === 0 && text.startsWith('---#') ? '---'.length : from;
  // Begins with literal characters, which V8 finds fast. /^/m would also match after a carriage return or U+2028, which start no line.
  const marker = /\n---(?=[ \t\r\n#]|$)/g;
  marker.lastIndex = Math.max(from - 1, 0);
  while (marker.test(text)) {
    const at = marker.lastIndex - '---'.length;
    if (at > start) take({ start, end: at });
    start = text[marker.lastIndex] === '#' ? marker.lastIndex : at;
  }
  if (start < text.length) take({ start, end: text.length });
}
