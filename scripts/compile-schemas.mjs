// An esbuild plugin that compiles the JSON schemas at build time: the program then neither holds ajv nor waits for it.
// @ts-check
import { join } from 'node:path';
import { Ajv } from 'ajv';
import standalone from 'ajv/dist/standalone/index.js';
import { build } from 'esbuild';

/**
 * Puts a module with the compiled checks in the place of src/input/objects/compile-schema.ts.
 *
 * @type {import('esbuild').Plugin}
 */
export const compileSchemas = {
  name: 'compile-schemas',
  setup({ onLoad }) {
    onLoad({ filter: /[/\\]src[/\\]input[/\\]objects[/\\]compile-schema\.ts$/ }, async ({ path }) => {
      const { ajvSchemas, ajvOptions } = await loadSchemas(join(path, '..', 'schemas', 'for-ajv.ts'));
      const ajv = new Ajv({ ...ajvOptions, code: { source: true, esm: true } });
      const kinds = Object.keys(ajvSchemas);
      for (const [kind, schema] of Object.entries(ajvSchemas)) ajv.addSchema(schema, kind);
      // kpc asks parentSchema for all this. Without these fields of ajv's errors, the code is a quarter smaller.
      const code = standalone
        .default(ajv, Object.fromEntries(kinds.map((kind) => [kind, kind])))
        .replaceAll(/schemaPath:"[^"]*",/g, '')
        .replaceAll(/params:\{(?!additionalProperty)[^{}]*\},/g, '')
        .replaceAll(/,schema:[\w.[\]"]+,parentSchema:/g, ',parentSchema:');
      return {
        contents: `${code}\nexport function compileSchema(kind) { return { ${kinds.join(', ')} }[kind]; }\n`,
        loader: 'js',
      };
    });
  },
};

/**
 * @param {string} entry
 * @returns {Promise<typeof import('../src/input/objects/schemas/for-ajv.ts')>}
 */
async function loadSchemas(entry) {
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: 'esm', write: false });
  const text = outputFiles[0]?.text ?? '';
  return import(`data:text/javascript,${encodeURIComponent(text)}`);
}
