// The schemas in schemas/ are made of the shapes of src. UPDATE_DOCS=1 writes them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readPrograms } from '../../packaging/programs.ts';
import { publishedSchema, type JsonSchema } from '../../src/base/json/published-schema.ts';
import { configuredOf } from '../../src/cli/kpc/flags.ts';
import { kpcYamlSchema } from '../../src/library/node/kpc-yaml-schema.ts';
import { packetTestsSchema } from '../../src/input/objects/shapes/packet-tests.ts';
import { fixturesFolder } from '../support/fixtures.ts';
import { envelopeSchema, outputSchema, printedJson } from '../support/printed-json.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { expectWritten } from '../support/written-page.ts';

const $schema = 'http://json-schema.org/draft-07/schema#';

function expectSchema(name: string, schema: JsonSchema): void {
  expectWritten(`schemas/${name}.schema.json`, `${JSON.stringify(schema, undefined, 2)}\n`);
}

test.each(Object.keys(printedJson) as (keyof typeof printedJson)[])('schemas/%s.schema.json', (name) => {
  expectSchema(name, outputSchema(name));
});

test('schemas/envelope.schema.json', () => {
  expectSchema('envelope', envelopeSchema);
});

test('schemas/expectations.schema.json', () => {
  expectSchema('expectations', { $schema, title: 'Expectations of kpc test', ...publishedSchema(packetTestsSchema) });
});

test('schemas/kpc.yaml.schema.json', async () => {
  const kpc = (await readPrograms()).find(({ name }) => name === 'kpc');
  expectSchema('kpc.yaml', {
    $schema,
    title: 'kpc.yaml',
    ...(kpc && publishedSchema(kpcYamlSchema(configuredOf(kpc.program)))),
  });
});

test('what names a schema for an editor leads to one', () => {
  const files = ['fixtures', 'examples', 'docs'].flatMap((folder) =>
    readdirSync(join(projectFolder, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ya?ml|md)$/.test(name))
      .map((name) => join(folder, name)),
  );
  const named = files.flatMap((file) =>
    [...readFileSync(join(projectFolder, file), 'utf8').matchAll(/yaml-language-server: \$schema=(\S+)/g)].map(
      ([, schema = '']) => ({ file, schema }),
    ),
  );
  expect(named.length).toBeGreaterThan(1);
  const { name } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8')) as { readonly name: string };
  const missing = named.filter(({ file, schema }) => {
    // The package holds the folder with them. A page shows a file of fixtures/, from where its path counts.
    const own = schema.replace(`node_modules/${name}/`, `${projectFolder}/`);
    const from = file.endsWith('.md') ? 'fixtures/packet-tests' : dirname(file);
    return !existsSync(own === schema ? join(projectFolder, from, schema) : own);
  });
  expect(missing).toEqual([]);
});

test('each command that prints JSON has a schema', async () => {
  const known = new Set(Object.values(printedJson).flatMap(({ by }): readonly string[] => by));
  const printing = (await readPrograms()).flatMap((program) =>
    program.commands
      .filter(({ options }) =>
        options.some(({ long, argChoices }) => long === '--output' && argChoices?.includes('json')),
      )
      .map((command) => `${program.name} ${command.name()}`),
  );
  expect(printing.length).toBeGreaterThan(8);
  expect(printing.filter((command) => !known.has(command))).toEqual([]);
});

const compiled = new Map<string, ValidateFunction>();

function compile(name: string): ValidateFunction {
  const text = readFileSync(join(projectFolder, 'schemas', `${name}.schema.json`), 'utf8');
  const validate =
    compiled.get(name) ??
    new Ajv({ allowUnionTypes: true, schemas: [envelopeSchema] }).compile(JSON.parse(text) as object);
  compiled.set(name, validate);
  return validate;
}

const answer = (result?: unknown) => ({ kpc: '1', command: 'kpc x', snapshots: [], findings: [], result });

test('expectations: the schema takes the fixtures', () => {
  const validate = compile('expectations');
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

describe('each schema refuses what is not as it says', () => {
  test.each<[name: string, content: unknown]>([
    ['expectations', { test: [] }],
    ['expectations', { tests: [{ from: 'pod', to: 'svc/web', expects: 'refused' }] }],
    ['expectations', { tests: [{ from: 'pod', to: 'svc/web', proto: 'tpc', expect: 'refused' }] }],
    ['expectations', { tests: [{ from: 'pod', to: 'svc/web', expect: { '10.0.0.1:80': 2 } }] }],
    [
      'describe',
      answer({ services: [{ service: 'a/b', type: 'ClusterIP', clusterIPs: [], ports: [], endpoints: '2' }] }),
    ],
    ['compile', { ...answer(), findings: [{ severity: 'fatal', code: 'x', text: 'y', arguments: {} }] }],
    ['compile', { ...answer(), snapshots: [{ name: 'x', kind: 'cluster', families: [] }] }],
    ['diff', answer({ differs: 'no' })],
    ['check', answer({ folder: 'x', same: true })],
    ['trace', answer({ traces: [{ verdict: 'delivered', endpoints: [], sourceAfter: '10.0.0.1', steps: [{}] }] })],
    ['test', answer({ tests: [{ name: 'x' }] })],
    ['equivalence', answer({ from: 'a', to: 'b' })],
    ['plan', answer({ changes: [{ action: 'replace' }], conflicts: [], foreignVirtualServers: [], draining: [] })],
    ['doctor', answer({ checks: [{ severity: 'fine', subject: 'tools', text: 'x' }] })],
    ['version', answer({ nodeVersion: '1' })],
    ['version', { result: answer().result }],
    ['kpc.yaml', { nod: 'worker-1' }],
    ['kpc.yaml', { 'masquerade-all': 'yes' }],
    ['kpc.yaml', { diff: { golden: 'x' } }],
  ])('%s: %o', (name, content) => {
    expect(compile(name)(content)).toBe(false);
  });
});

test.each<[content: unknown]>([
  [{ node: 'worker-1', 'service-cluster-ip-range': '10.96.0.0/16', 'proxy-mode': 'iptables' }],
  [{ file: ['services', 'nodes.yaml'], compile: { golden: 'golden' }, 'masquerade-all': true, 'conntrack-min': 1 }],
  [null],
])('kpc.yaml: the schema takes %o', (content) => {
  expect(compile('kpc.yaml')(content)).toBe(true);
});
