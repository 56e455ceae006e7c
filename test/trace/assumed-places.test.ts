// What hangs on what kpc assumed of Nodes: the networks of their Pods, and which of them a Pod runs on.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-places-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const file = join(scratch, name);
  writeFileSync(file, text);
  return file;
}

const workload = `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web, image: web, ports: [{ containerPort: 8080 }] }] } }
`;

function service(policy: string): string {
  return `apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: LoadBalancer, externalTrafficPolicy: ${policy}, selector: { app: web }, ports: [{ port: 80, targetPort: 8080 }] }
`;
}

const before = write('before.yaml', service('Cluster') + workload);
const after = write('after.yaml', service('Local') + workload);
const nodes = ['node-1', 'node-2'].map(
  (name, i) => `---
apiVersion: v1
kind: Node
metadata: { name: ${name} }
spec: { podCIDRs: [10.244.${i}.0/24] }
status: { addresses: [{ type: InternalIP, address: 192.168.0.${i + 1} }] }
`,
);
const withNodes = {
  before: write('before-nodes.yaml', service('Cluster') + workload + nodes.join('')),
  after: write('after-nodes.yaml', service('Local') + workload + nodes.join('')),
};

async function kpc(...args: readonly string[]): Promise<string> {
  const { stdout } = await runKpc([...args, '--kpc-yaml', 'none']);
  return stdout;
}

const iptables = ['--proxy-mode', 'iptables'];

describe.each(['iptables', 'nftables'])('policy Local in mode %s, of which no Node is known', (mode) => {
  const flags = ['--proxy-mode', mode];

  test('keeps pods that kube-proxy of a usual cluster recognises', async () => {
    const said = await kpc('diff', before, after, ...flags);
    expect(said).not.toMatch(/from (?!outside)[^:]*: delivered → dropped/);
    expect(await kpc('trace', after, '--from', 'pod', '--to', '192.0.2.4:80', ...flags)).toContain('delivered to 1');
  });

  test('drops clients on nodes without a Pod, and says so wherever it says that it drops them', async () => {
    const place = 'dropped on nodes without a Pod of web';
    expect(await kpc('diff', before, after, ...flags)).toContain(`from outside: delivered → ${place}`);
    expect(await kpc('trace', after, '--from', 'external', '--to', '192.0.2.4:80', ...flags)).toContain(`${place}:`);
    expect(await kpc('trace', after, '--all', 'web', ...flags)).toContain(place);
    expect(await kpc('describe', after, 'web', ...flags)).toContain(place);
    const tests = write(
      'tests.yaml',
      `inputs: after.yaml\nnode: node-1\ntests: [{ from: external, to: "192.0.2.4:80", expect: delivered }]\n`,
    );
    expect(await kpc('test', tests, '--assume', ...flags)).toContain(`but the packet is ${place}`);
  });
});

test('a mode change says where it drops clients', async () => {
  expect(await kpc('migrate', '-f', after, '--to', 'nftables')).toContain('dropped on nodes without a Pod of web');
});

test('where the Nodes are known, a place is no assumption of all, and the line names what keeps pods out', async () => {
  const said = await kpc('diff', withNodes.before, withNodes.after, '--node', 'node-1', ...iptables);
  expect(said).toMatch(/from pods: delivered → dropped.*no setting tells kube-proxy which clients are pods/);
});

test.each([
  ['--cluster-cidr', '10.9.0.0/16'],
  ['--detect-local-mode', 'NodeCIDR'],
])('%s is taken as it is', async (...flag) => {
  const settings = JSON.parse(
    await kpc('compile', '-f', after, '--assume', '--node', 'node-1', '--print', 'manifest', ...flag, ...iptables),
  ) as {
    settings: { clusterCIDRs?: readonly string[] };
  };
  expect(settings.settings.clusterCIDRs ?? []).not.toContain('10.244.0.0/16');
});
