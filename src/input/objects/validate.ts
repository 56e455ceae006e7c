import { findNearest } from '../../base/find-nearest.ts';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { FieldPath } from '../../cluster/objects.ts';
import { findingOf } from '../../diagnostics/value-in-words.ts';
import { compileSchema } from './compile-schema.ts';
import type { Report } from './report.ts';
import type { RawObjects } from './schemas/all.ts';
import type { Schema } from '../../diagnostics/json-schema.ts';
import { fieldName } from '../../base/quote.ts';

/** How many fields of one object may be wrong: of one with more, nothing is taken, and no more than these are told. */
const mostFaults = 220;

/** Checks the shape of objects against their schemas, each compiled when the first object of its kind comes. */
export class Validator {
  readonly #compiled = new Map<keyof RawObjects, ValidateFunction>();

  /**
   * The value as its kind's schema has it. Where it is not, there are errors in the report, and the fields that are
   * wrong are taken out of the value, so that the other checks can go on; undefined where nothing is left, or too much is
   * wrong.
   */
  validate<Kind extends keyof RawObjects>(kind: Kind, value: unknown, report: Report): RawObjects[Kind] | undefined {
    let check = this.#compiled.get(kind);
    if (!check) {
      check = compileSchema(kind);
      this.#compiled.set(kind, check);
    }
    if (check(value)) return value as RawObjects[Kind];
    const errors = check.errors ?? [];
    // Its next use lets go of them, but that may never come.
    check.errors = null;
    for (const error of errors.slice(0, mostFaults)) reportFault(error, kind, report);
    const next = errors[mostFaults];
    if (next) {
      reportFault(next, kind, report);
      return undefined;
    }
    return removeFaults(value, errors, report) as RawObjects[Kind] | undefined;
  }
}

/** The value without the fields that are wrong, about which the report takes no more errors. Copies what it changes. */
function removeFaults(value: unknown, errors: readonly ErrorObject[], report: Report): unknown {
  const root = { value };
  const copies = new Set<unknown>([root]);
  for (const error of errors) {
    // A field that should not be there does no harm.
    if (error.keyword === 'additionalProperties') continue;
    const path = parsePointer(error.instancePath);
    if (path.length === 0) return undefined;
    replaceField(root, ['value', ...path], neutralValue((error.parentSchema ?? {}) as Schema), copies);
    report.settle(path);
  }
  return root.value;
}

/** Sets a field; what is on the way to it is copied first, unless it is a copy already. */
function replaceField(root: unknown, path: FieldPath, replacement: unknown, copies: Set<unknown>): void {
  let parent = root;
  for (const [i, step] of path.entries()) {
    if (!isRecord(parent)) return;
    const child = i === path.length - 1 ? replacement : parent[step];
    if (isRecord(child) && !copies.has(child)) {
      const copy = Array.isArray(child) ? [...child] : { ...child };
      copies.add(copy);
      parent[step] = copy;
    } else {
      parent[step] = child;
    }
    parent = parent[step];
  }
}

/** What stands for nothing: null, but for the items of lists, which may not be null. */
function neutralValue({ type }: Schema): unknown {
  if (type === 'object') return {};
  return type === 'string' ? '' : null;
}

function isRecord(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null;
}

function reportFault(error: ErrorObject, kind: keyof RawObjects, report: Report): void {
  const path = parsePointer(error.instancePath);
  const schema = (error.parentSchema ?? {}) as Schema;
  const { data } = error as { data?: unknown };
  switch (error.keyword) {
    case 'type':
    case 'enum':
    case 'minimum':
    case 'maximum': {
      // A value of another type than a word's is reported as such.
      if (error.keyword === 'enum' && typeof data !== 'string') return;
      const types = typeof schema.type === 'string' ? [schema.type] : schema.type;
      const expected = error.keyword === 'enum' ? nearestWord(String(data), schema) : schema.expected;
      const code = schema.code ?? (error.keyword.startsWith('m') ? 'bad-number' : 'bad-type');
      report.add(path, code, { field: fieldName(path), found: findingOf(data), types, expected });
      return;
    }
    case 'pattern':
      report.add(path, 'bad-duration', { name: String(path.at(-1)), value: String(data) });
      return;
    case 'additionalProperties': {
      const { additionalProperty: name } = error.params as { additionalProperty: string };
      const meant = findNearest(name, Object.keys(schema.properties ?? {}));
      const details =
        kind === 'PacketTests'
          ? ({ owner: 'a file of kpc test', isNeeded: true } as const)
          : ({ owner: 'the configuration', reader: 'kube-proxy' } as const);
      report.addAtKey([...path, name], 'unknown-field', { ...details, name, meant });
      return;
    }
    default:
      throw new Error(`a schema has the keyword ${error.keyword}, which there are no words for`);
  }
}

function nearestWord(data: string, schema: Schema): string {
  const words = (schema.enum ?? []).filter((word): word is string => typeof word === 'string' && word !== '');
  return findNearest(data.trim(), words) ?? schema.expected ?? words.join(', ');
}

/** A JSON pointer as ajv gives it; a step into a list is a number. */
function parsePointer(pointer: string): FieldPath {
  if (pointer === '') return [];
  return pointer
    .slice(1)
    .split('/')
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step.replaceAll('~1', '/').replaceAll('~0', '~')));
}
