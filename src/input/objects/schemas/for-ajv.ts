import type { Schema } from '../../../diagnostics/json-schema.ts';
import { schemas, type RawObjects } from './all.ts';
import { podSpecSchema } from './node.ts';
import { metadata, objectConditions, targetRef } from './shared.ts';

/** What several kinds have in common, by the names under which ajv knows it. */
const commonSchemas: { readonly [Name in string]: Schema } = { metadata, objectConditions, podSpecSchema, targetRef };

const commonNames = new Map(Object.entries(commonSchemas).map(([name, schema]) => [schema, name]));

/** A schema as ajv takes it. */
type AjvSchema = Readonly<Record<string, unknown>>;

/** How ajv compiles the schemas, at run time and at build time alike: what they have in common, once. */
export const ajvOptions = {
  schemas: Object.fromEntries(Object.entries(commonSchemas).map(([name, schema]) => [name, referInside(schema)])),
  inlineRefs: false,
  allErrors: true,
  verbose: true,
  // Nothing reads ajv's own words.
  messages: false,
  allowUnionTypes: true,
  keywords: ['expected'],
};

/** The schemas of the kinds for ajv, which refer to what they have in common. */
export const ajvSchemas = Object.fromEntries(
  Object.entries(schemas).map(([kind, schema]) => [kind, referInside(schema)]),
) as { readonly [Kind in keyof RawObjects]: AjvSchema };

function referInside({ properties, additionalProperties, items, ...others }: Schema): AjvSchema {
  return {
    ...others,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, refer(schema)])),
    }),
    ...(additionalProperties !== undefined && {
      additionalProperties: typeof additionalProperties === 'object' ? refer(additionalProperties) : additionalProperties,
    }),
    ...(items && { items: refer(items) }),
  };
}

function refer(schema: Schema): AjvSchema {
  const name = commonNames.get(schema);
  return name === undefined ? referInside(schema) : { $ref: name };
}
