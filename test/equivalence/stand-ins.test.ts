import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadInputs } from '../../src/snapshot/files/read-texts.ts';
import { chooseStandIns } from '../../src/ask/equivalence/representatives.ts';
import { projectFolder } from '../support/run-kpc.ts';

const fixture = (name: string): string => join(projectFolder, 'fixtures', name);

async function standInsOf(service: string, nodes: number) {
  const file = [fixture(`${service}/svc.yaml`), fixture('cluster/nodes.yaml')];
  const prepared = await loadInputs({ file, ipFamily: 'auto' });
  const [first] = prepared.nodes.values();
  if (!first) throw new Error('no Node');
  // Nodes without any endpoints, all alike.
  const more = Array.from({ length: nodes }, (_, i) => [`empty-${i}`, first] as const);
  const all = new Map([...prepared.nodes, ...more]);
  return chooseStandIns(all, prepared.cluster, [...all.keys()].sort());
}

test('of 500 nodes that are alike, one is asked', async () => {
  const chosen = await standInsOf('nodeport', 500);
  expect(chosen.filter(({ node }) => node.startsWith('empty-'))).toHaveLength(1);
  expect(chosen.length).toBeLessThan(5);
});

test('nodes with and without endpoints of a Service of policy Local are asked', async () => {
  const chosen = await standInsOf('loadbalancer-local', 0);
  const asked = chosen.map(({ node, only }) => `${node} ${only ? [...only.addresses].join() : 'everything'}`);
  expect(asked[0]).toBe('worker-1 everything');
  expect(asked.length).toBeGreaterThan(1);
});
