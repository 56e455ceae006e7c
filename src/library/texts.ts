import { findNearest } from '../base/names.ts';

/** A text, with the name that diagnostics give it: the path of a file, say. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** Throws for an option with an unknown name: a program without types would not learn that it is ignored. */
export function checkOptionNames(options: object, known: readonly string[]): void {
  const strange = Object.keys(options).find((name) => !known.includes(name));
  if (strange === undefined) return;
  const near = findNearest(strange, known);
  throw new TypeError(`no option "${strange}"${near === undefined ? '' : `: did you mean ${near}?`}`);
}

/** Texts by name: a Map or an object from name to text, or a list of { name, text }. */
export type Texts = ReadonlyMap<string, string> | Readonly<Record<string, string>> | readonly NamedText[];

/** Throws if a program without types passes something else, such as a buffer or a path. */
export function checkText(value: NamedText, what: string): NamedText {
  const { name, text } = (value ?? {}) as Partial<Record<'name' | 'text', unknown>>;
  if (typeof name === 'string' && typeof text === 'string') return value;
  throw new TypeError(`${what} is not { name, text } with two strings`);
}

/** Texts by name. Throws if one is not text. */
export function mapOf(texts: Texts, what: string): ReadonlyMap<string, string> {
  return new Map(listOf(texts, what).map(({ name, text }) => [name, text]));
}

/** A list of texts, in their order. Throws if one is not text. */
export function listOf(texts: Texts, what: string): readonly NamedText[] {
  if (Array.isArray(texts)) return texts.map((each: NamedText) => checkText(each, `one of ${what}`));
  if (typeof texts !== 'object' || texts === null) {
    throw new TypeError(`${what} is not a Map, an object or an array of texts`);
  }
  const entries: readonly (readonly [string, unknown])[] =
    texts instanceof Map ? [...(texts as ReadonlyMap<string, unknown>)] : Object.entries(texts);
  return entries.map(([name, text]) => {
    if (typeof text !== 'string') throw new TypeError(`${what}: ${name} is not a string`);
    return { name, text };
  });
}
