import { expect, test } from 'vitest';
import { schemas } from '../../src/input/objects/schemas/all.ts';
import type { Schema } from '../../src/diagnostics/json-schema.ts';

function namesIn({ properties = {}, items, additionalProperties }: Schema): readonly string[] {
  const below = [items, typeof additionalProperties === 'object' ? additionalProperties : undefined];
  return [
    ...Object.entries(properties).flatMap(([name, schema]) => [name, ...namesIn(schema)]),
    ...below.flatMap((schema) => (schema ? namesIn(schema) : [])),
  ];
}

test('no field has the name of something that every object has: the checks look at fields without asking whose they are', () => {
  const names = Object.values(schemas).flatMap(namesIn);
  expect(names.length).toBeGreaterThan(100);
  expect(names.filter((name) => name in {})).toEqual([]);
});
