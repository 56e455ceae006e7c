import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-ungiven-'));
afterAll(() => rmSync(cwd, { recursive: true }));

const service =
  'apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {selector: {app: a}, clusterIP: 10.96.0.10, ports: [{port: 80}]}\n';
const pod = (app: string, phase: string) =>
  `---\napiVersion: v1\nkind: Pod\nmetadata: {name: ${app}, labels: {app: ${app}}}\nspec: {nodeName: worker, containers: [{name: a, image: a}]}\n` +
  `status: {phase: ${phase}, podIP: 10.244.0.5, podIPs: [{ip: 10.244.0.5}], conditions: [{type: Ready, status: "True"}]}\n`;
const node =
  '---\napiVersion: v1\nkind: Node\nmetadata: {name: worker}\nstatus: {addresses: [{type: InternalIP, address: 192.168.5.1}]}\n';

beforeAll(() => {
  const inputs = {
    ungiven: service + node,
    none: service + node + pod('b', 'Running'),
    done: service + node + pod('a', 'Succeeded'),
    one: service + node + pod('a', 'Running'),
  };
  for (const [name, text] of Object.entries(inputs)) writeFileSync(join(cwd, `${name}.yaml`), text);
});

async function run(...words: readonly string[]) {
  const { status, stdout, stderr } = await runKpc([...words, '--output', 'json'], { cwd });
  expect(stdout, stderr).not.toBe('');
  return { status, result: resultOf(stdout) };
}

describe('endpoints that the input of one side does not give', () => {
  test.each([
    ['ungiven', 'none', 'not given', 0],
    ['none', 'ungiven', 0, 'not given'],
    ['ungiven', 'done', 'not given', 0],
    ['ungiven', 'one', 'not given', 1],
  ])('%s → %s', async (from, to, before, after) => {
    const { status, result } = await run('diff', `${from}.yaml`, `${to}.yaml`);
    const { servicePorts, packets } = result as {
      servicePorts: readonly { readonly reasons: readonly { readonly kind: string }[] }[];
      packets: readonly { readonly severity: string; readonly target: string }[];
    };
    expect(status).toBe(1);
    expect(servicePorts.flatMap(({ reasons }) => reasons)).toContainEqual(
      expect.objectContaining({ kind: 'scaled', from: before, to: after }),
    );
    expect(packets).toContainEqual(expect.objectContaining({ severity: 'unknown', target: 'cluster-ip' }));
    const { result: report } = await run('equivalence', `${from}.yaml`, `${to}.yaml`);
    expect(report).toMatchObject({
      causes: [expect.objectContaining({ services: ['default/a'], severity: 'unknown' })],
    });
  });

  test.each([
    ['ungiven', 'ungiven'],
    ['none', 'done'],
  ])('neither or both: %s → %s', async (from, to) => {
    expect(await run('diff', `${from}.yaml`, `${to}.yaml`)).toMatchObject({ status: 0, result: { servicePorts: [] } });
    expect(await run('equivalence', `${from}.yaml`, `${to}.yaml`)).toMatchObject({ status: 0, result: { causes: [] } });
  });

  test('a bundle, which does not show that, is equal to what it was compiled from', async () => {
    await runKpc(['compile', 'ungiven.yaml', '-o', 'bundle', '--allow-empty'], { cwd });
    for (const side of ['ungiven.yaml', 'none.yaml']) {
      expect(await run('diff', 'bundle', side)).toMatchObject({ status: 0 });
      expect(await run('equivalence', side, 'bundle')).toMatchObject({ status: 0 });
    }
  });
});
