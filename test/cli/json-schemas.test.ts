// What commands print with --output json keeps to its schema, which runKpc checks at each run: here over many Services.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { makeCluster } from '../support/make-cluster.ts';
import { makeRandom } from '../support/random.ts';
import { rounds, some } from '../support/rounds.ts';
import { projectFolder, runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-schemas-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function writeCluster(name: string, seed: number, services = rounds(30, 6)): string {
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

async function expectJson(args: readonly string[], statuses: readonly number[] = [0, 1]): Promise<void> {
  const run = await runKpc([...args, '--output', 'json'], { cwd: scratch });
  expect(statuses, run.stderr).toContain(run.status);
  expect(run.stdout).toMatch(/^[{[]/);
}

describe.each(some(['nftables', 'ipvs', 'iptables']))('mode %s', (mode) => {
  const flags = [...node, '--proxy-mode', mode];

  test('kpc compile', async () => {
    await expectJson(['compile', '-f', old, ...flags]);
    await expectJson(['compile', '-f', old, ...flags, '-o', `${mode}-out`]);
    await expectJson(['compile', '-f', old, ...ranges, '--proxy-mode', mode, '--all-nodes', '-o', `${mode}-fleet`]);
    await expectJson(['compile', '-f', broken, ...flags], [2]);
  });

  test('kpc compile --check', async () => {
    await runKpc(['compile', '-f', old, ...flags, '-o', `${mode}-check`], { cwd: scratch });
    await runKpc(
      ['compile', '-f', old, ...ranges, '--proxy-mode', mode, '--all-nodes', '--golden', `${mode}-goldens`],
      { cwd: scratch },
    );
    for (const file of [old, fresh]) {
      await expectJson(['compile', '-f', file, ...flags, '--check', `${mode}-check`]);
      await expectJson([
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
    await expectJson(['diff', old, fresh, ...flags]);
    await expectJson(['diff', old, old, ...flags]);
    await expectJson(['diff', '-f', old, ...flags, '--kubernetes-version', '1.33', '--to-kubernetes-version', '1.36']);
  });

  test('kpc trace', async () => {
    const { services } = resultOf((await runKpc(['describe', '-f', old, ...flags, '--output', 'json'])).stdout);
    const names = (services as readonly { readonly service: string; readonly skipped?: string }[]).flatMap(
      ({ service, skipped }) => (skipped === undefined ? [service] : []),
    );
    for (const service of names.slice(0, rounds(5))) await expectJson(['trace', old, ...flags, '--all', service]);
    await expectJson(['trace', old, ...flags, '--from', 'external', '--to', `svc/${names[0]}:port-0`]);
    await expectJson(['trace', old, ...ranges, '--all-nodes', '--from', 'pod', '--to', `svc/${names[0]}:port-0`]);
  });

  test('kpc migrate', async () => {
    await expectJson(['migrate', old, ...flags, '--to', mode === 'nftables' ? 'iptables' : 'nftables']);
  });

  test('kpc describe', async () => {
    await expectJson(['describe', '-f', old, ...flags]);
    const { services } = resultOf((await runKpc(['describe', '-f', old, ...flags, '--output', 'json'])).stdout);
    for (const { service } of services.slice(0, rounds(8)))
      await expectJson(['describe', service, '-f', old, ...flags]);
    await expectJson(['describe', mode === 'nftables' ? 'service-ips' : 'KUBE-SERVICES', '-f', old, ...flags]);
  });
});

test('the JSON of a dump keeps to its schema', async () => {
  const dumps = join(projectFolder, 'fixtures', 'dumps');
  const names = readdirSync(dumps, { withFileTypes: true }).filter(({ name }) => name.startsWith('kube-proxy'));
  for (const { name } of names) await expectJson(['describe', '--from-dump', join(dumps, name)]);
  const nftables = names.flatMap(({ name }) => (name.includes('nftables') ? [join(dumps, name)] : []));
  const [first = '', second = ''] = nftables;
  await expectJson(['diff', first, second, '--foreign'], [1]);
});
