import { quote } from '../base/wording.ts';

/** A value of the input as a diagnostic shows it: a number, a text and the like themselves, of a list or a mapping the type. */
export type Found =
  | { readonly type: 'empty' | 'list' | 'mapping' }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'boolean'; readonly value: boolean };

/** What a value of YAML or JSON is; what is not there counts as empty. */
export function findingOf(value: unknown): Found {
  if (Array.isArray(value)) return { type: 'list' };
  switch (typeof value) {
    case 'string':
      return { type: 'string', value };
    case 'number':
      return { type: 'number', value };
    case 'boolean':
      return { type: 'boolean', value };
    default:
      return { type: value === null || value === undefined ? 'empty' : 'mapping' };
  }
}

/** A value from the input in a few words. */
export function describeFound(found: Found): string {
  switch (found.type) {
    case 'empty':
      return 'empty';
    case 'list':
      return 'a list';
    case 'mapping':
      return 'a mapping';
    case 'string':
      return quote(found.value);
    case 'number':
    case 'boolean':
      return String(found.value);
  }
}
