import type { JsonDiagnostic } from '../report/json.ts';

/** A text, with the name that diagnostics give it: the path of a file, say. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** File name → text. */
export type Texts = ReadonlyMap<string, string> | Readonly<Record<string, string>>;

/** Something to tell the user about an input, with its place where it has one. An error means that there is no result. */
export type LibraryDiagnostic = JsonDiagnostic;

/** Throws where a program without types hands over something else: a buffer, or a path. */
export function checkText(value: NamedText, what: string): NamedText {
  const { name, text } = (value ?? {}) as Partial<Record<'name' | 'text', unknown>>;
  if (typeof name === 'string' && typeof text === 'string') return value;
  throw new TypeError(`${what} is not { name, text } with two strings`);
}

/** Files by name. Throws where one is not text. */
export function mapOf(files: Texts, what: string): ReadonlyMap<string, string> {
  const map = files instanceof Map ? (files as ReadonlyMap<string, string>) : new Map(Object.entries(files));
  for (const [name, text] of map as ReadonlyMap<string, unknown>) {
    if (typeof text !== 'string') throw new TypeError(`${what}: ${name} is not a string`);
  }
  return map;
}
