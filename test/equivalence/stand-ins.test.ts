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
  const { standIns: chosen, represented } = await standInsOf('nodeport', 500);
  expect(chosen.filter(({ node }) => node.startsWith('empty-'))).toHaveLength(1);
  expect(chosen.length).toBeLessThan(5);
  const asked = chosen.find(({ node }) => node.startsWith('empty-'))?.node;
  const empty = represented.filter(({ node }) => node.startsWith('empty-'));
  expect(empty).toHaveLength(500);
  expect(new Set(empty.flatMap(({ by }) => by))).toEqual(new Set([asked]));
  expect(new Set(represented.flatMap(({ by }) => by))).toEqual(new Set(chosen.map(({ node }) => node)));
});

test('nodes with and without endpoints of a Service of policy Local are asked', async () => {
  const { standIns: chosen, represented } = await standInsOf('loadbalancer-local', 0);
  const asked = chosen.map(({ node, only }) => `${node} ${only ? [...only.addresses].join() : 'everything'}`);
  expect(asked[0]).toBe('worker-1 everything');
  expect(asked.length).toBeGreaterThan(1);
  // Of a node that differs in one Service, the rest is asked of another.
  for (const { node, only } of chosen) {
    expect(represented).toContainEqual({ node, by: only ? ['worker-1', node] : [node] });
  }
});
