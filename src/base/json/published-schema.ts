import type { Schema } from './schema.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

type Definitions = Map<string, JsonSchema>;

/** Returns the JSON Schema to publish. It refuses unknown fields and defines each named schema once. */
export function publishedSchema(schema: Schema): JsonSchema {
  const definitions: Definitions = new Map();
  const published = publish(schema, definitions);
  return definitions.size === 0 ? published : { ...published, $defs: Object.fromEntries(definitions) };
}

function publish({ $id, description, ...schema }: JsonSchema, definitions: Definitions): JsonSchema {
  const name = $id as string | undefined;
  if (name !== undefined && !definitions.has(name)) {
    definitions.set(name, {});
    definitions.set(name, publishKeywords(schema, definitions));
  }
  const own = name === undefined ? publishKeywords(schema, definitions) : { $ref: `#/$defs/${name}` };
  return description === undefined ? own : { ...own, description };
}

const ownKeywords: ReadonlySet<string> = new Set(['expected', 'passes', 'toPass', 'format', 'discriminator']);

function publishKeywords(schema: JsonSchema, definitions: Definitions): JsonSchema {
  const keywords = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !ownKeywords.has(keyword)));
  const { type, minimum, maximum, items, anyOf, properties, additionalProperties, ...others } = keywords;
  const inner = (each: unknown): JsonSchema => publish(each as JsonSchema, definitions);
  const fields = Object.entries((properties ?? {}) as JsonSchema).map(([field, each]) => [field, inner(each)]);
  const further =
    typeof additionalProperties === 'object' ? inner(additionalProperties) : (additionalProperties ?? false);
  return {
    ...(type !== undefined && { type }),
    ...others,
    ...(isBound(minimum) && { minimum }),
    ...(isBound(maximum) && { maximum }),
    ...(items !== undefined && { items: inner(items) }),
    ...(anyOf !== undefined && { anyOf: (anyOf as readonly unknown[]).map(inner) }),
    ...(properties !== undefined && { properties: Object.fromEntries(fields) }),
    ...((properties !== undefined || additionalProperties !== undefined) && { additionalProperties: further }),
  };
}

function isBound(bound: unknown): boolean {
  return bound !== undefined && Math.abs(Number(bound)) < Number.MAX_SAFE_INTEGER;
}
