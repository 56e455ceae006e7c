import { findNearest } from '../../base/find-nearest.ts';
import { isObject } from '../../base/json-shape.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import type { Schema } from '../../diagnostics/json-schema.ts';
import type { Report } from './report.ts';
import { schemas, type CheckedKind } from './schemas/all.ts';

type Fields = NonNullable<Schema['properties']>;

/** The fields that an object, or each item of a list, may have; undefined if any are allowed. */
function fieldsIn(schema: Schema | undefined): Fields | undefined {
  const { properties, additionalProperties } = schema?.items ?? schema ?? {};
  return additionalProperties === undefined ? properties : undefined;
}

/**
 * Warns of fields that Kubernetes does not know in their place, as kubectl's strict validation does: the cluster ignores
 * them. If the object has the field elsewhere, the warning says where.
 */
export function checkFields(kind: CheckedKind, value: object, report: Report): void {
  const known = fieldsIn(schemas[kind]) ?? {};
  visit(value, known, [], { kind, known, object: value, report, reported: new Set() });
}

interface Visit {
  readonly kind: CheckedKind;
  /** The fields of the kind. */
  readonly known: Fields;
  readonly object: object;
  readonly report: Report;
  /** Fields of list items are reported for one item. */
  readonly reported: Set<string>;
}

function visit(value: object, here: Fields, path: FieldPath, context: Visit): void {
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    if (!Object.hasOwn(here, key)) {
      warn(key, value, here, path, context);
      continue;
    }
    const below = fieldsIn(here[key]);
    if (below) visitBelow((value as Readonly<Record<string, unknown>>)[key], below, path, key, context);
  }
}

function visitBelow(value: unknown, here: Fields, path: FieldPath, key: string, context: Visit): void {
  if (isObject(value)) return visit(value, here, [...path, key], context);
  if (!Array.isArray(value)) return;
  for (const [i, item] of value.entries()) if (isObject(item)) visit(item, here, [...path, key, i], context);
}

function warn(key: string, value: object, here: Fields, path: FieldPath, context: Visit): void {
  const { kind, known, object, report, reported } = context;
  const name = [...path.filter((step) => typeof step === 'string'), key].join('.');
  if (reported.has(name)) return;
  reported.add(name);
  const where = nameOf(path) || `${/^[AE]/.test(kind) ? 'an' : 'a'} ${kind}`;
  const near = findNearest(key, Object.keys(here));
  const right = findPath(key, known);
  const at = [...path, key];
  const written = (value as Readonly<Record<string, unknown>>)[key];
  // What holds fields of its own is not meant to be one of a number or a text.
  const isNear =
    near !== undefined && fieldsIn(here[near]) !== undefined && typeof written === 'object' && written !== null;
  const isMisplaced = right !== undefined && !isNear && near?.toLowerCase() !== key.toLowerCase();
  const details = { owner: where, name: key, reader: 'Kubernetes', meant: isMisplaced ? right : near } as const;
  const meant = isMisplaced ? right.split(/(?:\[\])?\./) : [...path, near ?? ''];
  const isThere = isMisplaced
    ? holds(object, right.split(/(?:\[\])?\./))
    : near === undefined || Object.hasOwn(value, near);
  if (isThere) report.addAtKey(at, 'unknown-field', details);
  else report.addMisspelled(at, meant, details);
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

/** The least deep place where a field of that name belongs. */
function findPath(key: string, known: Fields): string | undefined {
  const lower = key.toLowerCase();
  let level: (readonly [fields: Fields, path: string])[] = [[known, '']];
  while (level.length > 0) {
    for (const [fields, path] of level) {
      const found = Object.keys(fields).find((name) => name.toLowerCase() === lower);
      if (found !== undefined) return `${path}${found}`;
    }
    level = level.flatMap(([fields, path]) =>
      Object.entries(fields).flatMap(([name, schema]) => {
        const below = fieldsIn(schema);
        return below ? [[below, `${path}${name}${schema.items ? '[]' : ''}.`] as const] : [];
      }),
    );
  }
  return undefined;
}
