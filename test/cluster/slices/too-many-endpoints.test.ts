import { expect, test } from 'vitest';
import { runKpc } from '../../support/run-kpc.ts';

const workload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 20000
  selector: {matchLabels: {app: x}}
  template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c}]}}
`;

test('Services that multiply the Pods of one Deployment are refused before an endpoint is made', async () => {
  const services = Array.from({ length: 60 }, (_, i) => {
    const spec = `{clusterIP: 10.96.0.${i + 1}, selector: {app: x}, ports: [{port: 80}]}`;
    return `---\napiVersion: v1\nkind: Service\nmetadata: {name: s${i}}\nspec: ${spec}\n`;
  });
  const args = ['compile', '-f', '-', '--node', 'a', '--assume-endpoints=10.0.0.0/8'];
  const { status, stderr } = await runKpc(args, { stdin: workload + services.join('') });
  expect({ status, stderr }).toMatchObject({ status: 2, stderr: expect.stringContaining('[too-many-pods]') });
  expect(stderr).toContain('add up to 1200000 Pods');
});
