import type { Schema } from '../diagnostics/json-schema.ts';
import { anything, knownFields, type CheckedKind, type Fields } from './check-fields.ts';
import { schemas } from './schemas/all.ts';

/** What a value may be: a kind's schema and its known fields in one. */
interface RightValue {
  readonly mayBeNull: boolean;
  readonly mayBeText: boolean;
  readonly mayBeFlag: boolean;
  /** Whole numbers from `least` to `most`. */
  readonly mayBeNumber: boolean;
  readonly least: number;
  readonly most: number;
  /** The only texts, where not every text is right. */
  readonly words: ReadonlySet<unknown> | undefined;
  /** Of a list. */
  readonly items: RightValue | undefined;
  /** Of a mapping, with what all other fields are; undefined for a value that is none, or has no others. */
  readonly fields: ReadonlyMap<string, RightValue> | undefined;
  readonly others: RightValue | undefined;
}

/**
 * Tells objects that nothing is wrong with, which nearly all are: their schema takes them, and Kubernetes knows each of
 * their fields. In one pass, and without a word of what is wrong, this takes a third of the time that the two checks take.
 */
export class RightObjects {
  readonly #kinds = new Map<CheckedKind, RightValue>();

  /** Whether the object is right. Where it is not, or cannot be told to be, the checks of its fields and schema say why. */
  has(kind: CheckedKind, value: object): boolean {
    let right = this.#kinds.get(kind);
    if (!right) {
      right = combine(schemas[kind], knownFields(kind));
      this.#kinds.set(kind, right);
    }
    return isRight(value, right);
  }
}

const unchecked: RightValue = {
  mayBeNull: true,
  mayBeText: true,
  mayBeFlag: true,
  mayBeNumber: true,
  least: -Infinity,
  most: Infinity,
  words: undefined,
  items: undefined,
  fields: undefined,
  others: undefined,
};

/** What both allow. Schemas have only the keywords that are looked at here. */
function combine(schema: Schema, fields: Fields): RightValue {
  const { type = [], properties = {}, additionalProperties, items } = schema;
  const types = new Set(typeof type === 'string' ? [type] : type);
  const mayHaveOthers = fields === anything && additionalProperties !== false;
  const others = typeof additionalProperties === 'object' ? combine(additionalProperties, anything) : unchecked;
  return {
    mayBeNull: types.has('null'),
    mayBeText: types.has('string'),
    mayBeFlag: types.has('boolean'),
    mayBeNumber: types.has('integer'),
    least: schema.minimum ?? -Infinity,
    most: schema.maximum ?? Infinity,
    words: schema.enum && new Set(schema.enum),
    items: types.has('array') ? (items ? combine(items, fields) : unchecked) : undefined,
    fields: types.has('object') ? combineFields(properties, fields) : undefined,
    others: mayHaveOthers ? others : undefined,
  };
}

function combineFields(properties: NonNullable<Schema['properties']>, fields: Fields): ReadonlyMap<string, RightValue> {
  const listed = Object.entries(properties).map(
    ([name, schema]) => [name, combine(schema, fields.get(name) ?? anything)] as const,
  );
  const right = new Map<string, RightValue>(listed.filter(([name]) => fields === anything || fields.has(name)));
  // What no schema looks at is right, unless there are fields below it that Kubernetes might not know.
  for (const [name, below] of fields) if (below === anything && !right.has(name)) right.set(name, unchecked);
  return right;
}

function isRight(value: unknown, right: RightValue): boolean {
  if (right === unchecked) return true;
  switch (typeof value) {
    case 'string':
      return right.mayBeText && (right.words === undefined || right.words.has(value));
    case 'boolean':
      return right.mayBeFlag;
    case 'number':
      return right.mayBeNumber && Number.isInteger(value) && value >= right.least && value <= right.most;
    case 'object':
      if (value === null) return right.mayBeNull;
      return Array.isArray(value) ? areRight(value, right.items) : hasRightFields(value, right);
    default:
      return false;
  }
}

function areRight(items: readonly unknown[], right: RightValue | undefined): boolean {
  if (!right) return false;
  for (let i = 0; i < items.length; i++) if (!isRight(items[i], right)) return false;
  return true;
}

function hasRightFields(value: object, { fields, others }: RightValue): boolean {
  if (!fields) return false;
  for (const key in value) {
    const right = fields.get(key) ?? others;
    if (!right || !isRight((value as Readonly<Record<string, unknown>>)[key], right)) return false;
  }
  return true;
}
