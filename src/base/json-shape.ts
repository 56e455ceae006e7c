import { parseJson, TooLong } from './bounds.ts';
import { quotePrintable } from './printable.ts';

/** A JSON Schema (draft 7), for schemas/ and for editors. */
export type JsonSchema = Readonly<Record<string, unknown>>;

type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object' | 'null';

type Step = string | number;

declare const described: unique symbol;

/**
 * The one declaration of a JSON value: its TypeScript type (`Shaped`), its check (`readShape`, `findFaults`), and its JSON Schema
 * (`schemaOf`).
 */
export interface Shape<T = unknown> {
  /** What completes "must be …" in an error. */
  readonly expected: string;
  readonly types: readonly JsonType[];
  /** The strings, numbers or booleans that it allows, if they are few. */
  readonly values?: readonly unknown[] | undefined;
  readonly fields?: Shapes | undefined;
  readonly items?: Shape | undefined;
  /** Checks the value itself, not its fields and items. */
  readonly accepts: (value: unknown) => boolean;
  /** Checks the fields or items of an accepted value, and adds to `faults`; false if any is wrong. */
  readonly inside?: ((value: unknown, faults: Faults) => boolean) | undefined;
  /** The field may be left out. */
  readonly isOptional?: true | undefined;
  /** For people who read the schema. */
  readonly description?: string | undefined;
  /** A schema defines a named shape once, however often it occurs. */
  readonly name?: string | undefined;
  readonly schema: (definitions: Definitions) => JsonSchema;
  /** Never set: it carries the type. */
  readonly [described]?: () => T;
}

export type Shaped<S> = S extends Shape<infer T> ? T : never;

/** One object type of an intersection of them. */
type Flat<T> = { readonly [K in keyof T]: T[K] };

export type Shapes = Readonly<Record<string, Shape>>;

/** What is wrong with a value, or with one inside it. */
export interface ShapeFault {
  readonly problem: 'wrong' | 'missing' | 'unknown';
  /** From the checked value. For an unknown field it ends at the field's object. */
  readonly path: Step[];
  readonly shape: Shape;
  readonly value: unknown;
  /** The name of a field that should not be there; '' otherwise. */
  readonly name: string;
}

/** Collects faults up to a limit: a hostile file may have millions. */
interface Faults {
  readonly found: ShapeFault[];
  readonly most: number;
}

/** The faults of a value, `most` at most. Unknown fields are faults only in closed shapes. */
export function findFaults(shape: Shape, value: unknown, most: number = Infinity): readonly ShapeFault[] {
  const faults: Faults = { found: [], most };
  check(shape, value, faults);
  return faults.found;
}

/** The value with its type, or what is wrong with it. */
export type ShapeReading<T> = { readonly value: T } | { readonly wrong: string };

/** Checks a value. `wrong` is its first fault, with the path of the field: "settings.ipvs.excludeCIDRs[0] must be a CIDR". */
export function readShape<T>(shape: Shape<T>, value: unknown): ShapeReading<T> {
  const [fault] = findFaults(shape, value, 1);
  return fault === undefined ? { value: value as T } : { wrong: describeFault(fault) };
}

/** Parses and checks JSON text. `wrong` never quotes text that is not JSON: it may be another file altogether. */
export function parseShape<T>(shape: Shape<T>, content: string): ShapeReading<T> {
  let value: unknown;
  try {
    value = parseJson(content);
  } catch (error) {
    return { wrong: `it is ${error instanceof TooLong ? error.message : 'not JSON'}` };
  }
  return readShape(shape, value);
}

/** Keyed by name. */
type Definitions = Map<string, JsonSchema>;

/** The JSON Schema of a shape. It refuses unknown fields even where the check allows them. */
export function schemaOf(shape: Shape): JsonSchema {
  const definitions: Definitions = new Map();
  const schema = describeShape(shape, definitions);
  return definitions.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(definitions) };
}

function describeShape({ schema, description, name }: Shape, definitions: Definitions): JsonSchema {
  if (name !== undefined && !definitions.has(name)) {
    // Holds its place in the order.
    definitions.set(name, {});
    definitions.set(name, schema(definitions));
  }
  const own = name === undefined ? schema(definitions) : { $ref: `#/$defs/${name}` };
  return description === undefined ? own : { ...own, description };
}

/** Defines a shape once in each schema, under a name. */
export function named<T>(name: string, shape: Shape<T>): Shape<T> {
  return { ...shape, name };
}

function describeFault({ problem, path, shape, name }: ShapeFault): string {
  const at = writePath(path);
  if (problem === 'missing') return `${at} is missing`;
  if (problem === 'unknown') return `${at === '' ? 'it' : at} has an unknown field ${quotePrintable(name)}`;
  if (at === '' && shape.types[0] === 'object') return 'it is not a JSON object';
  return `${at === '' ? 'it' : at} must be ${shape.expected}`;
}

/**
 * Quotes a key that is not a plain word: it comes from the input, and could otherwise end the line or look like a path.
 */
function writePath(path: readonly Step[]): string {
  let out = '';
  for (const step of path) {
    if (typeof step === 'number') out += `[${step}]`;
    else out += `${out === '' ? '' : '.'}${/^[\w.-]{1,100}$/.test(step) ? step : quotePrintable(step)}`;
  }
  return out;
}

function check(shape: Shape, value: unknown, faults: Faults): boolean {
  if (!shape.accepts(value)) return note(faults, 'wrong', shape, value);
  return shape.inside === undefined || shape.inside(value, faults);
}

/** Checks a value inside another. The path is built only for a fault: lists may have millions of items. */
function checkBelow(shape: Shape, value: unknown, faults: Faults, step: Step): boolean {
  const before = faults.found.length;
  if (check(shape, value, faults)) return true;
  for (let i = before; i < faults.found.length; i++) faults.found[i]?.path.unshift(step);
  return false;
}

function note({ found, most }: Faults, problem: ShapeFault['problem'], shape: Shape, value: unknown, name = ''): false {
  if (found.length < most) found.push({ problem, path: [], shape, value, name });
  return false;
}

type Row = Omit<Shape, 'schema' | typeof described> & Partial<Pick<Shape, 'schema'>>;

function make<T>(row: Row): Shape<T> {
  const { expected, types, values, fields, items, accepts, inside, isOptional, description, name } = row;
  const usual = (): JsonSchema => ({ type: types.length === 1 ? types[0] : types, ...(values && { enum: values }) });
  const { schema = usual } = row;
  // With the same fields in the same order, to V8 all shapes are of one class, whose fields it finds at once.
  return { expected, types, values, fields, items, accepts, inside, isOptional, description, name, schema };
}

export function worded<T>(expected: string, shape: Shape<T>): Shape<T> {
  return { ...shape, expected, description: expected };
}

export function about<T>(description: string, shape: Shape<T>): Shape<T> {
  return { ...shape, description };
}

/** A string that a predicate accepts. */
export function textThat<T extends string = string>(expected: string, isRight: (text: string) => boolean): Shape<T> {
  return make({
    expected,
    types: ['string'],
    accepts: (value) => typeof value === 'string' && isRight(value),
    description: expected,
    schema: () => ({ type: 'string' }),
  });
}

export const text: Shape<string> = make({
  expected: 'a string',
  types: ['string'],
  accepts: (value) => typeof value === 'string',
});

/** A string that matches a pattern; the schema has the pattern as well. */
export function matching(expected: string, pattern: RegExp): Shape<string> {
  return make({
    expected,
    types: ['string'],
    accepts: (value) => typeof value === 'string' && pattern.test(value),
    schema: () => ({ type: 'string', pattern: pattern.source }),
  });
}

export const boolean: Shape<boolean> = make({
  expected: 'true or false',
  types: ['boolean'],
  accepts: (value) => typeof value === 'boolean',
});

/** A finite number; bounds are included. */
export function number(expected: string, least = -Infinity, most = Infinity): Shape<number> {
  return make({
    expected,
    types: ['number'],
    accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value >= least && value <= most,
    schema: () => ({ type: 'number', ...boundsOf(least, most) }),
  });
}

export const amount = number('a number from 0 on', 0);

export function wholeNumber(
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
  expected = `a whole number from ${most === Number.MAX_SAFE_INTEGER ? `${least} on` : `${least} to ${most}`}`,
): Shape<number> {
  return make({
    expected,
    types: ['integer'],
    accepts: (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most,
    schema: () => ({ type: 'integer', ...boundsOf(least, most) }),
  });
}

function boundsOf(least: number, most: number): JsonSchema {
  return {
    ...(least > Number.MIN_SAFE_INTEGER && { minimum: least }),
    ...(most < Number.MAX_SAFE_INTEGER && { maximum: most }),
  };
}

export function oneOf<const V extends readonly (string | number | boolean)[]>(...values: V): Shape<V[number]> {
  const known: readonly unknown[] = values;
  return make({
    expected: values.map((value) => JSON.stringify(value)).join(' or '),
    types: [...new Set(values.map((value) => typeof value as JsonType))],
    values,
    accepts: (value) => known.includes(value),
  });
}

export const anything: Shape = make({ expected: 'anything', types: [], accepts: () => true, schema: () => ({}) });

export const anyObject: Shape<object> = make({ expected: 'an object', types: ['object'], accepts: isObject });

/** Null, or what the shape takes. */
export function nullable<T>(inner: Shape<T>): Shape<T | null> {
  const { types, values, inside } = inner;
  return {
    ...(inner as Shape<T | null>),
    types: [...types, 'null'],
    values: values && [...values, null],
    accepts: (value) => value === null || inner.accepts(value),
    inside: inside && ((value, faults) => value === null || inside(value, faults)),
    name: undefined,
    schema: (definitions) => {
      const { description: _, ...schema } = describeShape(inner, definitions);
      const { anyOf: forms } = schema;
      if ('$ref' in schema) return { anyOf: [schema, { type: 'null' }] };
      if (Array.isArray(forms)) return { anyOf: [...(forms as readonly JsonSchema[]), { type: 'null' }] };
      return {
        ...schema,
        ...('type' in schema && { type: [schema['type'], 'null'].flat() }),
        ...('enum' in schema && { enum: [...(schema['enum'] as readonly unknown[]), null] }),
      };
    },
  };
}

export function optional<T>(inner: Shape<T>): Shape<T | undefined> {
  return { ...(inner as Shape<T | undefined>), isOptional: true };
}

/** Adds a predicate to a shape; `expected` completes "must …". */
export function narrowed<T>(inner: Shape<T>, expected: string, isRight: (value: T) => boolean): Shape<T> {
  const { inside } = inner;
  const shape: Shape<T> = {
    ...inner,
    inside: (value, faults) => {
      if (inside && !inside(value, faults)) return false;
      return isRight(value as T) || note(faults, 'wrong', worded(expected, inner), value);
    },
  };
  return shape;
}

export function listOf<T>(items: Shape<T>, expected = 'a list'): Shape<readonly T[]> {
  return make({
    expected,
    types: ['array'],
    items,
    accepts: Array.isArray,
    inside: (value, faults) => {
      const list = value as readonly unknown[];
      let isRight = true;
      for (let i = 0; i < list.length && faults.found.length < faults.most; i++) {
        if (!checkBelow(items, list[i], faults, i)) isRight = false;
      }
      return isRight;
    },
    schema: (definitions) => ({ type: 'array', items: describeShape(items, definitions) }),
  });
}

/** An object with arbitrary keys. */
export function mapOf<T, K extends string = string>(
  values: Shape<T>,
  expected = 'an object',
): Shape<string extends K ? Readonly<Record<string, T>> : { readonly [Key in K]?: T }> {
  return make({
    expected,
    types: ['object'],
    accepts: isObject,
    inside: (value, faults) => {
      let isRight = true;
      for (const [key, item] of Object.entries(value as object)) {
        if (!checkBelow(values, item, faults, key)) isRight = false;
        if (faults.found.length >= faults.most) break;
      }
      return isRight;
    },
    schema: (definitions) => ({ type: 'object', additionalProperties: describeShape(values, definitions) }),
  });
}

/** The type of an object with these fields; a field that may be undefined may be missing. */
type ObjectOf<F extends Shapes> = Flat<
  { readonly [K in keyof F as undefined extends Shaped<F[K]> ? never : K]: Shaped<F[K]> } & {
    readonly [K in keyof F as undefined extends Shaped<F[K]> ? K : never]?: Shaped<F[K]>;
  }
>;

/**
 * An object with a shape for each field. Its type follows from the fields unless T is given. The check allows other
 * fields.
 */
export function objectOf<F extends Shapes>(fields: F): Shape<ObjectOf<F>>;
export function objectOf<T>(fields: { readonly [K in keyof T]-?: Shape<T[K]> }): Shape<T>;
export function objectOf(fields: Shapes): Shape {
  return objectWith(fields, { expected: 'an object', isClosed: false });
}

/** An object with further fields, which another of its fields decides. */
export function openOf<F extends Shapes>(fields: F): Shape<ObjectOf<F> & { readonly [field: string]: unknown }> {
  const shape: Shape<ObjectOf<F> & { readonly [field: string]: unknown }> = objectWith(fields, {
    expected: 'an object',
    isClosed: false,
  });
  return { ...shape, schema: (definitions) => ({ ...shape.schema(definitions), additionalProperties: true }) };
}

/** An object with these fields. If closed, it allows no others. */
export function objectWith<T>(
  fields: Shapes,
  { expected, isClosed }: { readonly expected: string; readonly isClosed: boolean },
): Shape<T> {
  const table = new Map(Object.entries(fields));
  const required = [...table].filter(([, inner]) => !inner.isOptional);
  const shape: Shape<T> = make({
    expected,
    types: ['object'],
    fields,
    accepts: isObject,
    inside: (value, faults) => {
      const object = value as Readonly<Record<string, unknown>>;
      let isRight = true;
      let given = 0;
      // Unlike Object.keys, this makes no list; what JSON and YAML hold inherits no field.
      for (const name in object) {
        const inner = table.get(name);
        const item = object[name];
        if (inner === undefined) {
          if (isClosed) isRight = note(faults, 'unknown', shape, value, name);
        } else if (item !== undefined) {
          if (!inner.isOptional) given++;
          if (!checkBelow(inner, item, faults, name)) isRight = false;
        }
      }
      if (given === required.length) return isRight;
      for (const [name, inner] of required) {
        const isMissing = !Object.hasOwn(object, name) || object[name] === undefined;
        if (isMissing) isRight = noteMissing(inner, faults, name);
      }
      return isRight;
    },
    schema: (definitions) => ({
      type: 'object',
      ...(required.length > 0 && { required: required.map(([name]) => name) }),
      properties: Object.fromEntries([...table].map(([name, inner]) => [name, describeShape(inner, definitions)])),
      additionalProperties: false,
    }),
  });
  return shape;
}

function noteMissing(shape: Shape, { found, most }: Faults, name: string): false {
  if (found.length < most) found.push({ problem: 'missing', path: [name], shape, value: undefined, name: '' });
  return false;
}

/** A discriminated union: the field `tag` selects the shape. */
export function variantOf<Tag extends string, V extends Shapes>(
  tag: Tag,
  variants: V,
): Shape<{ [K in keyof V]: Flat<Readonly<Record<Tag, K>> & Shaped<V[K]>> }[keyof V]> {
  const tagShape = oneOf(...Object.keys(variants));
  return make({
    expected: 'an object',
    types: ['object'],
    accepts: isObject,
    inside: (value, faults) => {
      const { [tag]: name } = value as Readonly<Record<string, unknown>>;
      if (!checkBelow(tagShape, name, faults, tag)) return false;
      const variant = variants[String(name)];
      return variant?.inside === undefined || variant.inside(value, faults);
    },
    schema: (definitions) => ({
      anyOf: Object.entries(variants).map(([name, variant]) => {
        const whole = objectWith({ [tag]: oneOf(name), ...variant.fields }, { expected: '', isClosed: true });
        return describeShape(whole, definitions);
      }),
    }),
  });
}

/** A union. If several shapes accept a value, the first one checks its fields and items. */
export function anyOf<V extends readonly Shape[]>(expected: string, ...shapes: V): Shape<Shaped<V[number]>> {
  return make({
    expected,
    description: expected,
    types: [...new Set(shapes.flatMap(({ types }) => types))],
    items: shapes.find(({ items }) => items)?.items,
    accepts: (value) => shapes.some((each) => each.accepts(value)),
    inside: (value, faults) => {
      const inside = shapes.find((each) => each.accepts(value))?.inside;
      return inside === undefined || inside(value, faults);
    },
    schema: (definitions) => ({ anyOf: shapes.map((each) => describeShape(each, definitions)) }),
  });
}

/** Excludes lists and null. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
