// What two sides' Services decide is no cause of a mode, a release or a setting.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-changed-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const base = { name: 'web', node: '', type: 'NodePort', policy: 'Cluster', targetPort: '8080', replicas: 2 };

function write(name: string, changes: Partial<typeof base> = {}): string {
  const { name: service, node, type, policy, targetPort, replicas } = { ...base, ...changes };
  const nodePort = type === 'NodePort' ? ', nodePort: 30080' : '';
  const text = `apiVersion: v1
kind: Service
metadata: { name: ${service} }
spec: { type: ${type}, internalTrafficPolicy: ${policy}, clusterIP: 10.96.0.10, selector: { app: web }, ports: [{ port: 80, targetPort: ${targetPort}${nodePort} }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { replicas: ${replicas}, selector: { matchLabels: { app: web } }, template: { metadata: { labels: { app: web } }, spec: { ${node === '' ? '' : `nodeName: ${node}, `}containers: [{ name: c, image: c, ports: [{ containerPort: 8080 }] }] } } }
`;
  const file = join(scratch, `${name}.yaml`);
  writeFileSync(file, text);
  return file;
}

const old = write('old');

describe.each(['iptables', 'nftables', 'ipvs'])('in %s mode', (mode) => {
  const compare = async (command: 'equivalence' | 'diff', from: string, to: string) => {
    const { stdout } = await runKpc([command, '-q', from, to, '--proxy-mode', mode, '--output', 'json']);
    return resultOf(stdout);
  };

  test.each([
    ['one-sided', { name: 'site', type: 'ClusterIP' }],
    ['service-addresses', { type: 'ClusterIP' }],
    ['service-endpoints', { node: 'node-1' }],
    ['service-endpoints', { targetPort: 'nothing' }],
    ['service-fields', { policy: 'Local' }],
  ] as const)('the cause is %s', async (cause, changes) => {
    const { causes } = await compare('equivalence', old, write(`${mode}-${cause}`, changes));
    expect(causes.map((each: { readonly cause: string }) => each.cause)).toEqual([cause]);
  });

  test('one assumed Pod: policy Local loses clients of the other assumed Node, whichever is asked', async () => {
    const to = write(`${mode}-one-local`, { replicas: 1, policy: 'Local', type: 'ClusterIP' });
    const single = write(`${mode}-one-cluster`, { replicas: 1, type: 'ClusterIP' });
    for (const node of ['node-1', 'node-2']) {
      const { stdout } = await runKpc([
        'diff',
        '-q',
        single,
        to,
        '--proxy-mode',
        mode,
        '--node',
        node,
        '--output',
        'json',
      ]);
      const { packets } = resultOf(stdout);
      expect(packets[0]).toMatchObject({ severity: 'breaks', target: 'cluster-ip', services: ['default/web'] });
    }
    const { causes } = await compare('equivalence', single, to);
    expect(causes[0]).toMatchObject({ cause: 'service-fields', severity: 'breaks' });
  });
});

describe.each(['iptables', 'nftables', 'ipvs'])('in %s mode, an address that the node lost', (mode) => {
  const [kept, lost] = ['192.168.50.11', '203.0.113.11'];

  const writeNode = (name: string, addresses: readonly string[]): string => {
    const objects = [
      {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: 'n1' },
        spec: { podCIDR: '10.244.1.0/24' },
        status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
      },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'web' },
        spec: {
          type: 'NodePort',
          externalTrafficPolicy: 'Local',
          clusterIP: '10.96.10.1',
          ports: [{ port: 80, nodePort: 30080 }],
        },
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'web', labels: { 'kubernetes.io/service-name': 'web' } },
        addressType: 'IPv4',
        ports: [{ port: 80 }],
        endpoints: [{ addresses: ['10.244.1.10'], nodeName: 'n1' }],
      },
    ];
    const file = join(scratch, `${mode}-${name}.json`);
    writeFileSync(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
    return file;
  };

  test('is the cause, whatever the policy and the sender', async () => {
    const sides = [writeNode('two', [kept, lost]), writeNode('one', [kept])];
    const flags = ['--node', 'n1', '--proxy-mode', mode, '--output', 'json'];
    const { stdout } = await runKpc(['equivalence', '-q', ...sides, ...flags]);
    const causes = resultOf(stdout).causes as readonly { readonly cause: string }[];
    expect(causes.map(({ cause }) => cause)).toEqual(['node-addresses']);
  });
});
