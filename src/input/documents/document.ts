import type { FieldPath, ObjectSource } from '../../cluster/objects.ts';
import type { Location, Place } from '../../kernel/place.ts';
import { locateInJson, type FieldLocator, type PositionOf } from '../../base/json/locate.ts';
import type { Span, TextFile } from './text-file.ts';
import { findList } from '../yaml/long-list.ts';
import { locateInYaml } from '../yaml/fast-reader.ts';

/** An ObjectSource that can also locate the name of a field, for findings about fields that should not exist. */
export interface InputSource extends ObjectSource {
  keyPlace(path: FieldPath): Place;
  /** Returns a number exactly as written; undefined if the field holds no written number. */
  written(path: FieldPath): string | undefined;
}

export interface InputDocument {
  readonly file: TextFile;
  readonly value: unknown;
  readonly source: InputSource;
}

const numberWord = /[-+]?\.?\d[\w.+-]{0,200}/y;

export function placeAt(file: TextFile, offset: number): Place {
  return { file: file.name, locate: () => file.locationAt(offset) };
}

/** Locates fields of a JSON value or YAML document on demand. Each object has a DocumentSource, but few are ever used. */
export class DocumentSource implements InputSource {
  readonly #file: TextFile;
  readonly #start: number;
  readonly #end: number;
  readonly #format: 'json' | 'yaml';
  readonly #object: string;
  #locator: FieldLocator | undefined;

  constructor(file: TextFile, { start, end }: Span, format: 'json' | 'yaml') {
    this.#file = file;
    this.#start = start;
    this.#object = String(start);
    this.#end = end;
    this.#format = format;
  }

  place(path: FieldPath): Place {
    return this.#placeOf(path, 'value');
  }

  keyPlace(path: FieldPath): Place {
    return this.#placeOf(path, 'key');
  }

  written(path: FieldPath): string | undefined {
    numberWord.lastIndex = this.#offsetOf(path, 'value');
    return numberWord.exec(this.#file.text)?.[0];
  }

  #placeOf(path: FieldPath, of: PositionOf): Place {
    let location: Location | undefined;
    return {
      file: this.#file.name,
      object: this.#object,
      locate: () => (location ??= this.#file.locationAt(this.#offsetOf(path, of))),
    };
  }

  #offsetOf(path: FieldPath, of: PositionOf): number {
    this.#locator ??=
      this.#format === 'json'
        ? locateInJson(this.#file.text, this.#start)
        : createYamlLocator(this.#file, { start: this.#start, end: this.#end });
    return this.#locator(path, of);
  }
}

/** Returns the source for one list item, whose fields are below `prefix`. */
export function subSource(source: InputSource, prefix: FieldPath): InputSource {
  const object = `${source.place([]).object ?? ''} ${prefix.join('.')}`;
  const inItem = ({ file, locate }: Place): Place => ({ file, object, locate });
  return {
    place: (path) => inItem(source.place([...prefix, ...path])),
    keyPlace: (path) => inItem(source.keyPlace([...prefix, ...path])),
    written: (path) => source.written([...prefix, ...path]),
  };
}

/**
 * Locates fields by parsing a YAML document again. In a list from kubectl, parses only one item, unless the item needs anchors from earlier
 * ones.
 */
function createYamlLocator(file: TextFile, span: Span): FieldLocator {
  let items: readonly Span[] | undefined;
  let parsed: { readonly start: number; readonly locate: FieldLocator | undefined } | undefined;
  let whole: { readonly locate: FieldLocator | undefined } | undefined;
  const parse = ({ start, end }: Span): FieldLocator | undefined => locateInYaml(file.text.slice(start, end));
  return (path, of) => {
    const [first, index, ...rest] = path;
    if (first === 'items') items ??= splitItems(file.text, span);
    const item = first === 'items' && typeof index === 'number' ? items?.[index] : undefined;
    if (item && parsed?.start !== item.start) parsed = { start: item.start, locate: parse(item) };
    if (item && parsed?.locate) return item.start + parsed.locate([0, ...rest], of);
    whole ??= { locate: parse(span) };
    return whole.locate ? span.start + whole.locate(path, of) : (item ?? span).start;
  };
}

/** Returns the items of the list `items` if each begins on its own line; otherwise none. */
function splitItems(text: string, { start, end }: Span): readonly Span[] {
  const list = findList(text.slice(start, end), 0);
  if (!list) return [];
  return list.pieces.map((at, i) => ({ start: start + at, end: start + (list.pieces[i + 1] ?? list.end) }));
}
