import type { FieldPath, Source } from '../cluster/objects.ts';
import type { Location, Place } from '../kernel/origin.ts';
import { itemOffsets, locateInJson } from './json-parser.ts';
import type { Span } from './split-documents.ts';
import type { TextFile } from './text-file.ts';
import { locateInYaml, type PositionOf } from './yaml-parser.ts';

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
export type Locator = (path: FieldPath, of: PositionOf) => number;

/** A Source whose places ask the locator when somebody wants to see them, once. */
export function createSource(file: TextFile, locator: Locator): InputSource {
  return new DocumentSource(file, locator);
}

/** Each object has a source, and few are ever asked: a class, for closures would take several times the memory. */
class DocumentSource implements InputSource {
  readonly #file: TextFile;
  readonly #locator: Locator;

  constructor(file: TextFile, locator: Locator) {
    this.#file = file;
    this.#locator = locator;
  }

  place(path: FieldPath): Place {
    return new FieldPlace(this.#file, this.#locator, path, 'value');
  }

  keyPlace(path: FieldPath): Place {
    return new FieldPlace(this.#file, this.#locator, path, 'key');
  }
}

/** A field of a document. */
class FieldPlace implements Place {
  readonly #text: TextFile;
  readonly #locator: Locator;
  readonly #path: FieldPath;
  readonly #of: PositionOf;
  #location: Location | undefined;

  constructor(text: TextFile, locator: Locator, path: FieldPath, of: PositionOf) {
    this.#text = text;
    this.#locator = locator;
    this.#path = path;
    this.#of = of;
  }

  get file(): string {
    return this.#text.name;
  }

  locate(): Location {
    return (this.#location ??= this.#text.locationAt(this.#locator(this.#path, this.#of)));
  }
}

/** The source of one item of a list: its fields are fields of the list below `prefix`. */
export function subSource(source: InputSource, prefix: FieldPath): InputSource {
  return {
    place: (path) => source.place([...prefix, ...path]),
    keyPlace: (path) => source.keyPlace([...prefix, ...path]),
  };
}

/** Finds fields of a JSON document. The items of a long list are found once, so that many errors cost one scan. */
export function createJsonLocator(file: TextFile, start: number): Locator {
  let items: readonly number[] | undefined;
  return (path, of) => {
    const [first, index, ...rest] = path;
    if (first !== 'items' || typeof index !== 'number') return locateInJson(file.text, start, path, of);
    items ??= itemOffsets(file.text, locateInJson(file.text, start, ['items'], 'value'));
    const item = items[index];
    return item === undefined ? locateInJson(file.text, start, path, of) : locateInJson(file.text, item, rest, of);
  };
}

/**
 * Finds fields of a YAML document by parsing it again, with the full parser. Of a list in the shape in which kubectl
 * prints it, only the item in question is parsed.
 */
export function createYamlLocator(file: TextFile, span: Span): Locator {
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
