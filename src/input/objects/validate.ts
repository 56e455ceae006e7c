import type { ErrorObject, ValidateFunction } from 'ajv';
import { findNearest } from '../../base/find-nearest.ts';
import { isObject } from '../../base/json-shape.ts';
import { fieldName } from '../../base/printable.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import type { ArgumentsOf } from '../../diagnostics/codes.ts';
import type { Schema } from '../../diagnostics/json-schema.ts';
import { findingOf } from '../../diagnostics/fields.ts';
import { compileSchema } from './compile-schema.ts';
import type { Report } from './report.ts';
import { schemas, type RawObjects } from './schemas/all.ts';

/** How many fields of one object may be wrong: an object with more is left out, and only these are reported. */
const mostFaults = 220;

/** An error of ajv with what it says as we ask it to: where, of what value, and by which schema. */
interface Fault {
  readonly keyword: string;
  readonly path: FieldPath;
  readonly schema: Schema;
  readonly data: unknown;
  /** Of a field that should not be there. */
  readonly name: string;
}

/** Checks the shape of objects against their schemas, each compiled when the first object of its kind comes. */
export class Validator {
  readonly #compiled = new Map<keyof RawObjects, ValidateFunction>();

  /**
   * The value as its kind's schema has it. Fields that the schema does not have are reported, and harmless. Where the value is
   * wrong otherwise, there are errors in the report, and the fields that are wrong are taken out of the value, so that the
   * other checks can go on; undefined if nothing is left, or too much is wrong.
   */
  validate<Kind extends keyof RawObjects>(kind: Kind, value: unknown, report: Report): RawObjects[Kind] | undefined {
    let check = this.#compiled.get(kind);
    if (!check) {
      check = compileSchema(kind);
      this.#compiled.set(kind, check);
    }
    if (check(value)) return value as RawObjects[Kind];
    const all = (check.errors ?? []).map((error) => readError(error, value));
    // Its next use lets go of them, but that may never come.
    check.errors = null;
    const isUnknown = ({ keyword }: Fault): boolean => keyword === 'additionalProperties';
    const faults = all.filter((fault) => !isUnknown(fault));
    tellUnknown(kind, value, all.filter(isUnknown), report);
    for (const fault of faults.slice(0, mostFaults + 1)) reportFault(fault, report);
    if (faults.length > mostFaults) return undefined;
    return (faults.length === 0 ? value : removeFaults(value, faults, report)) as RawObjects[Kind] | undefined;
  }
}

function readError(
  { keyword = '', instancePath = '', parentSchema = {}, data, params = {} }: Partial<ErrorObject>,
  value: unknown,
): Fault {
  let parent = value;
  // The path is a JSON pointer. A step into a list is a number, but a label may be named "1", too.
  const path = instancePath
    .split('/')
    .slice(1)
    .map((written) => {
      const step = Array.isArray(parent) ? Number(written) : written.replaceAll('~1', '/').replaceAll('~0', '~');
      parent = isRecord(parent) ? parent[step] : undefined;
      return step;
    });
  const { additionalProperty: name = '' } = params as { readonly additionalProperty?: string };
  return { keyword, path, schema: parentSchema as Schema, data, name };
}

/** Who reads the objects that are not Kubernetes', and how an unknown field in them is reported. */
const readers: {
  readonly [Kind in keyof RawObjects]?: Pick<ArgumentsOf<'unknown-field'>, 'owner' | 'reader' | 'isNeeded'>;
} = {
  KubeProxyConfiguration: { owner: 'the configuration', reader: 'kube-proxy' },
  PacketTests: { owner: 'a file of kpc test', isNeeded: true },
};

/**
 * Tells of fields that nothing reads, those of list items for one item, as kubectl's strict validation does. If an object of
 * Kubernetes has the field elsewhere, that is said.
 */
function tellUnknown(kind: keyof RawObjects, object: unknown, faults: readonly Fault[], report: Report): void {
  const reported = new Set<string>();
  for (const { path, name, schema, data } of faults) {
    const at = [...path, name];
    const fields = fieldsOf(schema);
    const near = findNearest(name, Object.keys(fields));
    const other = readers[kind];
    if (other) {
      report.addAtKey(at, 'unknown-field', { ...other, name, meant: near });
      continue;
    }
    const names = at.filter((step) => typeof step === 'string').join('.');
    if (reported.has(names)) continue;
    reported.add(names);
    const parent = isObject(data) ? data : {};
    // What holds fields of its own is not meant to be one of a number or a text.
    const isNear = near !== undefined && isRecord(parent[name]) && Object.keys(fieldsOf(fields[near] ?? {})).length > 0;
    const elsewhere = isNear || near?.toLowerCase() === name.toLowerCase() ? undefined : findPath(name, schemas[kind]);
    const owner = nameOf(path) || `${/^[AE]/.test(kind) ? 'an' : 'a'} ${kind}`;
    const details = { owner, name, reader: 'Kubernetes', meant: elsewhere?.join('.') ?? near } as const;
    const meant = elsewhere?.map((step) => step.replace('[]', ''));
    const isThere = meant ? holds(object, meant) : near === undefined || Object.hasOwn(parent, near);
    if (isThere) report.addAtKey(at, 'unknown-field', details);
    else report.addMisspelled(at, meant ?? [...path, near ?? ''], details);
  }
}

/** The fields that an object, or each item of a list, may have. */
function fieldsOf(schema: Schema): Readonly<Record<string, Schema>> {
  return (schema.items ?? schema).properties ?? {};
}

/** Whether there is a field of these names, in one item of a list at least. */
function holds(value: unknown, [name, ...below]: readonly string[]): boolean {
  if (name === undefined) return true;
  if (Array.isArray(value)) return value.some((item) => holds(item, [name, ...below]));
  return isObject(value) && Object.hasOwn(value, name) && holds(value[name], below);
}

/** "spec.ports[0]". */
function nameOf(path: FieldPath): string {
  return path.map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i === 0 ? '' : '.'}${step}`)).join('');
}

/** The least deep place where a field of that name belongs, as "spec", "ports[]", "nodePort". */
function findPath(name: string, kind: Schema): readonly string[] | undefined {
  let level = [{ schema: kind, path: [] as readonly string[] }];
  while (level.length > 0) {
    const below = level.flatMap(({ schema, path }) =>
      Object.entries(fieldsOf(schema)).map(([field, inner]) => {
        return { field, schema: inner, path: [...path, inner.items ? `${field}[]` : field] };
      }),
    );
    const found = below.find(({ field }) => field.toLowerCase() === name.toLowerCase());
    if (found) return [...found.path.slice(0, -1), found.field];
    level = below;
  }
  return undefined;
}

/**
 * The value without its faulty fields; the report takes no more errors about them. Copies only what is on the way to
 * them: the rest may be deep.
 */
function removeFaults(value: unknown, faults: readonly Fault[], report: Report): unknown {
  const root: Record<string | number, unknown> = { value };
  const copies = new Set<unknown>([root]);
  for (const { path, schema } of faults) {
    if (path.length === 0) return undefined;
    report.settle(path);
    let parent = root;
    for (const [i, step] of ['value', ...path].entries()) {
      let child = i === path.length ? neutralValue(schema) : parent[step];
      if (isRecord(child) && !copies.has(child)) {
        child = Array.isArray(child) ? [...child] : { ...child };
        copies.add(child);
      }
      parent[step] = child;
      if (!isRecord(child)) break;
      parent = child;
    }
  }
  return root['value'];
}

/** What counts as absent: null, except in lists, whose items may not be null. */
function neutralValue({ type }: Schema): unknown {
  if (type === 'object') return {};
  return type === 'string' ? '' : null;
}

function isRecord(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null;
}

function reportFault({ keyword, path, schema, data }: Fault, report: Report): void {
  // A value of another type than a word's is reported as such.
  if (keyword === 'enum' && typeof data !== 'string') return;
  const { type = [] } = schema;
  const expected = keyword === 'enum' ? nearestWord(String(data), schema) : schema.expected;
  report.add(path, 'bad-value', { field: fieldName(path), found: findingOf(data), types: [type].flat(), expected });
}

function nearestWord(data: string, schema: Schema): string {
  const words = (schema.enum ?? []).filter((word): word is string => typeof word === 'string' && word !== '');
  return findNearest(data.trim(), words) ?? schema.expected ?? words.join(', ');
}
