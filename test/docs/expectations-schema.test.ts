// The published schema of files for kpc test is the one that kpc checks them by. UPDATE_DOCS=1 writes it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { Schema } from '../../src/diagnostics/json-schema.ts';
import { packetTestsSchema } from '../../src/input/objects/schemas/packet-tests.ts';
import { fixturesFolder } from '../support/fixtures.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { expectWritten } from '../support/written-page.ts';

const path = 'schemas/expectations.schema.json';

/** A schema for editors: what would be right, as its description. */
function publish({ expected, properties, items, additionalProperties, ...others }: Schema): object {
  return {
    ...(expected === undefined ? {} : { description: expected }),
    ...others,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, publish(each)])),
    }),
    ...(items && { items: publish(items) }),
    ...(additionalProperties === undefined
      ? {}
      : {
          additionalProperties:
            typeof additionalProperties === 'object' ? publish(additionalProperties) : additionalProperties,
        }),
  };
}

test('schemas/expectations.schema.json is the schema that kpc test reads by', () => {
  const head = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Expectations of kpc test',
  };
  expectWritten(path, `${JSON.stringify({ ...head, ...publish(packetTestsSchema) }, undefined, 2)}\n`);
});

const compile = () =>
  new Ajv({ allowUnionTypes: true }).compile(JSON.parse(readFileSync(join(projectFolder, path), 'utf8')) as object);

test('it takes the fixtures', () => {
  const validate = compile();
  const flows = join(fixturesFolder, 'kube-proxy-flows');
  const folders = readdirSync(flows, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const files = [
    join(fixturesFolder, 'packet-tests', 'nginx.yaml'),
    ...folders.map(({ name }) => join(flows, name, 'flows.yaml')),
  ];
  for (const file of files) {
    for (const document of parseAllDocuments(readFileSync(file, 'utf8'))) {
      expect(validate(document.toJS()), `${file} ${JSON.stringify(validate.errors)}`).toBe(true);
    }
  }
});

test.each<[content: unknown]>([
  [{ test: [] }],
  [{ tests: [{ from: 'pod', to: 'svc/web', expects: 'refused' }] }],
  [{ tests: [{ from: 'pod', to: 'svc/web', proto: 'tpc', expect: 'refused' }] }],
  [{ tests: [{ from: 'pod', to: 'svc/web', expect: { '10.0.0.1:80': 2 } }] }],
])('it refuses %o', (content) => {
  expect(compile()(content)).toBe(false);
});
