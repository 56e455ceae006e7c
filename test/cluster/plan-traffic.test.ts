import { describe, expect, test } from 'vitest';
import type { ServicePort } from '../../src/cluster/model.ts';
import { planTraffic, admitsNode, admittedSources } from '../../src/cluster/plan-traffic.ts';
import { address, endpoint, goingAway, network, remote, servicePort, worker } from '../modes/iptables/compile.ts';

const here = endpoint('10.244.1.5');
const there = remote('10.244.2.5');

/** The plan of a port on worker-1 in zone-a. */
function plan(port: Partial<ServicePort> = {}) {
  return planTraffic(servicePort(port), worker);
}

function texts(list: readonly { readonly address: { readonly text: string } }[]): readonly string[] {
  return list.map(({ address: { text } }) => text);
}

describe('what is taken for a Service port', () => {
  test('is its cluster IP, external IPs and load balancer IPs, in the order of the Service', () => {
    const traffic = plan({
      externalIPs: [address('198.51.100.2'), address('198.51.100.1')],
      loadBalancerIPs: [address('203.0.113.9'), address('203.0.113.7')],
    });
    expect(traffic.clusterIP).toMatchObject({ address: { text: '10.96.0.10' }, protocol: 'TCP', port: 80 });
    expect(texts(traffic.externalIPs)).toEqual(['198.51.100.2', '198.51.100.1']);
    expect(texts(traffic.loadBalancerIPs)).toEqual(['203.0.113.9', '203.0.113.7']);
  });

  test('is its node port, and apart from that its health check port', () => {
    expect(plan()).toMatchObject({ nodePort: undefined, healthCheck: undefined });
    expect(plan({ nodePort: 30080, healthCheckNodePort: 32000 })).toMatchObject({
      nodePort: { protocol: 'TCP', port: 30080 },
      healthCheck: { port: 32000 },
    });
  });

  test('says where in the Service it is written', () => {
    const place = (path: string) => ({ file: path, locate: () => ({ file: path, line: 1, column: 1 }) });
    const places = {
      port: place('port'),
      clusterIP: place('clusterIP'),
      nodePort: place('nodePort'),
      externalIP: (index: number) => place(`externalIPs[${index}]`),
      ingress: (index: number) => place(`ingress[${index}]`),
      sourceRange: (index: number) => place(`sourceRanges[${index}]`),
    };
    const traffic = plan({
      places,
      externalIPs: [address('198.51.100.1'), address('198.51.100.2')],
      loadBalancerIPs: [address('203.0.113.7')],
      sourceRanges: [network('10.0.0.0/8')],
      nodePort: 30080,
      healthCheckNodePort: 32000,
    });
    expect(traffic.clusterIP.origin).toMatchObject({ servicePort: 'shop/web', place: { file: 'clusterIP' } });
    expect(traffic.externalIPs[1]?.origin.place?.file).toBe('externalIPs[1]');
    expect(traffic.loadBalancerIPs[0]?.origin.place?.file).toBe('ingress[0]');
    expect(traffic.nodePort?.origin.place?.file).toBe('nodePort');
    expect(traffic.healthCheck?.origin.place?.file).toBe('port');
    expect(traffic.firewall?.sourceRanges[0]?.origin.place?.file).toBe('sourceRanges[0]');
  });
});

describe('packets to the cluster IP', () => {
  test('go to the endpoints of all nodes under policy Cluster', () => {
    const traffic = plan({ endpoints: [here, there] });
    expect(traffic.internal).toEqual({ policy: 'Cluster', refusal: undefined });
    expect(texts(traffic.clusterEndpoints)).toEqual(['10.244.1.5', '10.244.2.5']);
    expect(traffic.localEndpoints).toEqual([]);
  });

  test("go to the node's own endpoints under policy Local", () => {
    const traffic = plan({ internalPolicyLocal: true, endpoints: [here, there] });
    expect(traffic.internal).toEqual({ policy: 'Local', refusal: undefined });
    expect(texts(traffic.localEndpoints)).toEqual(['10.244.1.5']);
    expect(traffic.clusterEndpoints).toEqual([]);
    expect(texts(traffic.reachable)).toEqual(['10.244.1.5']);
  });

  test('are dropped under policy Local where only other nodes have endpoints', () => {
    const traffic = plan({ internalPolicyLocal: true, endpoints: [there] });
    expect(traffic).toMatchObject({
      hasEndpoints: true,
      internal: { policy: 'Local', refusal: { reason: 'no-local-endpoints', answer: 'drop' } },
    });
  });

  test('are rejected where no node has endpoints, under either policy', () => {
    for (const internalPolicyLocal of [false, true]) {
      const dead = endpoint('10.244.1.6', { ready: false, serving: false });
      expect(plan({ internalPolicyLocal, endpoints: [dead] })).toMatchObject({
        hasEndpoints: false,
        internal: { refusal: { reason: 'no-endpoints', answer: 'reject' } },
      });
    }
  });
});

describe('packets from outside', () => {
  const nodePort = 30080;

  test('have no path where the Service has nothing but a cluster IP', () => {
    expect(plan().external.isUsed).toBe(false);
  });

  test('have a path by a node port, an external IP or a load balancer IP, and by external IPs that are ignored', () => {
    expect(plan({ nodePort }).external.isUsed).toBe(true);
    expect(plan({ externalIPs: [address('198.51.100.1')] }).external.isUsed).toBe(true);
    expect(plan({ loadBalancerIPs: [address('203.0.113.7')] }).external.isUsed).toBe(true);
    expect(plan({ hasIgnoredExternalIPs: true }).external.isUsed).toBe(true);
  });

  test('are dropped under policy Local without local endpoints, while the short cut of the node and its pods stays', () => {
    const traffic = plan({ nodePort, externalPolicyLocal: true, endpoints: [there] });
    expect(traffic.external).toEqual({
      policy: 'Local',
      refusal: { reason: 'no-local-endpoints', answer: 'drop' },
      isUsed: true,
    });
    expect(traffic.internal.refusal).toBeUndefined();
    expect(texts(traffic.clusterEndpoints)).toEqual(['10.244.2.5']);
  });

  test('are rejected without endpoints, and no path is left', () => {
    expect(plan({ nodePort, externalPolicyLocal: true, endpoints: [] }).external).toEqual({
      policy: 'Local',
      refusal: { reason: 'no-endpoints', answer: 'reject' },
      isUsed: false,
    });
  });

  test('under policy Local go to other endpoints than those of the cluster IP: both lists stand, each endpoint once', () => {
    const leaving = endpoint('10.244.1.6', goingAway);
    const traffic = plan({ nodePort, externalPolicyLocal: true, endpoints: [leaving, there] });
    expect(texts(traffic.clusterEndpoints)).toEqual(['10.244.2.5']);
    expect(texts(traffic.localEndpoints)).toEqual(['10.244.1.6']);
    expect(texts(traffic.reachable)).toEqual(['10.244.1.6', '10.244.2.5']);
  });
});

describe('source ranges', () => {
  const loadBalancerIPs = [address('203.0.113.9'), address('203.0.113.7')];
  const sourceRanges = [network('192.168.0.0/24'), network('10.0.0.0/8')];

  test('guard the load balancer IPs, and nothing where the port has none', () => {
    expect(texts(plan({ loadBalancerIPs, sourceRanges }).firewall?.guarded ?? [])).toEqual([
      '203.0.113.9',
      '203.0.113.7',
    ]);
    expect(plan({ sourceRanges, nodePort: 30080 }).firewall).toBeUndefined();
    expect(plan({ loadBalancerIPs }).firewall).toBeUndefined();
  });

  test('stand whether or not there are endpoints', () => {
    expect(plan({ loadBalancerIPs, sourceRanges, endpoints: [] }).firewall).toBeDefined();
  });

  test('admit a client that is in one, in the order of the Service', () => {
    const { firewall } = plan({ loadBalancerIPs, sourceRanges });
    const admitted = firewall ? admittedSources(firewall, false) : [];
    expect(admitted.map(({ source }) => source.text)).toEqual(['192.168.0.0/24', '10.0.0.0/8']);
  });

  test('admit the node by the load balancer IPs, after the ranges, where its own address is in one', () => {
    const { firewall } = plan({ loadBalancerIPs, sourceRanges });
    if (!firewall) throw new Error('no firewall');
    expect(admitsNode(firewall, address('192.168.0.1'))).toBe(true);
    expect(admitsNode(firewall, address('192.168.1.1'))).toBe(false);
    expect(admittedSources(firewall, true).map(({ source }) => source.text)).toEqual([
      '192.168.0.0/24',
      '10.0.0.0/8',
      '203.0.113.9',
      '203.0.113.7',
    ]);
  });
});

describe('endpoints on the node', () => {
  test('may reach themselves: those in use are named apart from those that are not', () => {
    const dead = endpoint('10.244.1.6', { ready: false, serving: false });
    const traffic = plan({ endpoints: [here, dead, there] });
    expect(texts(traffic.onNode)).toEqual(['10.244.1.5', '10.244.1.6']);
    expect(texts(traffic.hairpin)).toEqual(['10.244.1.5']);
  });

  test('are none where the node has no name', () => {
    const traffic = planTraffic(servicePort({ endpoints: [endpoint('10.244.1.5', { nodeName: '' })] }), {
      name: '',
      zone: '',
    });
    expect(traffic).toMatchObject({ onNode: [], hairpin: [] });
  });
});

describe('session affinity', () => {
  test('keeps a client with its endpoint for some seconds', () => {
    expect(plan().affinitySeconds).toBeUndefined();
    expect(plan({ affinitySeconds: 10800 }).affinitySeconds).toBe(10800);
  });
});
