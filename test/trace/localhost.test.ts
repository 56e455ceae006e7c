// kube-proxy itself listens for node ports on localhost in nftables mode, where nodePortAddresses names it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';
import { resultOf } from '../support/printed-json.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-localhost-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function manifests(policy: 'Cluster' | 'Local'): string {
  const path = join(scratch, `${policy}.yaml`);
  writeFileSync(
    path,
    `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec:
  type: NodePort
  externalTrafficPolicy: ${policy}
  clusterIP: 10.96.0.7
  clusterIPs: [10.96.0.7, 'fd00:96::7']
  ipFamilies: [IPv4, IPv6]
  ipFamilyPolicy: RequireDualStack
  ports: [{ name: t, port: 80, nodePort: 30080 }, { name: u, port: 53, protocol: UDP, nodePort: 30053 }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-4, namespace: default, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: t, port: 8080 }, { name: u, port: 5353, protocol: UDP }]
endpoints: [{ addresses: [10.244.1.5], nodeName: worker-1 }, { addresses: [10.244.2.5], nodeName: worker-2 }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-6, namespace: default, labels: { kubernetes.io/service-name: web } }
addressType: IPv6
ports: [{ name: t, port: 8080 }, { name: u, port: 5353, protocol: UDP }]
endpoints: [{ addresses: ['fd00:244:1::5'], nodeName: worker-1 }, { addresses: ['fd00:244:2::5'], nodeName: worker-2 }]
---
apiVersion: v1
kind: Node
metadata: { name: worker-1 }
spec: { podCIDR: 10.244.1.0/24, podCIDRs: [10.244.1.0/24, 'fd00:244:1::/64'] }
status: { addresses: [{ type: InternalIP, address: 192.168.50.11 }, { type: InternalIP, address: '2001:db8::11' }] }
`,
  );
  return path;
}

const nftables = ['--proxy-mode', 'nftables', '--cluster-cidr', '10.244.0.0/16,fd00:244::/48'];
const served = [...nftables, '--kubernetes-version', '1.38', '--nodeport-addresses', 'primary,localhost'];

async function trace(
  policy: 'Cluster' | 'Local',
  flags: readonly string[],
  to: string,
  protocol = 'tcp',
  from = 'node',
) {
  const packet = ['--from', from, '--to', to, '--proto', protocol, '--output', 'json'];
  const run = await runKpc(['trace', manifests(policy), ...flags, ...packet]);
  expect(run.status, run.stderr).toBe(0);
  const { verdict, endpoints, sourceAfter } = resultOf(run.stdout).traces[0] as {
    readonly verdict: string;
    readonly endpoints: readonly { readonly address: string; readonly probability: number }[];
    readonly sourceAfter: string;
  };
  return { verdict, endpoints: endpoints.map(({ address, probability }) => [address, probability]), sourceAfter };
}

describe('a node port on localhost', () => {
  test.each([
    ['127.0.0.1:30080', ['10.244.1.5', '10.244.2.5']],
    ['[::1]:30080', ['fd00:244:1::5', 'fd00:244:2::5']],
  ] as const)("TCP to %s gets to a random endpoint, from the node's address", async (to, addresses) => {
    const endpoints = addresses.map((address) => [address, 0.5]);
    expect(await trace('Cluster', served, to)).toEqual({ verdict: 'delivered', endpoints, sourceAfter: 'masqueraded' });
  });

  test('TCP of policy Local gets to an endpoint on the node', async () => {
    expect((await trace('Local', served, '127.0.0.1:30080')).endpoints).toEqual([['10.244.1.5', 1]]);
  });

  test.each([
    ['UDP', served, '127.0.0.1:30053', 'udp', 'refused'],
    ['UDP', served, '[::1]:30053', 'udp', 'refused'],
    ['another loopback address', served, '127.0.0.2:30080', 'tcp', 'local'],
    ['not named', [...nftables, '--kubernetes-version', '1.38'], '127.0.0.1:30080', 'tcp', 'refused'],
    [
      'the gate is off',
      [...nftables, '--kubernetes-version', '1.37', '--nodeport-addresses', 'primary,localhost'],
      '127.0.0.1:30080',
      'tcp',
      'local',
    ],
  ] as const)('%s: %j to %s over %s is %s', async (_, flags, to, protocol, verdict) => {
    expect(await trace('Cluster', flags, to, protocol)).toMatchObject({ verdict, endpoints: [] });
  });

  test('TCP of policy Local without an endpoint on the node: that is why kube-proxy does not listen', async () => {
    const path = manifests('Local');
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('nodeName: worker-1', 'nodeName: worker-2'));
    const { stdout } = await runKpc(['trace', path, ...served, '--from', 'node', '--to', '127.0.0.1:30080', '-q']);
    expect(stdout).toContain(
      'node port 30080: externalTrafficPolicy is Local, but default/web:t has no endpoint on this node',
    );
    expect(stdout).not.toContain('serves no node port');
  });

  test.each(['127.0.0.2', '::1'])('%s is the node itself', async (from) => {
    const to = from === '::1' ? '[::1]:30053' : '127.0.0.1:30053';
    expect(await trace('Cluster', served, to, 'udp', from)).toMatchObject({ verdict: 'refused' });
  });

  test('trace --all and kpc test say the same', async () => {
    const path = manifests('Cluster');
    const all = await runKpc(['trace', path, ...served, '--all', 'web:t', '--output', 'json']);
    const cells = resultOf(all.stdout).traces as readonly {
      readonly from: { readonly column: string };
      readonly to: { readonly address: string };
      readonly verdict: string;
    }[];
    const onLocalhost = cells.filter(
      ({ from, to }) => from.column === 'node' && ['127.0.0.1', '::1'].includes(to.address),
    );
    expect(onLocalhost.map(({ verdict }) => verdict)).toEqual(['delivered', 'delivered']);
    const tests = join(scratch, 'packets.yaml');
    writeFileSync(
      tests,
      `inputs: Cluster.yaml
tests:
  - { from: node, to: '127.0.0.1:30080', expect: [10.244.1.5:8080, 10.244.2.5:8080] }
  - { from: node, to: '127.0.0.1:30053', proto: udp, expect: refused }
`,
    );
    const run = await runKpc(['test', tests, ...served]);
    expect(run.status, run.stdout + run.stderr).toBe(0);
  });

  test('migrate names the cure, and with it nothing of TCP breaks', async () => {
    const migrate = async (...flags: readonly string[]): Promise<string> => {
      const modes = ['--from', 'iptables', '--to', 'nftables', '--kubernetes-version', '1.38'];
      const run = await runKpc(['migrate', manifests('Cluster'), ...modes, ...nftables.slice(2), ...flags]);
      return run.stdout;
    };
    const title = 'Node ports on loopback addresses behave differently';
    const sectionOf = (text: string): string => text.split('\n\n').find((block) => block.startsWith(title)) ?? '';
    const before = sectionOf(await migrate());
    expect(before).toContain('--to 127.0.0.1:30080');
    expect(before).toContain('name localhost in nodePortAddresses');
    const after = sectionOf(await migrate('--nodeport-addresses', 'primary,localhost'));
    expect(after).toContain('--to 127.0.0.1:30053 --proto udp');
    expect(after).not.toContain('--to 127.0.0.1:30080');
  });
});

test('the empty chain that 1.38 leaves where localhost was added changes no answer', async () => {
  const { stdout } = await runKpc(['compile', '-q', '-f', manifests('Cluster'), ...served, '--print', 'nftables']);
  const empty = '$&\n\tchain localhost-nodeport-reject-tcp {\n\t}\n';
  const dumps = [stdout, stdout.replaceAll(/^table ip6? kube-proxy \{$/gm, empty)];
  const answers = [];
  for (const [i, text] of dumps.entries()) {
    const path = join(scratch, `dump-${i}.nft`);
    writeFileSync(path, text);
    const packet = ['--from', 'node', '--to', '127.0.0.1:30080', '--proto', 'tcp', '--output', 'json'];
    const traced = await runKpc(['trace', '-q', path, ...packet]);
    answers.push(resultOf(traced.stdout).traces[0].verdict);
  }
  expect(dumps[1]).not.toBe(dumps[0]);
  expect(answers[1]).toEqual(answers[0]);
});
