import { expect, test } from 'vitest';
import { inputOf, service } from '../cluster/slices/cluster-objects.ts';
import { findingsOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

test('an assumed health check node port is marked, and counted as what it is', async () => {
  const ports = [{ port: 80, nodePort: 30_080 }];
  const spec = { type: 'LoadBalancer', clusterIP: '10.96.0.10', externalTrafficPolicy: 'Local', ports };
  const stdin = inputOf(service('web', spec));
  const { stdout } = await runKpc(['describe', '-', '--output', 'json'], { stdin });
  const [assumed] = findingsOf(stdout, 'assumed');
  const values = assumed?.arguments['values'] as readonly { readonly what: string; readonly count: number }[];
  expect(values).toContainEqual({ what: 'healthCheckNodePort', count: 1, from: [] });
  expect(values.map(({ what }) => what)).not.toContain('nodePort');
  const described = await runKpc(['describe', 'web', '-f', '-'], { stdin });
  expect(described.stdout).toMatch(/health check node port \d+ \(assumed\)/);
  expect(described.stdout).not.toContain('30080 (assumed)');
});
