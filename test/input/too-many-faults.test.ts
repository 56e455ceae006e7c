import { expect, test } from 'vitest';
import { collectInputs } from '../../src/input/read-inputs.ts';
import { TextFile } from '../../src/input/documents/text-file.ts';

const service = 'apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: ';
const slice = 'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\naddressType: IPv4\n';

test.each([
  ['ports', service, '{ports: [ITEMS]}', '1'],
  ['externalIPs', service, '{externalIPs: [ITEMS]}', '1'],
  ['endpoints', slice, 'endpoints: [ITEMS]\nports: []', 'a'],
  ['podIPs', 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n', 'status: {podIPs: [ITEMS]}', '1'],
])('a list of nothing but wrong items is told a few times, and its object left out: %s', (_, head, rest, item) => {
  const items = Array.from({ length: 2000 }, () => item).join();
  const file = new TextFile('in.yaml', `${head}${rest.replace('ITEMS', items)}\n`);
  const inputs = collectInputs({ files: [file], diagnostics: [] }, { workloads: false, namespace: undefined });
  const errors = inputs.diagnostics.filter(({ severity }) => severity === 'error');
  expect(errors.length).toBeGreaterThan(100);
  expect(errors.length).toBeLessThan(1000);
  expect([inputs.services, inputs.slices, inputs.pods]).toEqual([[], [], []]);
});
