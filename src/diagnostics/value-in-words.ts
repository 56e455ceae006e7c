import { quote } from '../base/printable.ts';

/** A value of the input as a diagnostic shows it: texts, numbers and booleans in full, lists and mappings by their type. */
export type Found =
  | { readonly type: 'empty' | 'list' | 'mapping' }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'number'; readonly value: number }
  | { readonly type: 'boolean'; readonly value: boolean };

/** Sorts a value of YAML or JSON. A missing value counts as empty. */
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

/** Describes a value of the input in a few words. */
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
