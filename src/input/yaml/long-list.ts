import type { SyntaxFault } from '../documents/faults-and-limits.ts';
import type { Span } from '../documents/text-file.ts';
import { type Memory, readYamlFast } from './fast-reader.ts';
import { PieceReader, parseYamlValue, type ParsedValue } from './parse.ts';

/** Shorter documents are not read in pieces, because the full parser needs little memory for them. */
const usualLeast = 2 ** 20;

/** The length of a piece, in characters. */
const pieceLength = 2 ** 16;

/** How many characters to search for the cause of a mistake. An unclosed quote turns everything after it into text. */
const faultLength = 2 ** 18;

/** Matches characters that end a line only for kubectl, or for no program. */
const oddLineEnd = /\r(?!\n)|[\u0085\u2028\u2029]/;

interface LongList {
  readonly start: number;
  readonly end: number;
  /** Where pieces of similar length begin, each at the start of an item. */
  readonly pieces: readonly number[];
}

export function readLongList(document: string, memory: Memory, least = usualLeast): ParsedValue | undefined {
  if (document.length < least || oddLineEnd.test(document)) return undefined;
  const list = findList(document, Math.min(pieceLength, least));
  if (!list) return undefined;
  const { start, end } = list;
  const around = document.slice(0, start) + document.slice(end);
  // The text around the list may define an anchor that items refer to.
  if (/[&*]/.test(around)) return undefined;
  const outer = readYamlFast(around) ?? parseYamlValue(around);
  if (outer.kind === 'faults' && outer.faults.some(({ offset }) => offset < start)) return outer;
  const items = readListItems(document, list, memory);
  if (items.kind === 'faults') return items;
  const outerFaults = moveFaults(outer.faults, (offset) => (offset < start ? offset : offset + end - start));
  if (outer.kind === 'faults') return { ...outer, faults: outerFaults };
  const value = outer.value as Readonly<Record<string, unknown>>;
  // The field's real value is after the list.
  if (value['items'] !== null) return undefined;
  return withFaults({ ...value, items: items.value }, [{ ...outer, faults: outerFaults }, items]);
}

function withFaults(value: unknown, parts: readonly ParsedValue[]): ParsedValue {
  const faults = parts.flatMap((part) => part.faults ?? []);
  const isUncertain = parts.some((part) => part.kind === 'value' && part.isUncertain);
  return { kind: 'value', value, ...(faults.length > 0 && { faults, isUncertain }) };
}

function readListItems(document: string, { pieces, end }: LongList, memory: Memory): ParsedValue {
  const reader = new PieceReader();
  const items: unknown[] = [];
  const faulty: ParsedValue[] = [];
  for (let i = 0; i < pieces.length;) {
    const start = pieces[i] ?? end;
    let next = i + 1;
    let read = readPiece(document, { start, end: pieces[next] ?? end }, memory, reader);
    if (read.kind === 'faults') {
      while (next < pieces.length && (pieces[next] ?? end) - start < faultLength) next++;
      read = parsePiece(document, { start, end: pieces[next] ?? end }, reader);
    }
    if (read.kind === 'faults') return read;
    for (const item of read.value as readonly unknown[]) items.push(item);
    if (read.faults) faulty.push(read);
    i = next;
  }
  return withFaults(items, faulty);
}

function readPiece(document: string, span: Span, memory: Memory, reader: PieceReader): ParsedValue {
  return readYamlFast(document, span, memory, reader.counts) ?? parsePiece(document, span, reader);
}

function parsePiece(document: string, { start, end }: Span, reader: PieceReader): ParsedValue {
  const read = reader.read(document.slice(start, end));
  return read.faults ? { ...read, faults: moveFaults(read.faults, (offset) => offset + start) } : read;
}

function moveFaults(faults: readonly SyntaxFault[] = [], move: (offset: number) => number): readonly SyntaxFault[] {
  return faults.map((fault) => ({ ...fault, offset: move(fault.offset) }));
}

const itemsKey = /(?:^|\n)items:[ \t]*(?:#[^\n]*)?\r?\n/;

/**
 * Finds the list by indentation alone. If a quoted text is indented less, its piece fails to parse. All pieces but the last have at least
 * `length` characters.
 */
export function findList(document: string, length: number): LongList | undefined {
  const key = itemsKey.exec(document);
  if (!key) return undefined;
  const start = key.index + key[0].length;
  const pieces: number[] = [];
  let column = -1;
  let at = start;
  for (let lineEnd: number; at < document.length; at = lineEnd + 1) {
    lineEnd = document.indexOf('\n', at);
    if (lineEnd < 0) lineEnd = document.length;
    let first = at;
    while (document[first] === ' ') first++;
    if (first >= lineEnd || /[#\r\t]/.test(document.charAt(first))) continue;
    const isItem = document[first] === '-' && (first + 1 >= lineEnd || /[ \r\t]/.test(document.charAt(first + 1)));
    if (column < 0) {
      if (!isItem) return undefined;
      column = first - at;
    }
    if (first - at < column || (column === 0 && first === at && !isItem)) break;
    if (first - at === column && isItem && at - (pieces.at(-1) ?? -length) >= length) pieces.push(at);
  }
  return column < 0 ? undefined : { start, end: Math.min(at, document.length), pieces };
}
