// By which interfaces senders arrive, and which senders exist, when a change moves addresses, Pods' networks or interfaces.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resultOf } from '../support/printed-json.ts';
import { runKpc } from '../support/run-kpc.ts';

const cwd = mkdtempSync(join(tmpdir(), 'kpc-arriving-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

interface Side {
  readonly service: object;
  readonly endpoints: readonly (readonly [address: string, node: string])[];
  readonly node: { readonly address: string; readonly podCIDR?: string };
  readonly settings: object;
}

function write(name: string, { service, endpoints, node, settings }: Side): void {
  const objects = [
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1' },
      spec: { podCIDR: node.podCIDR },
      status: { addresses: [{ type: 'InternalIP', address: node.address }] },
    },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, ...service },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      ports: [{ port: 8080 }],
      endpoints: endpoints.map(([address, nodeName]) => ({ addresses: [address], nodeName })),
    },
    { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', ...settings },
  ];
  writeFileSync(join(cwd, name), objects.map((each) => JSON.stringify(each)).join('\n---\n'));
}

interface PacketsOfSenders {
  readonly target: string;
  readonly severity: string;
  readonly senders: readonly string[];
  readonly example: { readonly from: string; readonly interface?: string };
}

async function compare(from: Side, to: Side): Promise<readonly PacketsOfSenders[]> {
  write('from.yaml', from);
  write('to.yaml', to);
  const { stdout } = await runKpc(['diff', 'from.yaml', 'to.yaml', '--node', 'n1', '-q', '--output', 'json'], { cwd });
  return (resultOf(stdout) as { packets: readonly PacketsOfSenders[] }).packets;
}

const port = { port: 80, targetPort: 8080 };

test.each(['iptables', 'nftables'])(
  '%s: an endpoint with the address of a renumbered Node never arrives',
  async (mode) => {
    const on = (address: string): Side => ({
      service: { spec: { clusterIP: '10.96.0.90', internalTrafficPolicy: 'Local', ports: [port] } },
      endpoints: [[address, 'n1']],
      node: { address },
      settings: { mode },
    });
    const found = await compare(on('192.168.50.11'), on('192.168.50.21'));
    const ofService = found.filter(({ target }) => target === 'cluster-ip');
    expect(ofService.map(({ severity, senders }) => [severity, senders])).toEqual([['changes', ['the node itself']]]);
  },
);

test.each([
  { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: 'br7' } },
  { detectLocalMode: 'InterfaceNamePrefix', detectLocal: { interfaceNamePrefix: 'br' } },
])('$detectLocalMode: pods arrive by the interface that it names, and nothing else does', async (detection) => {
  const spec = { type: 'LoadBalancer', clusterIP: '10.96.0.80', externalTrafficPolicy: 'Local' };
  const by = (settings: object): Side => ({
    service: {
      spec: { ...spec, healthCheckNodePort: 32000, ports: [{ ...port, nodePort: 30080 }] },
      status: { loadBalancer: { ingress: [{ ip: '203.0.113.50' }] } },
    },
    endpoints: [
      ['10.244.1.5', 'n1'],
      ['10.244.2.5', 'n2'],
    ],
    node: { address: '192.168.50.11' },
    settings: { mode: 'iptables', clusterCIDR: '10.244.0.0/16', ...settings },
  });
  const found = await compare(by({}), by(detection));
  // Pods of other nodes lose the way of local pods; those of this node keep it.
  expect(found.map(({ target, senders, example }) => [target, ...senders, example.interface])).toEqual([
    ['node-port', 'a pod on another node', 'eth0'],
    ['node-port', 'an endpoint of the Service on another node', 'eth0'],
  ]);
});

test('pods are told apart by their network if the change moves it', async () => {
  const within = (podCIDR: string): Side => ({
    service: { spec: { clusterIP: '10.96.0.10', ports: [port] } },
    endpoints: [['10.244.2.5', 'n2']],
    node: { address: '192.168.50.11', podCIDR },
    settings: { mode: 'nftables', detectLocalMode: 'NodeCIDR' },
  });
  const found = await compare(within('10.244.1.0/24'), within('10.244.9.0/24'));
  expect(found.map(({ senders, example }) => [...senders, example.interface])).toEqual([
    ['a pod on this node in 10.244.1.0/24', 'cni0'],
    ['a pod on this node in 10.244.9.0/24', 'cni0'],
  ]);
});
