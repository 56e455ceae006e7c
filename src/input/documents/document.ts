import type { FieldPath, Source } from '../../cluster/objects.ts';
import type { Location, Place } from '../../kernel/place.ts';
import { itemOffsets, locateInJson } from './json-parser.ts';
import type { Span } from './split-documents.ts';
import type { TextFile } from './text-file.ts';
import type { PositionOf } from '../yaml/parse.ts';
import { locateInYaml } from '../yaml/parse.ts';

/** A Source that can also point at the name of a field: for fields that should not be there. */
export interface InputSource extends Source {
  keyPlace(path: FieldPath): Place;
}

/** One value of a file, and how to find its fields there. */
export interface InputDocument {
  readonly file: TextFile;
  readonly value: unknown;
  readonly source: InputSource;
}

/** Finds the offset in the file of a field of a document. */
type Locator = (path: FieldPath, of: PositionOf) => number;

/** The source of the JSON value in a stretch of a file. */
export function createJsonSource(file: TextFile, span: Span): InputSource {
  return new DocumentSource(file, span, createJsonLocator);
}

/** The source of the YAML document in a stretch of a file. */
export function createYamlSource(file: TextFile, span: Span): InputSource {
  return new DocumentSource(file, span, createYamlLocator);
}

/** The place of an offset in a file. */
export function placeAt(file: TextFile, offset: number): Place {
  return { file: file.name, locate: () => file.locationAt(offset) };
}

/** Each object has a source, and few are ever asked: what finds fields is made when a diagnostic needs it. */
class DocumentSource implements InputSource {
  readonly file: TextFile;
  readonly #start: number;
  readonly #end: number;
  readonly #createLocator: (file: TextFile, span: Span) => Locator;
  #locator: Locator | undefined;

  constructor(file: TextFile, { start, end }: Span, createLocator: (file: TextFile, span: Span) => Locator) {
    this.file = file;
    this.#start = start;
    this.#end = end;
    this.#createLocator = createLocator;
  }

  place(path: FieldPath): Place {
    return new FieldPlace(this, path, 'value');
  }

  keyPlace(path: FieldPath): Place {
    return new FieldPlace(this, path, 'key');
  }

  locate(path: FieldPath, of: PositionOf): Location {
    this.#locator ??= this.#createLocator(this.file, { start: this.#start, end: this.#end });
    return this.file.locationAt(this.#locator(path, of));
  }
}

/** A field of a document. */
class FieldPlace implements Place {
  readonly #source: DocumentSource;
  readonly #path: FieldPath;
  readonly #of: PositionOf;
  #location: Location | undefined;

  constructor(source: DocumentSource, path: FieldPath, of: PositionOf) {
    this.#source = source;
    this.#path = path;
    this.#of = of;
  }

  get file(): string {
    return this.#source.file.name;
  }

  locate(): Location {
    return (this.#location ??= this.#source.locate(this.#path, this.#of));
  }
}

/** The source of one item of a list: its fields are fields of the list below `prefix`. */
export function subSource(source: InputSource, prefix: FieldPath): InputSource {
  return new ItemSource(source, prefix);
}

class ItemSource implements InputSource {
  readonly #list: InputSource;
  readonly #prefix: FieldPath;

  constructor(list: InputSource, prefix: FieldPath) {
    this.#list = list;
    this.#prefix = prefix;
  }

  place(path: FieldPath): Place {
    return this.#list.place([...this.#prefix, ...path]);
  }

  keyPlace(path: FieldPath): Place {
    return this.#list.keyPlace([...this.#prefix, ...path]);
  }
}

/** Finds fields of a JSON document. The items of each list are found once, so that many errors in it cost one scan. */
function createJsonLocator(file: TextFile, { start }: Span): Locator {
  const lists = new Map<string, readonly number[]>();
  /** As a Locator, for the value at `from`, which `name` tells from all others. */
  const locate = (from: number, name: string, path: FieldPath, of: PositionOf): number => {
    const at = path.findIndex((step) => typeof step === 'number');
    if (at < 0) return locateInJson(file.text, from, path, of);
    const list = [name, ...path.slice(0, at)].join('\n');
    let items = lists.get(list);
    if (!items) {
      const offset = locateInJson(file.text, from, path.slice(0, at), 'value');
      // Where there is no such list, the offset is that of what should hold it.
      items = file.text[offset] === '[' ? itemOffsets(file.text, offset) : [];
      lists.set(list, items);
    }
    const item = items[Number(path[at])];
    if (item === undefined) return locateInJson(file.text, from, path, of);
    return locate(item, `${list}\n${path[at]}`, path.slice(at + 1), of);
  };
  return (path, of) => locate(start, '', path, of);
}

/**
 * Finds fields of a YAML document by parsing it again, with the full parser. Of a list in the shape in which kubectl
 * prints it, only the item in question is parsed.
 */
function createYamlLocator(file: TextFile, span: Span): Locator {
  let items: readonly Span[] | undefined;
  let parsed: { readonly start: number; readonly locate: Locator } | undefined;
  const locateIn = ({ start, end }: Span, path: FieldPath, of: PositionOf): number => {
    if (parsed?.start !== start) parsed = { start, locate: locateInYaml(file.text.slice(start, end)) };
    return start + parsed.locate(path, of);
  };
  return (path, of) => {
    const [first, index, ...rest] = path;
    if (first === 'items' && typeof index === 'number') {
      items ??= splitItems(file.text, span);
      const item = items[index];
      if (item) return locateIn(item, [0, ...rest], of);
    }
    return locateIn(span, path, of);
  };
}

/**
 * The items of a document's list `items`, where it is a block sequence at the start of the line: everything inside an
 * item is indented further, so its lines need no parser. Empty for another shape, and for a document with anchors,
 * whose items may lean on each other.
 */
function splitItems(text: string, { start, end }: Span): Span[] {
  const body = text.slice(start, end);
  const header = /^items:[ \t]*(?:#.*)?\r?\n/m.exec(body);
  if (!header || /[\s[{,]&\w/.test(body)) return [];
  const spans: Span[] = [];
  const first = header.index + header[0].length;
  const line = /^([- #\r\n]|$)?.*(?:\n|$)/my;
  line.lastIndex = first;
  let itemStart: number | undefined;
  let at = first;
  for (let match = line.exec(body); match && match[0] !== ''; match = line.exec(body)) {
    const startsItem = match[0].startsWith('- ') || /^-\r?\n/.test(match[0]);
    if (startsItem || match[1] === undefined) {
      if (itemStart !== undefined) spans.push({ start: start + itemStart, end: start + match.index });
      itemStart = startsItem ? match.index : undefined;
      if (!startsItem) return spans;
    }
    at = line.lastIndex;
  }
  if (itemStart !== undefined) spans.push({ start: start + itemStart, end: start + at });
  return spans;
}
