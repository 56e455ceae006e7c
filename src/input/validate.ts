import type { ErrorObject, ValidateFunction } from 'ajv';
import type { FieldPath } from '../cluster/objects.ts';
import { compileSchema } from './compile-schema.ts';
import type { Report } from './report.ts';
import type { RawObjects } from './schemas/all.ts';
import type { Schema } from './schemas/shared.ts';
import { describeValue, fieldName, findNearest, quote } from './wording.ts';

/** Checks the shape of objects against their schemas, each compiled when the first object of its kind comes. */
export class Validator {
  readonly #compiled = new Map<keyof RawObjects, ValidateFunction>();

  /** The value as its kind's schema has it; undefined with errors in the report where it is not. */
  validate<Kind extends keyof RawObjects>(kind: Kind, value: unknown, report: Report): RawObjects[Kind] | undefined {
    let check = this.#compiled.get(kind);
    if (!check) {
      check = compileSchema(kind);
      this.#compiled.set(kind, check);
    }
    if (check(value)) return value as RawObjects[Kind];
    for (const error of check.errors ?? []) reportFault(error, report);
    return report.hasErrors ? undefined : (value as RawObjects[Kind]);
  }
}

function reportFault(error: ErrorObject, report: Report): void {
  const path = parsePointer(error.instancePath);
  const schema = (error.parentSchema ?? {}) as Schema;
  const { data } = error as { data?: unknown };
  const name = fieldName(path);
  const expected = schema.expected ?? '';
  switch (error.keyword) {
    case 'type':
      report.error(path, schema.code ?? 'bad-type', describeWrongType(name, data, schema));
      return;
    case 'enum':
      // A value of another type is reported as such.
      if (typeof data !== 'string') return;
      report.error(path, schema.code ?? 'bad-value', `${name} is ${quote(data)}: write ${nearestWord(data, schema)}`);
      return;
    case 'minimum':
    case 'maximum':
      report.error(path, schema.code ?? 'bad-number', `${name} ${String(data)}: ${expected}`);
      return;
    case 'additionalProperties': {
      const { additionalProperty: key } = error.params as { additionalProperty: string };
      const near = findNearest(key, Object.keys(schema.properties ?? {}));
      const hint = near === undefined ? '' : `: is it ${near}?`;
      const text = `kube-proxy ignores ${quote(key)}, for its configuration has no such field${hint}`;
      report.atKey('warning', [...path, key], 'unknown-field', text);
      return;
    }
    default:
      report.error(path, schema.code ?? 'bad-value', `${name}: ${error.message ?? 'is wrong'}`);
  }
}

function nearestWord(data: string, schema: Schema): string {
  const words = (schema.enum ?? []).filter((word): word is string => typeof word === 'string' && word !== '');
  return words.find((word) => word.toLowerCase() === data.toLowerCase()) ?? schema.expected ?? words.join(', ');
}

function describeWrongType(name: string, data: unknown, schema: Schema): string {
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? []);
  if (types.includes('string') && (typeof data === 'number' || typeof data === 'boolean')) {
    const origin = typeof data === 'boolean' ? 'true or false (yes, no, on and off are too)' : 'a number';
    return `${name} is ${String(data)}, which is ${origin} without quotes: write it in quotes`;
  }
  if (types.includes('integer')) {
    if (typeof data === 'string' && /^\d+$/.test(data))
      return `${name} is a text, ${quote(data)}: write ${data} without quotes`;
    return `${name} is ${describeValue(data)}: ${schema.expected ?? 'a whole number'}`;
  }
  return `${name} is ${describeValue(data)}: it must be ${schema.expected ?? types.join(' or ')}`;
}

/** A JSON pointer as ajv gives it; a step into a list is a number. */
function parsePointer(pointer: string): FieldPath {
  if (pointer === '') return [];
  return pointer
    .slice(1)
    .split('/')
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step.replaceAll('~1', '/').replaceAll('~0', '~')));
}
