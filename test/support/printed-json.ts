import { Ajv, type ValidateFunction } from 'ajv';
import { schemaOf, type JsonSchema, type Shape } from '../../src/base/json-shape.ts';
import { check, compile } from '../../src/say/outputs/compile.ts';
import { describe } from '../../src/say/outputs/describe.ts';
import { difference } from '../../src/say/outputs/diff.ts';
import { linted } from '../../src/say/outputs/lint.ts';
import { equivalence } from '../../src/say/outputs/equivalence.ts';
import { doctor, plan } from '../../src/say/outputs/node.ts';
import { tested, traced } from '../../src/say/outputs/trace.ts';
import { version } from '../../src/say/outputs/version.ts';

interface Printed {
  /** The commands that print it. */
  readonly by: readonly string[];
  readonly shape: Shape;
}

/** What commands print with --output json, by the name of its schema in schemas/. */
export const printedJson = {
  compile: { by: ['kpc compile'], shape: compile },
  check: { by: ['kpc compile --check'], shape: check },
  describe: { by: ['kpc describe'], shape: describe },
  lint: { by: ['kpc lint'], shape: linted },
  diff: { by: ['kpc diff'], shape: difference },
  trace: { by: ['kpc trace'], shape: traced },
  test: { by: ['kpc test'], shape: tested },
  equivalence: { by: ['kpc equivalence', 'kpc migrate'], shape: equivalence },
  plan: { by: ['kpc-apply plan', 'kpc-apply verify'], shape: plan },
  doctor: { by: ['kpc-apply doctor'], shape: doctor },
  version: { by: ['kpc version', 'kpc-apply version'], shape: version },
} as const satisfies Readonly<Record<string, Printed>>;

/** The published schema of what commands print. */
export function outputSchema(name: keyof typeof printedJson): JsonSchema {
  const { by, shape } = printedJson[name];
  const title = by.map((command) => `${command} --output json`).join(', ');
  return { $schema: 'http://json-schema.org/draft-07/schema#', title, ...schemaOf(shape) };
}

const ajv = new Ajv({ allowUnionTypes: true });
const validators = new Map<string, ValidateFunction>();

/** Throws if a command prints JSON that its schema does not allow. */
export function checkPrinted(program: 'kpc' | 'kpc-apply', args: readonly string[], stdout: string): void {
  const asksForJson = /(?:^| )(?:--output[ =]json|--json)(?: |$)/.test(args.join(' '));
  if (!asksForJson || !/^[{[]/.test(stdout)) return;
  const [name = ''] = args;
  const command = `${program} ${name}${name === 'compile' && args.includes('--check') ? ' --check' : ''}`;
  const schema = (Object.keys(printedJson) as (keyof typeof printedJson)[]).find((each) =>
    printedJson[each].by.some((by) => by === command),
  );
  if (schema === undefined) throw new Error(`${command} prints JSON, and has no schema`);
  const validate = validators.get(schema) ?? ajv.compile(outputSchema(schema));
  validators.set(schema, validate);
  if (validate(JSON.parse(stdout))) return;
  throw new Error(`${command} prints what its schema does not allow: ${JSON.stringify(validate.errors?.slice(0, 5))}`);
}
