import { quote } from '../base/wording.ts';
import type { FieldPath } from '../cluster/objects.ts';

export { quote };

/** What a person calls a field: its own name, with the index of a list's item. */
export function fieldName(path: FieldPath): string {
  const last = path.at(-1);
  if (last === undefined) return 'the document';
  if (typeof last === 'string') return last;
  const parent = path.at(-2);
  return typeof parent === 'string' ? `${parent}[${last}]` : `[${last}]`;
}

/** A value from the input in a few words. */
export function describeValue(value: unknown): string {
  if (value === null) return 'empty';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  return typeof value === 'string' ? quote(value) : String(value);
}
