import { Ajv, type ValidateFunction } from 'ajv';
import { ajvOptions, ajvSchemas } from './schemas/for-ajv.ts';
import type { RawObjects } from './schemas/all.ts';

/**
 * The check that a kind's schema describes. Compiling takes longer than all else that a small run does, so the build
 * puts the compiled checks in this file's place (scripts/compile-schemas.mjs).
 */
export function compileSchema(kind: keyof RawObjects): ValidateFunction {
  return new Ajv(ajvOptions).compile(ajvSchemas[kind]);
}
