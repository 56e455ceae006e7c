import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runKpc } from '../../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-names-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { clusterIP: '10.96.0.10', ports: [{ port: 80 }] },
};

const nodesIn = (fleet: string) => readdirSync(fleet).filter((name) => !name.startsWith('.'));

function writeInput(nodes: readonly string[]): string {
  const path = join(scratch, `input-${nodes.length}-${nodes[0]?.length}.json`);
  const objects = [service, ...nodes.map((name) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } }))];
  writeFileSync(path, objects.map((object) => JSON.stringify(object)).join('\n'));
  return path;
}

test('nodes called as files of a bundle are, make a fleet like any other', async () => {
  const nodes = ['con', 'ip.batch', 'manifest.json', 'services.json', 'worker-1'];
  const input = writeInput(nodes);
  const fleet = join(scratch, 'fleet');
  for (const words of [/5 written, 0 unchanged/, /0 written, 5 unchanged/]) {
    const run = await runKpc(['compile', '-f', input, '--all-nodes', '-o', fleet]);
    expect(run.stderr).toMatch(words);
    expect(run.status).toBe(0);
  }
  expect(nodesIn(fleet)).toEqual(nodes);
  expect(await runKpc(['compile', '-f', input, '--all-nodes', '--check', fleet])).toMatchObject({ status: 0 });
  const compared = await runKpc(['diff', join(fleet, 'manifest.json'), join(fleet, 'worker-1')]);
  expect(compared).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('node: manifest.json → worker-1\n\nNo difference ') as string,
  });
  expect((await runKpc(['diff', fleet, join(fleet, 'worker-1')])).stderr).toContain(
    'holds the bundles of several nodes',
  );
  const fewer = writeInput(['worker-1']);
  const pruned = await runKpc(['compile', '-f', fewer, '--all-nodes', '--prune', '-o', fleet]);
  expect(pruned.stderr).toContain('Removed the folders con, ip.batch, manifest.json, services.json');
  expect(nodesIn(fleet)).toEqual(['worker-1']);
});

test.each(['.', '..', 'CON', 'a/b', '../x', '.hidden', 'a\nb', '-o'])(
  'no folder is written for a node called %j',
  async (name) => {
    const fleet = join(scratch, 'never');
    const { status, stderr } = await runKpc([
      'compile',
      '-f',
      writeInput([name, 'worker-1']),
      '--all-nodes',
      '-o',
      fleet,
    ]);
    expect(status).toBe(2);
    expect(stderr).toContain('bad-value');
    expect(() => readdirSync(fleet)).toThrow(/ENOENT/);
  },
);

test('a bundle of one node is still not replaced by a fleet', async () => {
  const one = join(scratch, 'one');
  const input = writeInput(['worker-1', 'worker-2', 'worker-3']);
  expect((await runKpc(['compile', '-f', input, '--node', 'worker-1', '-o', one])).status).toBe(0);
  const { status, stderr } = await runKpc(['compile', '-f', input, '--all-nodes', '-o', one]);
  expect(status).toBe(2);
  expect(stderr).toContain('is the bundle of one node');
});
