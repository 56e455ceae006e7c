// What kpc lint prints of one input, in each format: test/lint/formats holds it, and UPDATE_GOLDEN=1 writes it.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { projectUrl, version } from '../../src/base/version.ts';
import { findingCodes } from '../../src/base/findings/codes.ts';
import { answerOutputs } from '../../src/say/formats/answer.ts';
import { pageOf } from '../../src/say/words/said.ts';
import { commitAll } from '../support/git.ts';
import { inFolder } from '../findings/tripped.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import type { Linted } from './linted.ts';

const here = join(projectFolder, 'test/lint');
const input = ['fixtures/lint', '--proxy-mode', 'iptables'];

async function print(output: string, words: readonly string[] = input): Promise<string> {
  const { stdout, stderr } = await runKpc(['lint', ...words, '--output', output]);
  expect(stderr).toBe('');
  return stdout;
}

test.each(answerOutputs)('%s', async (output) => {
  const printed = (await print(output)).replace(`"version": "${version}"`, '"version": "0.0.0"');
  const file = join(here, 'formats', output);
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, printed);
  expect(printed).toBe(readFileSync(file, 'utf8'));
});

test('the help', async () => {
  const { stdout } = await runKpc(['lint', '--help']);
  const file = join(here, 'formats', 'help');
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, stdout);
  expect(stdout).toBe(readFileSync(file, 'utf8'));
});

interface Sarif {
  readonly runs: readonly {
    readonly tool: {
      readonly driver: { readonly rules: readonly { readonly id: string; readonly helpUri: string }[] };
    };
    readonly results: readonly {
      readonly ruleId: string;
      readonly locations?: readonly { readonly physicalLocation: { readonly artifactLocation: unknown } }[];
      readonly partialFingerprints: Readonly<Record<string, string>>;
    }[];
  }[];
}

/** The standard's own schema. It is of draft 4, whose keywords that it uses mean the same today. */
function sarifSchema(): object {
  const {
    $schema: _,
    id: __,
    ...schema
  } = JSON.parse(readFileSync(join(here, 'sarif/sarif-schema-2.1.0.json'), 'utf8')) as Readonly<
    Record<string, unknown>
  >;
  return schema;
}

const isUri = (text: string): boolean => URL.canParse(text);
const formats = {
  uri: isUri,
  'uri-reference': (text: string) => URL.canParse(text, 'file:///'),
  'date-time': true,
} as const;
const isSarif = new Ajv({ strict: false, formats }).compile(sarifSchema());

test.each([
  ['findings, and one that is ignored', input],
  ['no findings', ['fixtures/quickstart/svc.yaml']],
  ['errors', ['fixtures/bad-port/svc.yaml']],
  ['a finding without a place', ['fixtures/lint', '--proxy-mode', 'ipvs']],
  ['a file that is not there', ['fixtures/nowhere.yaml']],
  ['an absolute path', [join(projectFolder, 'fixtures/bad-port/svc.yaml')]],
])('SARIF is as its schema says: %s', async (_, words) => {
  const sarif = JSON.parse(await print('sarif', words)) as Sarif;
  expect(isSarif(sarif), JSON.stringify(isSarif.errors)).toBe(true);
  for (const { tool, results } of sarif.runs) {
    const rules = new Set(tool.driver.rules.map(({ id }) => id));
    expect(results.filter(({ ruleId }) => !rules.has(ruleId))).toEqual([]);
    // Code scanning leaves out results without a place.
    expect(results.filter(({ locations = [] }) => locations.length === 0)).toEqual([]);
  }
});

test('SARIF leaves out what is ignored: GitHub would open an alert for it', async () => {
  const { runs } = JSON.parse(await print('sarif')) as Sarif;
  const { findings, result } = JSON.parse(await print('json')) as Linted;
  expect(result?.ignored).toBe(1);
  expect(runs[0]?.results).toHaveLength(findings.length);
});

/** The file of the first finding in the formats for reviews. */
async function filesNamed(words: readonly string[], cwd: string, stdin = ''): Promise<readonly unknown[]> {
  const run = async (output: string) => (await runKpc(['lint', ...words, '--output', output], { cwd, stdin })).stdout;
  const [sarif] = (JSON.parse(await run('sarif')) as Sarif).runs;
  const [issue] = JSON.parse(await run('gitlab')) as readonly { readonly location: { readonly path: string } }[];
  const [, file] = /file=([^,]+)/.exec(await run('github')) ?? [];
  const [result] = sarif?.results ?? [];
  return [result?.locations?.[0]?.physicalLocation.artifactLocation, issue?.location.path, file];
}

test('reviews get paths from the top of the repository, and none of standard input', async () => {
  const text = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { odd: 1, ports: [{ port: 80 }] }\n';
  await inFolder({ 'deploy/k8s/in.yaml': text }, async (top) => {
    commitAll(top);
    const path = 'deploy/k8s/in.yaml';
    const folder = join(top, 'deploy');
    for (const name of ['./k8s/in.yaml', '../deploy/k8s', join(folder, 'k8s'), 'HEAD:deploy', 'HEAD:../deploy/k8s']) {
      expect(await filesNamed([name], folder), name).toEqual([{ uri: path, uriBaseId: '%SRCROOT%' }, path, path]);
    }
    const [ofStdin, ...others] = await filesNamed(['-'], folder, text);
    expect(ofStdin).toEqual({ uri: 'stdin' });
    expect(others).toEqual(['.', undefined]);
  });
});

test('a report for GitLab has no line of standard input, of which it has no file', async () => {
  const text = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ports: [{ port: 0 }] }\n';
  const { stdout } = await runKpc(['lint', '-', '--output', 'gitlab'], { stdin: text });
  const locations = (JSON.parse(stdout) as readonly { readonly location: unknown }[]).map(({ location }) => location);
  expect(locations).toEqual([{ path: '.', lines: { begin: 1 } }]);
});

test('what points into an object is a finding, a note too', async () => {
  const slice = (service: string) =>
    `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: { name: web-1, labels: { kubernetes.io/service-name: ${service} } }\naddressType: IPv4\nendpoints: []\n---\n`;
  const service = 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ports: [{ port: 80 }] }\n';
  await inFolder({ 'in.yaml': slice('wbe') + service }, async (cwd) => {
    const run = await runKpc(['lint', 'in.yaml', '--output', 'json'], { cwd });
    expect(run.stderr).toBe('');
    expect(JSON.parse(run.stdout)).toMatchObject({
      result: { notes: 1 },
      findings: [{ code: 'no-such-service', place: { line: 3 } }],
    });
    const { stderr, stdout } = await runKpc(['lint', 'in.yaml', '--ignore', 'no-such-service'], { cwd });
    expect(stderr + stdout).toBe(
      'no problems in 1 file; 1 ignored; endpoints of 1 Service not given; IPVS mode (nothing names a mode)\n',
    );
  });
});

test('the schema refuses what is no SARIF', () => {
  expect(isSarif({ version: '2.1.0', runs: [{ results: [] }] })).toBe(false);
  expect(isSarif({ version: '2.0.0', runs: [] })).toBe(false);
});

test('each code has a page, with a section of its name', () => {
  const pages = new Map(
    ['lint', 'codes'].map((name) => [name, readFileSync(join(projectFolder, `docs/${name}.md`), 'utf8')]),
  );
  for (const code of findingCodes) {
    const [, page = ''] =
      /^https:\/\/a\.example\/kpc\/.*\/docs\/(\w+)\.md#[\w-]+$/.exec(pageOf(code, 'https://a.example/kpc') ?? '') ?? [];
    expect(pages.get(page)).toContain(`\n### ${code}\n`);
  }
});

test.runIf(projectUrl === undefined)(
  'without an address of the project, no page is named but the command',
  async () => {
    for (const format of ['json', 'sarif', 'gitlab']) expect(await print(format)).not.toContain('OWNER/');
    expect(await print('sarif')).toContain('kpc explain open-node-port');
    expect(await print('gitlab')).toContain('kpc explain open-node-port');
  },
);

test('fingerprints survive another name of the folder that is given', async () => {
  const text = (name: string) =>
    `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { odd: 1, ports: [{ port: 70000 }] }\n`;
  const files = {
    'a/in.yaml': text('web'),
    'a/b/in.yaml': text('web'),
    'c/in.yaml': text('web'),
    'c/b/in.yaml': text('web'),
  };
  await inFolder({ ...files, 'd/wrong.yaml': 'spec: {\n', 'e/wrong.yaml': '\nspec: {\n' }, async (cwd) => {
    const printsOf = async (folder: string) => {
      const { stdout } = await runKpc(['lint', folder, '--output', 'json'], { cwd });
      return (JSON.parse(stdout) as Linted).findings.map(({ fingerprint }) => fingerprint).toSorted();
    };
    const before = await printsOf('a');
    expect(new Set(before).size).toBe(before.length);
    expect(await printsOf('c')).toEqual(before);
    expect(await printsOf('./c/')).toEqual(before);
    expect(await printsOf(`${cwd}/a`)).toEqual(before);
    expect(await printsOf('c/in.yaml')).toEqual(await printsOf('a/in.yaml'));
    expect(await printsOf('d')).toEqual(await printsOf('e'));
  });
});

test('a fingerprint is that of its object, whatever else is in the file', async () => {
  const text = (name: string, field: string) =>
    `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { ${field} ports: [{ port: 80 }] }\n---\n`;
  const printsOf = (first: string) =>
    inFolder({ 'in.yaml': text('web', first) + text('api', 'odd: 1,') }, async (cwd) => {
      const { stdout } = await runKpc(['lint', 'in.yaml', '--output', 'json'], { cwd });
      return (JSON.parse(stdout) as Linted).findings.map(({ fingerprint }) => fingerprint);
    });
  const [, second] = await printsOf('odd: 1,');
  expect(second).not.toBeUndefined();
  expect(await printsOf('')).toEqual([second]);
});

test('fingerprints survive moved lines and more nodes, and tell findings apart', async () => {
  const services = readFileSync(join(projectFolder, 'fixtures/lint/services.yaml'), 'utf8');
  const cluster = readFileSync(join(projectFolder, 'fixtures/lint/cluster.yaml'), 'utf8');
  const oneMore = cluster.split('---\n').at(-1)?.replaceAll('worker-3', 'worker-4').replaceAll('.13', '.14') ?? '';
  const printsOf = (files: Readonly<Record<string, string>>) =>
    inFolder(files, async (cwd) => {
      const { stdout } = await runKpc(['lint', '.', '--output', 'json'], { cwd });
      return (JSON.parse(stdout) as Linted).findings.map(({ fingerprint }) => fingerprint).toSorted();
    });
  const before = await printsOf({ 'services.yaml': services, 'cluster.yaml': cluster });
  expect(new Set(before).size).toBe(before.length);
  const moved = { 'a/services.yaml': `# a line\n\n${services}`, 'b/cluster.yaml': `${cluster}---\n${oneMore}` };
  expect(await printsOf(moved)).toEqual(before);
});
