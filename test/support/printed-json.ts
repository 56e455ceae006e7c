import { Ajv, type ValidateFunction } from 'ajv';
import { anything, type Schema } from '../../src/base/json/schema.ts';
import { publishedSchema, type JsonSchema } from '../../src/base/json/published-schema.ts';
import { check, compile, difference, equivalence, linted } from '../../src/say/outputs/compile-and-compare.ts';
import { envelopeOf, version } from '../../src/say/outputs/envelope.ts';
import { describe } from '../../src/say/outputs/describe.ts';
import { doctor, plan } from '../../src/say/outputs/node.ts';
import { tested, traced } from '../../src/say/outputs/trace.ts';
import type { SaidFinding } from '../../src/say/words/said.ts';

interface Printed {
  readonly by: readonly string[];
  readonly shape: Schema;
}

/** The output of commands with --output json, by the name of its schema in schemas/. */
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

const $schema = 'http://json-schema.org/draft-07/schema#';

/** The file with the definitions that all schemas share, as in "envelope.schema.json#/$defs/finding". */
const envelopeFile = 'envelope.schema.json';

export const envelopeSchema: JsonSchema = {
  $schema,
  $id: envelopeFile,
  title: 'kpc and kpc-apply, every command --output json',
  ...publishedSchema(envelopeOf(anything)),
};

const shared: ReadonlySet<string> = new Set(Object.keys(envelopeSchema['$defs'] as object));

export function outputSchema(name: keyof typeof printedJson): JsonSchema {
  const { by, shape } = printedJson[name];
  const title = by.map((command) => `${command} --output json`).join(', ');
  const { $defs = {}, ...schema } = publishedSchema(envelopeOf<unknown>(shape));
  const own = Object.fromEntries(Object.entries($defs as object).filter(([each]) => !shared.has(each)));
  const whole = { $schema, title, ...schema, ...(Object.keys(own).length > 0 ? { $defs: own } : {}) };
  const text = JSON.stringify(whole).replaceAll(/"#\/\$defs\/([^"]+)"/g, (ref, each: string) =>
    shared.has(each) ? `"${envelopeFile}#/$defs/${each}"` : ref,
  );
  return JSON.parse(text) as JsonSchema;
}

// oxlint-disable-next-line typescript/no-explicit-any -- as of JSON.parse: what is expected of it shows what it is
export function resultOf(stdout: string): any {
  return (JSON.parse(stdout) as { readonly result: unknown }).result;
}

interface PrintedFinding extends Pick<SaidFinding, 'code' | 'severity' | 'text' | 'help' | 'place' | 'about'> {
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Returns the findings with this code in a command's printed envelope; all findings without a code. */
export function findingsOf(stdout: string, code?: string): readonly PrintedFinding[] {
  const { findings } = JSON.parse(stdout) as { readonly findings: readonly PrintedFinding[] };
  return findings.filter((each) => code === undefined || each.code === code);
}

const ajv = new Ajv({ allowUnionTypes: true, schemas: [envelopeSchema] });
const validators = new Map<string, ValidateFunction>();

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
