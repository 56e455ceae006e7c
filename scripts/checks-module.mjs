// Makes the module #checks: the checks of everything declared in JSON Schema. ajv makes it from src/checks/schemas.ts when a program is
// built and when tests run, so that no program contains ajv.
//
// Each part of a schema gets a function of ajv's standalone code, which says only whether it accepts a value. With "is", a keyword of
// ours, it calls the functions of its parts. Beside each function is what a message needs. src/base/json/check.ts finds what is wrong,
// and where, by asking part by part up to a limit. ajv has no limit on the errors of one run.
// @ts-check
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { _, Ajv, Name } from 'ajv';
import { and, getProperty } from 'ajv/dist/compile/codegen/index.js';
import standalone from 'ajv/dist/standalone/index.js';
import { build, transform } from 'esbuild';

const project = join(dirname(fileURLToPath(import.meta.url)), '..');

/**
 * A JSON Schema, with the keywords of src/base/json/schema.ts.
 *
 * @typedef {Readonly<Record<string, any>>} Schema
 */

/** @typedef {import('ajv').Code} Code */

/**
 * Returns what src declares, by the name of its check, and the predicates that the declarations name.
 *
 * @param {string} root a folder with src
 * @returns {Promise<{ readonly schemas: Readonly<Record<string, Schema>>, readonly predicates: object }>}
 */
async function readDeclared(root) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    stdin: {
      contents: `export * as schemas from './schemas.ts'; export * as predicates from './predicates.ts';`,
      resolveDir: join(root, 'src/checks'),
    },
    nodePaths: [join(project, 'node_modules')],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    logLevel: 'warning',
  });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? '')}`);
}

/** The keywords that ajv's function for a schema checks in the value itself. */
const plain = ['type', 'enum', 'minimum', 'maximum', 'pattern', 'format', 'passes', 'required'];

/**
 * Returns one schema for alternatives of different types. Each keyword that is left applies to values of one type only.
 *
 * @param {Schema} schema
 * @returns {Schema}
 */
function unite({ anyOf, ...schema }) {
  if (anyOf === undefined) return schema;
  /** @type {readonly Schema[]} */
  const parts = anyOf.map(unite);
  const type = parts.flatMap((part) => part['type']).filter((each) => each !== 'null');
  const isMixed = parts.some((part) => part['enum'] !== undefined || part['passes'] !== undefined);
  if (isMixed || new Set(type).size < type.length) throw new Error(`no types choose: ${JSON.stringify(anyOf)}`);
  const isNullable = parts.some((part) => [part['type']].flat().includes('null'));
  return { ...Object.assign({}, ...parts), ...schema, type: isNullable ? [...type, 'null'] : type };
}

/**
 * Reports whether the check of a field refuses a missing value by itself, because the field has a type or a list of values.
 *
 * @param {Schema | undefined} schema
 */
function refusesMissing(schema) {
  if (schema === undefined) return false;
  return schema['discriminator'] !== undefined || (unite(schema)['type'] ?? schema['enum']) !== undefined;
}

/**
 * @template T, R
 * @param {Readonly<Record<string, T>>} object
 * @param {(value: T) => R} change
 * @returns {Record<string, R>}
 */
function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

/**
 * Returns the source text of a value. A Name in the value is a variable.
 *
 * @param {unknown} value
 * @returns {string}
 */
function print(value) {
  if (value instanceof Name) return value.str;
  if (Array.isArray(value)) return `[${value.map(print).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const given = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{ ${given.map(([name, each]) => `${JSON.stringify(name)}: ${print(each)}`).join(', ')} }`;
}

/** The parts of schemas, each once. */
class Parts {
  /** @type {Map<string, string>} the names of functions, by their schemas */
  functions = new Map();
  /** @type {Map<string, string>} the names of texts and lists that most checks share, by their source texts */
  shared = new Map();
  /** @type {Map<string, Name>} the names of checks, by their texts */
  checks = new Map();
  /** @type {Map<Name, Schema>} what stands for a part in the schema of a whole */
  #calls = new Map();
  #predicates;

  /** @param {object} predicates */
  constructor(predicates) {
    this.#predicates = predicates;
  }

  /**
   * Adds a schema. Returns the name of its check.
   *
   * @param {Schema} schema
   * @returns {Name}
   */
  add(schema) {
    return schema['discriminator'] ? this.#addVariants(schema) : this.#addPlain(unite(schema));
  }

  /** @param {Schema} schema */
  #addPlain(schema) {
    const { expected, toPass, enum: values, required, additionalProperties } = schema;
    const fields = schema['properties'] && mapValues(schema['properties'], (each) => this.add(each));
    const others = typeof additionalProperties === 'object' ? this.add(additionalProperties) : undefined;
    const items = schema['items'] && this.add(schema['items']);
    const isClosed = additionalProperties === false || undefined;
    const calls = fields && mapValues(fields, this.#use);
    const needs = (required ?? []).filter((/** @type {string} */ name) => refusesMissing(schema['properties']?.[name]));
    const own = {
      ...Object.fromEntries(plain.flatMap((name) => (schema[name] === undefined ? [] : [[name, schema[name]]]))),
      ...(needs.length > 0 && {
        required: required.filter((/** @type {string} */ name) => !needs.includes(name)),
        needs: needs.map((/** @type {string} */ name) => [name, calls?.[name]?.['is']]),
      }),
      ...(calls && {
        properties: Object.fromEntries(
          Object.entries(calls).map(([name, call]) => [name, needs.includes(name) ? {} : call]),
        ),
      }),
      ...(others && { additionalProperties: this.#use(others) }),
      ...(isClosed && { additionalProperties: false }),
      ...(items && { items: this.#use(items) }),
    };
    const unknown = [schema['format'], schema['passes']].find(
      (name) => name !== undefined && !(name in this.#predicates),
    );
    if (unknown !== undefined) throw new Error(`src/checks/predicates.ts has no ${unknown}`);
    // Refuse a name that every object inherits, because it would count as a field of the object.
    const inherited = Object.keys(fields ?? {}).find((name) => name in {});
    if (inherited !== undefined) throw new Error(`a field must not be called ${inherited}`);
    const types = [schema['type'] ?? []].flat();
    return this.#addCheck(own, { expected, toPass, types, values, fields, required, isClosed, others, items });
  }

  /** @param {Schema} schema */
  #addVariants({ expected, anyOf, discriminator: { propertyName: tag } }) {
    /** @type {Record<string, Name>} */
    const variants = Object.fromEntries(
      anyOf.map((/** @type {Schema} */ each) => [each['properties'][tag].enum[0], this.add(each)]),
    );
    const words = Object.keys(variants);
    const anyWord = { type: 'string', enum: words, expected: words.map((word) => JSON.stringify(word)).join(' or ') };
    const own = { type: 'object', isOneOf: Object.values(variants).map((each) => this.#calls.get(each)?.['is']) };
    const fields = { [tag]: this.add(anyWord) };
    return this.#addCheck(own, { expected, types: ['object'], fields, required: [tag], tag, variants });
  }

  /**
   * @param {Schema} own what ajv checks
   * @param {Readonly<Record<string, unknown>>} said what stands beside it
   */
  #addCheck(own, said) {
    const schema = JSON.stringify(own);
    const accepts = this.functions.get(schema) ?? `accepts${this.functions.size}`;
    this.functions.set(schema, accepts);
    const text = print({ accepts: new Name(accepts), ...mapValues(said, this.#share) });
    const check = this.checks.get(text) ?? new Name(`check${this.checks.size}`);
    this.checks.set(text, check);
    this.#calls.set(check, schema === '{}' ? {} : { is: accepts });
    return check;
  }

  /**
   * @param {unknown} value
   * @returns {unknown}
   */
  #share = (value) => {
    if (typeof value !== 'string' && !(Array.isArray(value) && !value.some((each) => each instanceof Name)))
      return value;
    const text = print(value);
    const name = this.shared.get(text) ?? `shared${this.shared.size}`;
    this.shared.set(text, name);
    return new Name(name);
  };

  /** @param {Name} check */
  #use = (check) => this.#calls.get(check);
}

/** @param {string} root a folder with src */
async function moduleText(root) {
  const { schemas, predicates } = await readDeclared(root);
  const parts = new Parts(predicates);
  const exported = Object.entries(schemas).map(([name, schema]) => [name, parts.add(schema).str]);
  const lines = [
    `import * as predicates from ${JSON.stringify(join(root, 'src/checks/predicates.ts'))};`,
    `import { isObject } from ${JSON.stringify(join(root, 'src/base/json/check.ts'))};`,
    functionTexts(parts.functions),
    ...[...parts.shared].map(([text, name]) => `const ${name} = ${text};`),
    ...[...parts.checks].map(([text, { str }]) => `const ${str} = ${text};`),
    `export { ${exported.map(([name, check]) => `${check} as ${name}`).join(', ')} };`,
  ];
  // Minify for the libraries too, which keep the names of their sources.
  return (await transform(lines.join('\n'), { format: 'esm', minify: true })).code;
}

/**
 * Returns ajv's functions. Each ends at the first error and says nothing about it, because ajv's messages would be most of
 * the text.
 *
 * @param {ReadonlyMap<string, string>} functions
 */
function functionTexts(functions) {
  const code = { source: true, esm: true, lines: true, formats: _`predicates` };
  // With these options, each error is a few lines that no other code uses.
  const ajv = new Ajv({ code, allErrors: true, messages: false, allowUnionTypes: true, strictTypes: false });
  const call = (/** @type {string} */ name, /** @type {Code} */ data) => _`${new Name(name)}(${data})`;
  ajv.addKeyword({ keyword: 'is', code: (cxt) => cxt.fail(_`!${call(cxt.schema, cxt.data)}`) });
  ajv.addKeyword({
    keyword: 'isOneOf',
    code: (cxt) => cxt.fail(cxt.schema.map((/** @type {string} */ name) => _`!${call(name, cxt.data)}`).reduce(and)),
  });
  ajv.addKeyword({
    keyword: 'needs',
    type: 'object',
    code: (cxt) => {
      for (const [name, accepts] of cxt.schema) {
        const field = _`${cxt.data}${getProperty(name)}`;
        cxt.gen.if(_`!${call(accepts, field)}`, () => cxt.error());
      }
    },
  });
  ajv.addKeyword({
    keyword: 'passes',
    post: true,
    code: (cxt) => cxt.fail(_`!predicates.${call(cxt.schema, cxt.data)}`),
  });
  for (const [schema, $id] of functions) {
    const { format } = JSON.parse(schema);
    if (format !== undefined) ajv.addFormat(format, () => true);
    ajv.addSchema({ $id, ...JSON.parse(schema) });
  }
  const ids = [...functions.values()];
  const text = standalone
    .default(ajv, Object.fromEntries(ids.map((id) => [id, id])))
    .replaceAll(/^export const (\w+) = (\w+);$(.*?)^function \2\(/gms, '$3function $1(')
    .replaceAll('(data, {instancePath="", parentData, parentDataProperty, rootData=data}={})', '(data)')
    .replaceAll('data && typeof data == "object" && !Array.isArray(data)', 'isObject(data)')
    .replaceAll(/^let vErrors = null;\nlet errors = 0;$/gm, '')
    .replaceAll(
      /^const (err\d+) = .*;\nif\(vErrors === null\)\{\nvErrors = \[\1\];\n\}\nelse \{\nvErrors\.push\(\1\);\n\}\nerrors\+\+;$/gm,
      'return false;',
    )
    .replaceAll(/^validate\d+\.errors = (?:vErrors;\nreturn errors === 0|null;\nreturn true);$/gm, 'return true;')
    .replaceAll(
      /^if\((data\d*\.\w+) !== undefined\)\{\nif\(!(accepts\d+)\(\1\)\)\{\nreturn false;\n\}\n\}$/gm,
      'if(predicates.isWrong($1, $2)) return false;',
    )
    // JavaScript's own checks of numbers are shorter.
    .replaceAll(
      '(((typeof data == "number") && (!(data % 1) && !isNaN(data))) && (isFinite(data)))',
      'Number.isInteger(data)',
    )
    .replaceAll(/\(?\(typeof data == "number"\) && \(isFinite\(data\)\)\)/g, '(Number.isFinite(data))')
    .replaceAll(
      /^if\(Array\.isArray\(data\)\)\{\nconst len0 = .*\nfor\(.*\)\{\nif\(!(accepts\d+)\(data\[i0\]\)\)\{\nreturn false;\n\}\n\}\n\}(\nelse \{\nreturn false;\n\})?$/gm,
      (_whole, accepts, isOnly) =>
        isOnly
          ? `if(!Array.isArray(data) || !data.every(${accepts})) return false;`
          : `if(Array.isArray(data) && !data.every(${accepts})) return false;`,
    )
    // Replace a schema with many properties by their names, because the code uses only the names.
    .replaceAll(/^const (schema\d+) = (\{.*\});$/gm, (_whole, name, schema) => {
      const names = Object.keys(JSON.parse(schema).properties ?? {}).map((each) => [each, 0]);
      return `const ${name} = ${JSON.stringify({ properties: Object.fromEntries(names) })};`;
    });
  if (/rrors\b|schema\d+\.(?!properties\b)/.test(text)) throw new Error('ajv writes its code in another way');
  return text;
}

/** @type {Promise<string> | undefined} made once for all programs */
let ofProject;

function textOfProject() {
  ofProject ??= moduleText(project);
  return ofProject;
}

/**
 * The plugin for programs.
 *
 * @type {import('esbuild').Plugin}
 */
export const checksModule = {
  name: 'checks',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^#checks$/ }, () => ({ path: 'checks', namespace: 'checks', sideEffects: false }));
    onLoad({ filter: /./, namespace: 'checks' }, async () => ({
      contents: await textOfProject(),
      resolveDir: project,
    }));
  },
};

/**
 * The plugin for Vitest. A test may change a copy of src; modules there get the checks of this copy.
 *
 * @type {import('vitest/config').Plugin}
 */
export const checksInTests = {
  name: 'checks',
  enforce: 'pre',
  resolveId: (id, importer) => (id === '#checks' ? `\0checks:${rootOf(importer ?? '')}` : undefined),
  load: (id) => (id.startsWith('\0checks:') ? moduleText(id.slice('\0checks:'.length)) : undefined),
};

/**
 * Returns the folder whose src holds a module.
 *
 * @param {string} path
 */
function rootOf(path) {
  let folder = dirname(path);
  while (!existsSync(join(folder, 'src/checks/schemas.ts'))) {
    if (folder === dirname(folder)) return project;
    folder = dirname(folder);
  }
  return folder;
}
