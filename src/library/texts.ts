import { findNearest } from '../base/find-nearest.ts';

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

/** File name → text. */
export type Texts = ReadonlyMap<string, string> | Readonly<Record<string, string>>;

/** Throws if a program without types passes something else, such as a buffer or a path. */
export function checkText(value: NamedText, what: string): NamedText {
  const { name, text } = (value ?? {}) as Partial<Record<'name' | 'text', unknown>>;
  if (typeof name === 'string' && typeof text === 'string') return value;
  throw new TypeError(`${what} is not { name, text } with two strings`);
}

/** Files by name. Throws if one is not text. */
export function mapOf(files: Texts, what: string): ReadonlyMap<string, string> {
  const map = files instanceof Map ? (files as ReadonlyMap<string, string>) : new Map(Object.entries(files));
  for (const [name, text] of map as ReadonlyMap<string, unknown>) {
    if (typeof text !== 'string') throw new TypeError(`${what}: ${name} is not a string`);
  }
  return map;
}
