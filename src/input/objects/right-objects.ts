import { anything, type Schema } from '../../diagnostics/json-schema.ts';
import { schemas, type CheckedKind } from './schemas/all.ts';

/** What a value may be: a schema in the form that takes the least time to compare with. */
interface RightValue {
  readonly mayBeNull: boolean;
  readonly mayBeText: boolean;
  readonly mayBeFlag: boolean;
  /** Whole numbers from `least` to `most`. */
  readonly mayBeNumber: boolean;
  readonly least: number;
  readonly most: number;
  /** The only texts, if not every text is right. */
  readonly words: ReadonlySet<unknown> | undefined;
  /** Of a list. */
  readonly items: RightValue | undefined;
  /** Of a mapping, with what all other fields are; undefined for a value that is no mapping, or has no others. */
  readonly fields: ReadonlyMap<string, RightValue> | undefined;
  readonly others: RightValue | undefined;
}

/**
 * Recognises objects without faults, which nearly all are: their schema takes them, and Kubernetes knows each of their
 * fields. One pass that does not say what is wrong takes a third of the time that the two checks take.
 */
export class RightObjects {
  readonly #kinds = new Map<CheckedKind, RightValue>();

  /** Whether the object is right. If not, or if this cannot say, the checks of its fields and its schema say why. */
  has(kind: CheckedKind, value: object): boolean {
    let right = this.#kinds.get(kind);
    if (!right) {
      right = rightValueOf(schemas[kind]);
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

/** Schemas have only the keywords that this reads. */
function rightValueOf(schema: Schema): RightValue {
  if (schema === anything) return unchecked;
  const { type = [], properties = {}, additionalProperties, items } = schema;
  const types = new Set(typeof type === 'string' ? [type] : type);
  const fields = Object.entries(properties).map(([name, each]) => [name, rightValueOf(each)] as const);
  const others = typeof additionalProperties === 'object' ? rightValueOf(additionalProperties) : undefined;
  return {
    mayBeNull: types.has('null'),
    mayBeText: types.has('string'),
    mayBeFlag: types.has('boolean'),
    mayBeNumber: types.has('integer'),
    least: schema.minimum ?? -Infinity,
    most: schema.maximum ?? Infinity,
    words: schema.enum && new Set(schema.enum),
    items: items && rightValueOf(items),
    fields: types.has('object') ? new Map(fields) : undefined,
    others: additionalProperties === true ? unchecked : others,
  };
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
