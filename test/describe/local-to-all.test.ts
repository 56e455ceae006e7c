import { expect, test } from 'vitest';
import { runKpc } from '../support/run-kpc.ts';

/** A load balancer of policy Local; node-1 runs none of its endpoints. */
const manifests = JSON.stringify({
  apiVersion: 'v1',
  kind: 'List',
  items: [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'shop' },
      spec: {
        type: 'LoadBalancer',
        clusterIP: '10.96.0.20',
        externalTrafficPolicy: 'Local',
        healthCheckNodePort: 31999,
        ports: [{ port: 80, nodePort: 30080 }],
      },
      status: { loadBalancer: { ingress: [{ ip: '203.0.113.7' }] } },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      ports: [{ port: 8080 }],
      endpoints: [
        { addresses: ['10.244.2.5'], nodeName: 'node-2' },
        { addresses: ['10.244.2.6'], nodeName: 'node-2', conditions: { ready: false } },
      ],
    },
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-1' },
      status: { addresses: [{ type: 'InternalIP', address: '192.168.50.11' }] },
    },
  ],
});

async function describeWeb(mode: string): Promise<string> {
  const { status, stdout } = await runKpc(
    ['describe', 'web', '--rules', '-f', '-', '--node', 'node-1', '--proxy-mode', mode],
    {
      stdin: manifests,
    },
  );
  expect(status).toBe(0);
  return stdout;
}

test('an endpoint that IPVS uses for policy Local, for want of one on the node, is not said to be unused', async () => {
  const text = await describeWeb('ipvs');
  expect(text).toContain('virtual server TCP 203.0.113.7:80 with 1 real server, -s rr');
  expect(text).toContain(
    'no endpoint on this node: in IPVS mode traffic with policy Local goes to endpoints on all nodes',
  );
  expect(text).toMatch(/10\.244\.2\.5:8080 {2}node-2 {2}used(?: {2}\(|$)/m);
  expect(text).toContain('10.244.2.6:8080  node-2  not used: not ready');
  expect(text).not.toContain('it runs on another node');
});

test.each(['iptables', 'nftables'])('in %s mode policy Local does not use it', async (mode) => {
  expect(await describeWeb(mode)).toContain(
    'for policy Cluster used; for policy Local not used: it runs on another node',
  );
});
