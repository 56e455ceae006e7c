import type { Schema } from '../../diagnostics/json-schema.ts';
import { lastName } from './field.ts';
import { listSettings } from './table.ts';

type Properties = Readonly<Record<string, Schema>>;

const fields = listSettings().flatMap(({ row }) => row.fields);

/** The sections of a configuration that hold settings. */
export const configuredSections: readonly string[] = [
  ...new Set(fields.flatMap(({ path }) => (path.length > 1 ? path.slice(0, 1) : []))),
];

/** The schemas of the settings in a section of the configuration; '' for those that are in none. */
export function fieldsInSection(section: string): Properties {
  const own = fields.filter(({ path }) => (path.length > 1 ? path[0] : '') === section);
  return Object.fromEntries(own.map((field) => [lastName(field), field.schema]));
}
