// The schema of kpc.yaml is made of the flags. UPDATE_DOCS=1 writes it.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import type { Command, Option } from 'commander';
import { expect, test } from 'vitest';
import { configuredCommands, heldFlags, takesBoolean, takesList } from '../../src/cli/kpc/kpc-yaml.ts';
import { readPrograms } from '../../packaging/programs.ts';
import { projectFolder } from '../support/run-kpc.ts';

const path = join(projectFolder, 'schemas', 'kpc.yaml.schema.json');

const isConfigured = (name: string): boolean => configuredCommands.some((each) => each === name);

const one = { type: ['string', 'number'] };

function schemaOf(option: Option): object {
  const { description, argChoices } = option;
  if (takesBoolean(option)) return { description, type: 'boolean' };
  if (option.optional) return { description, anyOf: [{ type: 'boolean' }, one, { type: 'array', items: one }] };
  if (argChoices) return { description, enum: argChoices };
  return takesList(option) ? { description, anyOf: [one, { type: 'array', items: one }] } : { description, ...one };
}

function propertiesOf(commands: readonly Command[]): Record<string, object> {
  const properties: Record<string, object> = {};
  for (const option of commands.flatMap((command) => heldFlags(command))) {
    const name = option.long?.slice(2) ?? '';
    const schema = schemaOf(option);
    const known = properties[name];
    // A flag of several commands may take other values in each.
    properties[name] ??= schema;
    if (known && 'enum' in known && 'enum' in schema) {
      properties[name] = { ...known, enum: [...new Set([...(known.enum as string[]), ...(schema.enum as string[])])] };
    }
    if (known && JSON.stringify(schema).includes('anyOf')) properties[name] = schema;
  }
  return Object.fromEntries(Object.entries(properties).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

async function makeSchema(): Promise<object> {
  const commands = ((await readPrograms())[0]?.commands ?? []).filter((command) => isConfigured(command.name()));
  const sections = commands.map((command) => [
    command.name(),
    { description: `flags of kpc ${command.name()} alone`, ...objectOf(propertiesOf([command])) },
  ]);
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'kpc.yaml',
    description: 'Flags of kpc for a repository, without their dashes. A flag on the command line wins.',
    ...objectOf({ ...propertiesOf(commands), ...Object.fromEntries(sections) }),
  };
}

function objectOf(properties: object): object {
  return { type: ['object', 'null'], additionalProperties: false, properties };
}

test('schemas/kpc.yaml.schema.json has every flag', async () => {
  const text = `${JSON.stringify(await makeSchema(), undefined, 2)}\n`;
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(path, text);
  expect(existsSync(path) && JSON.parse(readFileSync(path, 'utf8'))).toEqual(JSON.parse(text));
});

test.each<[content: unknown, isValid: boolean]>([
  [{ node: 'worker-1', 'service-cluster-ip-range': '10.96.0.0/16', 'proxy-mode': 'iptables' }, true],
  [
    { file: ['services', 'nodes.yaml'], compile: { golden: 'golden' }, 'masquerade-all': true, 'conntrack-min': 1 },
    true,
  ],
  [null, true],
  [{ nod: 'worker-1' }, false],
  [{ 'masquerade-all': 'yes' }, false],
  [{ diff: { golden: 'x' } }, false],
])('%o is valid by it: %s', (content, isValid) => {
  const validate = new Ajv({ allowUnionTypes: true }).compile(JSON.parse(readFileSync(path, 'utf8')));
  expect(validate(content)).toBe(isValid);
});
