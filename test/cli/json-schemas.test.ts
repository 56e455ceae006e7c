import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, describe, expect, test } from 'vitest';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-schemas-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const schemaOf = (name: string): object =>
  JSON.parse(readFileSync(join(projectFolder, 'schemas', `${name}.schema.json`), 'utf8'));

const ajv = new Ajv({ strict: false, allErrors: true });
const validators = new Map(
  ['compile', 'check', 'diff', 'describe'].map((name) => [name, ajv.compile(schemaOf(name))] as const),
);

function writeCluster(name: string, seed: number, services = 30): string {
  const path = join(scratch, name);
  writeFileSync(
    path,
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: makeCluster(services, makeRandom(seed)) }),
  );
  return path;
}

const old = writeCluster('old.json', 1);
const fresh = writeCluster('new.json', 2);
const broken = join(scratch, 'broken.yaml');
writeFileSync(broken, 'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { clusterIP: x }\n');

const ranges = ['--service-cluster-ip-range', '10.96.0.0/16,fd00:96::/112'];
const node = [...ranges, '--node', 'node-1'];

async function expectValid(
  schema: string,
  args: readonly string[],
  statuses: readonly number[] = [0, 1],
): Promise<void> {
  const run = await runKpc([...args, '--output', 'json'], { cwd: scratch });
  expect(statuses, run.stderr).toContain(run.status);
  const validate = validators.get(schema);
  validate?.(JSON.parse(run.stdout));
  expect(validate?.errors ?? []).toEqual([]);
}

describe.each(['ipvs', 'iptables'])('the JSON of mode %s keeps to its schema', (mode) => {
  const flags = [...node, '--proxy-mode', mode];

  test('kpc compile', async () => {
    await expectValid('compile', ['compile', '-f', old, ...flags]);
    await expectValid('compile', ['compile', '-f', old, ...flags, '-o', `${mode}-out`]);
    await expectValid('compile', [
      'compile',
      '-f',
      old,
      ...ranges,
      '--proxy-mode',
      mode,
      '--all-nodes',
      '-o',
      `${mode}-fleet`,
    ]);
    await expectValid('compile', ['compile', '-f', broken, ...flags], [2]);
  });

  test('kpc compile --check', async () => {
    await runKpc(['compile', '-f', old, ...flags, '-o', `${mode}-check`], { cwd: scratch });
    await runKpc(
      ['compile', '-f', old, ...ranges, '--proxy-mode', mode, '--all-nodes', '--golden', `${mode}-goldens`],
      { cwd: scratch },
    );
    for (const file of [old, fresh]) {
      await expectValid('check', ['compile', '-f', file, ...flags, '--check', `${mode}-check`]);
      await expectValid('check', [
        'compile',
        '-f',
        file,
        ...ranges,
        '--proxy-mode',
        mode,
        '--all-nodes',
        '--check',
        `${mode}-goldens`,
      ]);
    }
  });

  test('kpc diff', async () => {
    await expectValid('diff', ['diff', old, fresh, ...flags]);
    await expectValid('diff', ['diff', old, old, ...flags]);
    await expectValid('diff', [
      'diff',
      '-f',
      old,
      ...flags,
      '--kubernetes-version',
      '1.30',
      '--to-kubernetes-version',
      '1.36',
    ]);
  });

  test('kpc describe', async () => {
    await expectValid('describe', ['describe', '-f', old, ...flags]);
    const table = JSON.parse((await runKpc(['describe', '-f', old, ...flags, '--output', 'json'])).stdout);
    for (const { service } of table.slice(0, 8))
      await expectValid('describe', ['describe', service, '-f', old, ...flags]);
    await expectValid('describe', ['describe', 'KUBE-SERVICES', '-f', old, ...flags]);
  });
});

test('the JSON of a dump keeps to its schema', async () => {
  const dumps = join(projectFolder, 'fixtures', 'dumps');
  const names = readdirSync(dumps, { withFileTypes: true }).filter(({ name }) => name.startsWith('kube-proxy'));
  for (const { name } of names) await expectValid('describe', ['describe', '--from-dump', join(dumps, name)]);
  const nftables = names.flatMap(({ name }) => (name.includes('nftables') ? [join(dumps, name)] : []));
  const [first = '', second = ''] = nftables;
  await expectValid('diff', ['diff', first, second, '--foreign'], [1]);
});

test('a schema takes not just anything', () => {
  const wrong: readonly (readonly [string, unknown])[] = [
    ['describe', [{ service: 'a/b', type: 'ClusterIP', clusterIPs: [], ports: [], endpoints: '2 of 3' }]],
    ['compile', { diagnostics: [{ severity: 'fatal', code: 'x', text: 'y' }] }],
    ['diff', { differs: 'no' }],
    ['check', { folder: 'x', same: true }],
  ];
  for (const [name, value] of wrong) expect(validators.get(name)?.(value)).toBe(false);
});
