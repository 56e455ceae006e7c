import type { Span } from '../documents/text-file.ts';
import { mostPlacedValues, mostYamlValues, Refusal } from '../documents/faults-and-limits.ts';
import { readFlow } from './flow.ts';
import { addPlaces, locatorOf, type YamlPlaces } from './places.ts';
import type { JsonEntry, FieldLocator } from '../../base/json/locate.ts';
import { Lines, quoted, unsure, PlainText } from './lines.ts';
import { type ParseCounts, countValue, parseWithPlaces, type ParsedValue, parseYamlValue } from './parse.ts';
import { plainKey, readLiteral, requireFinite, resolveFinite, unquoteScalar, Words } from './scalars.ts';

/** Leaves deeper nesting to the full parser, because such a document may be meant to exhaust the stack. */
const maxDepth = 64;

/** A first line without content: "---", a comment, or nothing. */
const firstLine = /(?:---(?: +#[ -\uffff]*| *)| *(?:#[ -\uffff]*)?)(?=\n)/y;
const spaces = / */y;

const openBracket = 0x5b;
const pipe = 0x7c;
const openBrace = 0x7b;
const greater = 0x3e;

export class Memory {
  readonly text = new PlainText();
  readonly words = new Words();
}

/**
 * Reads one YAML document in the plain form that kubectl prints and people write, for speed. The result equals that of parseYamlValue.
 * Returns undefined if the full parser must read the document, because of a rarer form or a mistake. The only fault that it reports is a
 * document that is too large.
 */
export function readYamlFast(
  text: string,
  { start, end }: Span = { start: 0, end: text.length },
  memory = new Memory(),
  counts: ParseCounts = { values: 0, copies: 0 },
): ParsedValue | undefined {
  const document = text.slice(start, end);
  // Removing the carriage returns from Windows line ends does not change the meaning of any scalar.
  if (!memory.text.take(document.includes('\r\n') ? document.replaceAll('\r\n', '\n') : document)) return undefined;
  const { values } = counts;
  try {
    return { kind: 'value', value: new FastReader(memory, counts).readDocument() };
  } catch (error) {
    if (error instanceof Refusal) return { kind: 'faults', faults: [error.fault] };
    // V8 limits backtracking in a regular expression to 64 MB, which is too little for some lines of millions of characters.
    if (error !== unsure && !(error instanceof RangeError)) throw error;
    counts.values = values;
    return undefined;
  }
}

/** Locates a YAML document's fields in one pass. Undefined if the document cannot be read alone, or is too long for its parser. */
export function locateInYaml(text: string): FieldLocator | undefined {
  const { value, start, places } = placePlain(text) ?? parseWithPlaces(text) ?? {};
  return start === undefined || places === undefined ? undefined : locatorOf(value, start, places);
}

function placePlain(text: string): ReturnType<typeof parseWithPlaces> {
  const memory = new Memory();
  // Replace the carriage return with a blank, which keeps offsets unchanged and matters only in block text.
  if (!memory.text.take(text.replaceAll('\r\n', ' \n'))) return undefined;
  const places: YamlPlaces = new Map();
  const root: JsonEntry = { key: 0, value: 0 };
  // Start the count high enough that it reaches its limit after mostPlacedValues values.
  const counts = { values: Math.max(0, mostYamlValues - mostPlacedValues), copies: 0 };
  try {
    return { value: new FastReader(memory, counts, places, root).readDocument(), start: root.value, places };
  } catch (error) {
    if (error instanceof Refusal || error === unsure || error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * Reads in one pass over the lines. A method that reads a block value begins with `pos` on the value's first character. It ends with `pos`
 * on the first character of the next line with content, and with that line's indentation in `column`.
 */
class FastReader extends Lines {
  readonly #memory: Memory;
  readonly #counts: ParseCounts;
  readonly #places: YamlPlaces | undefined;
  #entry: JsonEntry | undefined;
  #depth = 0;

  constructor(memory: Memory, counts: ParseCounts, places?: YamlPlaces, root?: JsonEntry) {
    super(memory.text);
    this.#memory = memory;
    this.#counts = counts;
    this.#places = places;
    this.#entry = root;
  }

  readDocument(): unknown {
    if (this.skip(firstLine)) this.toContent();
    else {
      this.skip(spaces);
      this.startLine(0);
    }
    if (this.column < 0) return null;
    const value = this.#readBlock();
    if (this.column >= 0) throw unsure;
    return value;
  }

  #readBlock(): unknown {
    return this.atDash() ? this.#readSequence() : this.#readMapping();
  }

  #readMapping(): Record<string, unknown> {
    const column = this.column;
    const mapping: Record<string, unknown> = {};
    const entries = this.#begin(mapping);
    this.#enter();
    do {
      const start = this.pos;
      const key = this.#readKey();
      // Leave a repeated key, which is an error, to the full parser.
      if (Object.hasOwn(mapping, key)) throw unsure;
      countValue(this.#counts);
      if (entries) this.#expect(entries, key, start);
      mapping[key] = this.#readMappingValue(column);
    } while (this.column === column);
    this.#leave(column);
    return mapping;
  }

  #readSequence(): unknown[] {
    const column = this.column;
    this.#enter();
    // An array that grows from empty reserves room for sixteen items, but most lists hold one.
    const items: unknown[] = [undefined];
    const entries = this.#begin(items);
    for (let i = 0; i === 0 || (this.column === column && this.atDash()); i++) {
      if (entries) this.#expect(entries, String(i), this.pos);
      items[i] = this.#readItem(column);
    }
    this.#leave(column);
    return items;
  }

  /** Begins a value at the current position. Makes entries for a collection only if places are wanted. */
  #begin(collection?: object): Map<string, JsonEntry> | undefined {
    if (!this.#places) return undefined;
    if (this.#entry) this.#entry.value = this.pos;
    this.#entry = undefined;
    const entries = new Map<string, JsonEntry>();
    if (collection) this.#places.set(collection, entries);
    return entries;
  }

  #expect(entries: Map<string, JsonEntry>, name: string, at: number): void {
    this.#entry = { key: at, value: at };
    entries.set(name, this.#entry);
  }

  #enter(): void {
    if (++this.#depth > maxDepth) throw unsure;
  }

  /** Ends a collection. The text after it must belong to an outer one. */
  #leave(column: number): void {
    if (this.column > column) throw unsure;
    this.#depth--;
  }

  #readKey(): string {
    const start = this.pos;
    let scalar: unknown;
    if (this.atQuote()) {
      if (!this.skip(quoted)) throw unsure;
      scalar = unquoteScalar(this.text.slice(start, this.pos));
    } else {
      this.pos = this.passPlain(start);
      if (this.pos > this.wordEnd) throw unsure;
      scalar = this.#resolveWord(start);
    }
    const key = plainKey(scalar, this.pos - start);
    if (key === undefined || !this.atColon()) throw unsure;
    this.pos++;
    return key;
  }

  #readMappingValue(column: number): unknown {
    if (!this.passSpaces()) return this.#readInline(column);
    this.toContent();
    if (this.column > column) return this.#readBlock();
    return this.column === column && this.atDash() ? this.#readSequence() : null;
  }

  #readItem(column: number): unknown {
    const start = this.pos++;
    countValue(this.#counts);
    if (this.passSpaces()) {
      this.toContent();
      return this.column > column ? this.#readBlock() : null;
    }
    this.column = column + this.pos - start;
    if (this.atDash()) return this.#readSequence();
    return this.atKey() ? this.#readMapping() : this.#readInline(column);
  }

  #resolveWord(start: number): unknown {
    return requireFinite(this.#memory.words.resolve(this.#memory.text, start, this.wordEnd));
  }

  #readInline(column: number): unknown {
    const start = this.pos;
    this.#begin();
    if (this.atQuote()) {
      if (this.skip(quoted)) {
        const written = this.text.slice(start, this.pos);
        if (this.endLine()) return unquoteScalar(written);
      }
    } else if (this.at(openBrace) || this.at(openBracket)) {
      const flow = readFlow(this, this.#counts, maxDepth - this.#depth, this.#places);
      if (flow !== undefined && this.endLine()) return flow;
    } else if (!this.at(pipe) && !this.at(greater)) return this.#readPlain(column);
    this.pos = start;
    return this.#readOther(column);
  }

  #readPlain(column: number): unknown {
    const start = this.pos;
    this.pos = this.passPlain(start);
    if (this.atColon()) throw unsure;
    const value = this.#resolveWord(start);
    const end = this.wordEnd;
    this.toContent();
    return this.column > column ? this.#readFolded(this.text.slice(start, end), column) : value;
  }

  #readFolded(first: string, column: number): unknown {
    let folded = first;
    while (this.column > column) {
      // A scalar cannot continue after a comment.
      if (this.passedComment) throw unsure;
      const start = this.pos;
      folded += this.lineFeeds === 1 ? ' ' : '\n'.repeat(this.lineFeeds - 1);
      this.pos = this.passRest(start);
      if (this.atColon()) throw unsure;
      folded += this.text.slice(start, this.wordEnd);
      this.toContent();
    }
    return resolveFinite(folded);
  }

  /** Reads a value that needs the full parser (brackets, escapes, several lines), with all lines indented deeper than `column`. */
  #readOther(column: number): unknown {
    const start = this.pos;
    do this.toContent();
    while (this.column > column);
    const end = this.column < 0 ? this.text.length : this.pos - this.column;
    const lines = this.text.slice(start, end);
    const literal = lines.startsWith('|') ? readLiteral(lines, column) : undefined;
    if (literal !== undefined) return literal;
    // The full parser needs the whole document to resolve aliases and to enforce limits.
    if (/^[[{]/.test(lines) && /[\s,[{:][&*]/.test(lines)) throw unsure;
    const { a: value } = this.#readField(`${' '.repeat(column)}a: `, lines, start) as { readonly a: unknown };
    this.#checkOther(value, maxDepth - this.#depth);
    return value;
  }

  #readField(name: string, lines: string, start: number): unknown {
    if (!this.#places) {
      const parsed = parseYamlValue(name + lines);
      if (parsed.kind === 'faults' || parsed.faults) throw unsure;
      return parsed.value;
    }
    const placed = parseWithPlaces(name + lines);
    if (!placed) throw unsure;
    addPlaces(placed.places, start - name.length, this.#places);
    return placed.value;
  }

  #checkOther(value: unknown, levels: number): void {
    if (typeof value !== 'object' || value === null) return;
    if (levels === 0) throw unsure;
    for (const inner of Object.values(value)) {
      countValue(this.#counts);
      this.#checkOther(inner, levels - 1);
    }
  }
}
