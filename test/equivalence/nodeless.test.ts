// Node ports of manifests that name no Node: every node has an address, if the input shows none.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { findingsOf, resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const scratch = mkdtempSync(join(tmpdir(), 'kpc-nodeless-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function write(nodePort: number, ipFamilies: readonly ('IPv4' | 'IPv6')[] = ['IPv4']): string {
  const file = join(scratch, `${nodePort}-${ipFamilies.join('-')}.json`);
  const clusterIPs = ipFamilies.map((family) => (family === 'IPv4' ? '10.96.0.10' : 'fd00:10:96::10'));
  const slices = ipFamilies.map((addressType) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `web-${addressType.toLowerCase()}`, labels: { 'kubernetes.io/service-name': 'web' } },
    addressType,
    ports: [{ port: 8080 }],
    endpoints: [{ addresses: [addressType === 'IPv4' ? '10.244.0.5' : 'fd00:10:244::5'], nodeName: 'worker-1' }],
  }));
  const ports = [{ port: 80, targetPort: 8080, nodePort }];
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: {
      type: 'NodePort',
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies,
      ipFamilyPolicy: 'PreferDualStack',
      ports,
    },
  };
  writeFileSync(file, [service, ...slices].map((object) => JSON.stringify(object)).join('\n---\n'));
  return file;
}

interface Report {
  readonly causes: readonly {
    readonly classes: number;
    readonly effects: readonly {
      readonly target: string;
      readonly from: string;
      readonly to: string;
      readonly senders: readonly string[];
      readonly example: { readonly to: string };
    }[];
  }[];
}

async function compare(args: readonly string[]) {
  const { stdout } = await runKpc(['equivalence', ...args, '-q', '--output', 'json']);
  const { causes } = resultOf(stdout) as Report;
  return causes
    .flatMap(({ effects }) => effects)
    .map(({ target, from, to, example }) => `${target} ${example.to}: ${from} → ${to}`)
    .sort();
}

const moved = [
  'node-port node:30080: delivered → left to the node itself',
  'node-port node:30081: left to the node itself → delivered',
];

describe.each(['ipvs', 'iptables', 'nftables'])('without a Node, in %s mode', (mode) => {
  test('another node port is a difference for all senders', async () => {
    const found = await compare([write(30080), write(30081), '--proxy-mode', mode]);
    expect(found.filter((each) => !each.includes('127.0.0.1'))).toEqual(moved);
  });

  test('the addresses of both families are two', async () => {
    const sides = [30080, 30081].map((port) => write(port, ['IPv4', 'IPv6']));
    const { stdout } = await runKpc(['equivalence', ...sides, '--proxy-mode', mode, '-q', '--output', 'json']);
    const { causes } = resultOf(stdout) as Report;
    const classes = causes.reduce((sum, each) => sum + each.classes, 0);
    // Five senders of each family, there and back, and of IPv4 the node's own loopback in iptables mode.
    expect(classes).toBe(mode === 'iptables' ? 18 : 16);
  });

  test('a port of the node is asked by its number', async () => {
    const args = ['trace', write(30080), '--proxy-mode', mode, '--from', 'external', '-q', '--output', 'json'];
    const verdictOf = async (to: string) =>
      resultOf((await runKpc([...args, '--to', to])).stdout).traces[0].verdict as string;
    expect([await verdictOf('node:30080'), await verdictOf('node:30081')]).toEqual(['delivered', 'local']);
    const wrong = await runKpc([...args, '--to', 'node:70000']);
    expect(wrong.stdout).toContain('"port-range"');
  });

  test('networks to listen in decide nothing', async () => {
    const args = [write(30080), write(30081), '--proxy-mode', mode, '--nodeport-addresses', '192.0.2.0/24'];
    expect(await compare(args)).toEqual([]);
  });
});

test("manifests without Nodes take the other side's, which is said", async () => {
  const bare = write(30_085);
  const withNodes = join(scratch, 'with-nodes.json');
  const nodes = ['worker-1', 'worker-2'].map((name, at) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { podCIDRs: [`10.244.${at}.0/24`] },
    status: { addresses: [{ type: 'InternalIP', address: `192.0.2.1${at}` }], nodeInfo: { kubeletVersion: 'v1.34.0' } },
  }));
  const texts = [readFileSync(bare, 'utf8'), ...nodes.map((node) => JSON.stringify(node))];
  writeFileSync(withNodes, texts.join('\n---\n'));
  const mode = ['--proxy-mode', 'nftables'];
  for (const args of [
    ['equivalence', bare, withNodes, ...mode],
    ['equivalence', withNodes, bare, ...mode],
    ['equivalence', bare, 'nftables', '-f', withNodes],
    ['equivalence', 'nftables', withNodes, '-f', bare],
  ]) {
    const { status, stdout } = await runKpc([...args, '--output', 'json']);
    expect(status, args.join(' ')).toBe(0);
    expect(resultOf(stdout)).toMatchObject({ nodes: 2, unknown: 0, unknownOnOne: 0 });
    expect(findingsOf(stdout, 'reading')).toContainEqual(
      expect.objectContaining({ arguments: { problem: 'taken-nodes', names: ['worker-1', 'worker-2'] } }),
    );
  }
});
