import { describe, expect, test } from 'vitest';
import type { ProxySettings } from '../../../src/cluster/objects.ts';
import {
  address,
  compile,
  endpoint,
  goingAway,
  network,
  remote,
  rules,
  serviceChainPrefixes,
  servicePort,
  worker,
} from './compile.ts';

const local = endpoint('10.244.1.5');
const elsewhere = remote('10.244.2.5');

/** The first rule for the cluster IP of a Service port with one endpoint. */
function firstOfCluster(settings: Partial<ProxySettings>): string | undefined {
  return rules(compile([servicePort()], settings), 'nat', 'KUBE-SVC')?.[0];
}

describe('a cluster IP', () => {
  test('leads to the endpoints, which each have an equal chance', () => {
    const state = compile([servicePort({ endpoints: [local, endpoint('10.244.1.6'), elsewhere] })]);
    expect(rules(state, 'nat', 'KUBE-SERVICES')?.[0]).toBe(
      '-m comment --comment "shop/web cluster IP" -m tcp -p tcp -d 10.96.0.10 --dport 80 -j KUBE-SVC',
    );
    expect(rules(state, 'nat', 'KUBE-SVC')).toEqual([
      '-m comment --comment "shop/web cluster IP" -m tcp -p tcp -d 10.96.0.10 --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ',
      '-m comment --comment "shop/web -> 10.244.1.5:8080" -m statistic --mode random --probability 0.3333333333 -j KUBE-SEP(10.244.1.5:8080)',
      '-m comment --comment "shop/web -> 10.244.1.6:8080" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP(10.244.1.6:8080)',
      '-m comment --comment "shop/web -> 10.244.2.5:8080" -j KUBE-SEP(10.244.2.5:8080)',
    ]);
  });

  test('an endpoint’s chain changes the destination, and masquerades an endpoint that reaches itself', () => {
    const state = compile([servicePort({ portName: 'http' })]);
    expect(rules(state, 'nat', 'KUBE-SEP(10.244.1.5:8080)')).toEqual([
      '-m comment --comment shop/web:http -s 10.244.1.5 -j KUBE-MARK-MASQ',
      '-m comment --comment shop/web:http -m tcp -p tcp -j DNAT --to-destination 10.244.1.5:8080',
    ]);
  });

  test('in IPv6 too, with brackets where a port follows', () => {
    const state = compile(
      [servicePort({ family: 'ipv6', clusterIP: address('fd00:96::a'), endpoints: [endpoint('fd00:244::5')] })],
      { clusterCIDRs: ['10.244.0.0/16', 'fd00:244::/56'] },
    );
    expect(rules(state, 'nat', 'KUBE-SVC', 'ipv6')).toEqual([
      '-m comment --comment "shop/web cluster IP" -m tcp -p tcp -d fd00:96::a --dport 80 ! -s fd00:244::/56 -j KUBE-MARK-MASQ',
      '-m comment --comment "shop/web -> [fd00:244::5]:8080" -j KUBE-SEP([fd00:244::5]:8080)',
    ]);
    expect(rules(state, 'nat', 'KUBE-SEP([fd00:244::5]:8080)', 'ipv6')).toEqual([
      '-m comment --comment shop/web -s fd00:244::5 -j KUBE-MARK-MASQ',
      '-m comment --comment shop/web -m tcp -p tcp -j DNAT --to-destination [fd00:244::5]:8080',
    ]);
    expect(serviceChainPrefixes(state, 'ipv4')).toEqual([]);
  });

  test('masquerades every client with masqueradeAll, and none where nothing tells pods from others', () => {
    const match = '-m comment --comment "shop/web cluster IP" -m tcp -p tcp -d 10.96.0.10 --dport 80';
    expect(firstOfCluster({ masqueradeAll: true })).toBe(`${match} -j KUBE-MARK-MASQ`);
    expect(firstOfCluster({ clusterCIDRs: [] })).toContain('shop/web -> 10.244.1.5:8080');
    expect(firstOfCluster({ detectLocal: { mode: 'NodeCIDR' } })).toBe(`${match} ! -s 10.244.1.0/24 -j KUBE-MARK-MASQ`);
    expect(firstOfCluster({ detectLocal: { mode: 'BridgeInterface', bridgeInterface: 'cni0' } })).toBe(
      `${match} ! -i cni0 -j KUBE-MARK-MASQ`,
    );
    expect(firstOfCluster({ detectLocal: { mode: 'InterfaceNamePrefix', interfaceNamePrefix: 'veth' } })).toBe(
      `${match} ! -i veth+ -j KUBE-MARK-MASQ`,
    );
  });
});

describe('endpoints that are not ready', () => {
  test('get nothing while another is ready', () => {
    const state = compile([
      servicePort({ endpoints: [local, remote('10.244.2.5', { ready: false, serving: false })] }),
    ]);
    expect(serviceChainPrefixes(state)).toEqual(['KUBE-SVC', 'KUBE-SEP']);
  });

  test('get all where they still serve and no other is left', () => {
    const state = compile([servicePort({ endpoints: [remote('10.244.2.5', goingAway)] })]);
    expect(rules(state, 'nat', 'KUBE-SVC')?.at(-1)).toContain('10.244.2.5:8080');
  });
});

describe('without any endpoint', () => {
  const state = compile([
    servicePort({
      endpoints: [],
      nodePort: 30080,
      externalIPs: [address('198.51.100.1')],
      loadBalancerIPs: [address('203.0.113.7')],
      sourceRanges: [network('10.0.0.0/8')],
    }),
  ]);

  test('clients are told at once, at each address', () => {
    const about = '-m comment --comment "shop/web has no endpoints"';
    expect(rules(state, 'filter', 'KUBE-SERVICES')).toEqual([
      `${about} -m tcp -p tcp -d 10.96.0.10 --dport 80 -j REJECT`,
    ]);
    expect(rules(state, 'filter', 'KUBE-EXTERNAL-SERVICES')).toEqual([
      `${about} -m tcp -p tcp -d 198.51.100.1 --dport 80 -j REJECT`,
      `${about} -m tcp -p tcp -d 203.0.113.7 --dport 80 -j REJECT`,
      `${about} -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 30080 -j REJECT`,
    ]);
  });

  test('there are no chains, and nothing in table nat', () => {
    expect(serviceChainPrefixes(state)).toEqual([]);
    expect(rules(state, 'nat', 'KUBE-SERVICES')).toHaveLength(1);
    expect(rules(state, 'nat', 'KUBE-NODEPORTS')).toEqual([]);
    expect(rules(state, 'filter', 'KUBE-PROXY-FIREWALL')).toEqual([]);
  });
});

describe('internalTrafficPolicy Local', () => {
  test('uses the node’s own endpoints only', () => {
    const state = compile([servicePort({ internalPolicyLocal: true, endpoints: [local, elsewhere] })]);
    expect(serviceChainPrefixes(state)).toEqual(['KUBE-SVL', 'KUBE-SEP']);
    expect(rules(state, 'nat', 'KUBE-SVL')).toEqual([
      '-m comment --comment "shop/web cluster IP" -m tcp -p tcp -d 10.96.0.10 --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ',
      '-m comment --comment "shop/web -> 10.244.1.5:8080" -j KUBE-SEP(10.244.1.5:8080)',
    ]);
  });

  test('drops where the node has none, for the client may find another node', () => {
    const state = compile([servicePort({ internalPolicyLocal: true, endpoints: [elsewhere] })]);
    expect(serviceChainPrefixes(state)).toEqual([]);
    expect(rules(state, 'filter', 'KUBE-SERVICES')).toEqual([
      '-m comment --comment "shop/web has no local endpoints" -m tcp -p tcp -d 10.96.0.10 --dport 80 -j DROP',
    ]);
  });

  test('does not bind external traffic', () => {
    const state = compile([servicePort({ internalPolicyLocal: true, nodePort: 30080, endpoints: [elsewhere] })]);
    expect(serviceChainPrefixes(state)).toEqual(['KUBE-EXT', 'KUBE-SVC', 'KUBE-SEP']);
    expect(rules(state, 'filter', 'KUBE-EXTERNAL-SERVICES')).toEqual([]);
    // Packets to the cluster IP do not come by this chain, so none are masqueraded here.
    expect(rules(state, 'nat', 'KUBE-SVC')).toEqual([
      '-m comment --comment "shop/web -> 10.244.2.5:8080" -j KUBE-SEP(10.244.2.5:8080)',
    ]);
  });
});

describe('external addresses', () => {
  const addresses = {
    nodePort: 30080,
    externalIPs: [address('198.51.100.1')],
    loadBalancerIPs: [address('203.0.113.7')],
  };

  test('all lead to one chain, which masquerades under policy Cluster', () => {
    const state = compile([servicePort(addresses)]);
    expect(rules(state, 'nat', 'KUBE-SERVICES')?.slice(1, 3)).toEqual([
      '-m comment --comment "shop/web external IP" -m tcp -p tcp -d 198.51.100.1 --dport 80 -j KUBE-EXT',
      '-m comment --comment "shop/web loadbalancer IP" -m tcp -p tcp -d 203.0.113.7 --dport 80 -j KUBE-EXT',
    ]);
    expect(rules(state, 'nat', 'KUBE-NODEPORTS')).toEqual([
      '-m comment --comment shop/web -m tcp -p tcp --dport 30080 -j KUBE-EXT',
    ]);
    expect(rules(state, 'nat', 'KUBE-EXT')).toEqual([
      '-m comment --comment "masquerade traffic for shop/web external destinations" -j KUBE-MARK-MASQ',
      '-j KUBE-SVC',
    ]);
  });

  test('under policy Local keep the client’s address, with a short cut for pods and the node', () => {
    const state = compile([servicePort({ ...addresses, externalPolicyLocal: true, endpoints: [local, elsewhere] })]);
    expect(serviceChainPrefixes(state)).toEqual(['KUBE-EXT', 'KUBE-SVC', 'KUBE-SVL', 'KUBE-SEP', 'KUBE-SEP']);
    expect(rules(state, 'nat', 'KUBE-EXT')).toEqual([
      '-m comment --comment "pod traffic for shop/web external destinations" -s 10.244.0.0/16 -j KUBE-SVC',
      '-m comment --comment "masquerade LOCAL traffic for shop/web external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
      '-m comment --comment "route LOCAL traffic for shop/web external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC',
      '-j KUBE-SVL',
    ]);
    expect(rules(state, 'nat', 'KUBE-SVL')).toEqual([
      '-m comment --comment "shop/web -> 10.244.1.5:8080" -j KUBE-SEP(10.244.1.5:8080)',
    ]);
  });

  test('without local endpoints the short cut stays, and others are dropped', () => {
    const state = compile([servicePort({ ...addresses, externalPolicyLocal: true, endpoints: [elsewhere] })]);
    expect(serviceChainPrefixes(state)).toEqual(['KUBE-EXT', 'KUBE-SVC', 'KUBE-SEP']);
    expect(rules(state, 'nat', 'KUBE-EXT')?.at(-1)).toContain('route LOCAL traffic');
    const about = '-m comment --comment "shop/web has no local endpoints"';
    expect(rules(state, 'filter', 'KUBE-EXTERNAL-SERVICES')).toEqual([
      `${about} -m tcp -p tcp -d 198.51.100.1 --dport 80 -j DROP`,
      `${about} -m tcp -p tcp -d 203.0.113.7 --dport 80 -j DROP`,
      `${about} -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 30080 -j DROP`,
    ]);
    expect(rules(state, 'filter', 'KUBE-SERVICES')).toEqual([]);
  });

  test('local endpoints that are about to go count where the node has no others, ready ones elsewhere or not', () => {
    const leaving = endpoint('10.244.1.5', goingAway);
    const state = compile([servicePort({ ...addresses, externalPolicyLocal: true, endpoints: [leaving, elsewhere] })]);
    expect(rules(state, 'nat', 'KUBE-SVC')?.at(-1)).toContain('10.244.2.5:8080');
    expect(rules(state, 'nat', 'KUBE-SVL')?.at(-1)).toContain('10.244.1.5:8080');
    expect(serviceChainPrefixes(state).filter((prefix) => prefix === 'KUBE-SEP')).toHaveLength(2);
  });

  test('without a way to tell pods from others, pods are bound by policy Local', () => {
    const state = compile([servicePort({ ...addresses, externalPolicyLocal: true })], { clusterCIDRs: [] });
    expect(rules(state, 'nat', 'KUBE-EXT')?.[0]).toContain('masquerade LOCAL traffic');
  });
});

describe('source ranges', () => {
  const balanced = servicePort({
    nodePort: 30080,
    loadBalancerIPs: [address('203.0.113.7'), address('203.0.113.8')],
    sourceRanges: [network('198.51.100.0/24')],
  });

  test('let in by load balancer addresses who comes from one; node ports are open to all', () => {
    const state = compile([balanced]);
    expect(serviceChainPrefixes(state)).toEqual(['KUBE-EXT', 'KUBE-FW', 'KUBE-SVC', 'KUBE-SEP']);
    expect(rules(state, 'nat', 'KUBE-SERVICES')?.[1]).toBe(
      '-m comment --comment "shop/web loadbalancer IP" -m tcp -p tcp -d 203.0.113.7 --dport 80 -j KUBE-FW',
    );
    expect(rules(state, 'nat', 'KUBE-FW')).toEqual([
      '-m comment --comment "shop/web loadbalancer IP" -s 198.51.100.0/24 -j KUBE-EXT',
      '-m comment --comment "other traffic to shop/web will be dropped by KUBE-PROXY-FIREWALL"',
    ]);
    expect(rules(state, 'filter', 'KUBE-PROXY-FIREWALL')).toEqual([
      '-m comment --comment "shop/web traffic not accepted by KUBE-FW" -m tcp -p tcp -d 203.0.113.7 --dport 80 -j DROP',
      '-m comment --comment "shop/web traffic not accepted by KUBE-FW" -m tcp -p tcp -d 203.0.113.8 --dport 80 -j DROP',
    ]);
    expect(rules(state, 'nat', 'KUBE-NODEPORTS')?.[0]).toContain('-j KUBE-EXT');
  });

  test('a node inside one may use the addresses, as whose it then sends', () => {
    const around = { ...balanced, sourceRanges: [network('198.51.100.0/24'), network('192.168.0.0/16')] };
    expect(rules(compile([around]), 'nat', 'KUBE-FW')).toEqual([
      '-m comment --comment "shop/web loadbalancer IP" -s 198.51.100.0/24 -j KUBE-EXT',
      '-m comment --comment "shop/web loadbalancer IP" -s 192.168.0.0/16 -j KUBE-EXT',
      '-m comment --comment "shop/web loadbalancer IP" -s 203.0.113.7 -j KUBE-EXT',
      '-m comment --comment "shop/web loadbalancer IP" -s 203.0.113.8 -j KUBE-EXT',
      '-m comment --comment "other traffic to shop/web will be dropped by KUBE-PROXY-FIREWALL"',
    ]);
    const movedNode = { ...worker, nodeIPs: { ...worker.nodeIPs, ipv4: address('172.16.0.1') } };
    expect(rules(compile([around], {}, movedNode), 'nat', 'KUBE-FW')).toHaveLength(3);
  });

  test('mean nothing to a Service that has no load balancer address yet', () => {
    const state = compile([{ ...balanced, loadBalancerIPs: [] }]);
    expect(serviceChainPrefixes(state)).toEqual(['KUBE-EXT', 'KUBE-SVC', 'KUBE-SEP']);
  });
});

describe('session affinity', () => {
  test('asks first whether an endpoint has seen the client, for as long as the Service says', () => {
    const state = compile([servicePort({ affinitySeconds: 600, endpoints: [local, elsewhere] })]);
    expect(rules(state, 'nat', 'KUBE-SVC')?.slice(1)).toEqual([
      '-m comment --comment "shop/web -> 10.244.1.5:8080" -m recent --name KUBE-SEP(10.244.1.5:8080) --rcheck --seconds 600 --reap -j KUBE-SEP(10.244.1.5:8080)',
      '-m comment --comment "shop/web -> 10.244.2.5:8080" -m recent --name KUBE-SEP(10.244.2.5:8080) --rcheck --seconds 600 --reap -j KUBE-SEP(10.244.2.5:8080)',
      '-m comment --comment "shop/web -> 10.244.1.5:8080" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP(10.244.1.5:8080)',
      '-m comment --comment "shop/web -> 10.244.2.5:8080" -j KUBE-SEP(10.244.2.5:8080)',
    ]);
    expect(state.modules).toContain('xt_recent');
  });

  test('an endpoint’s chain remembers the client', () => {
    expect(rules(compile([servicePort({ affinitySeconds: 600 })]), 'nat', 'KUBE-SEP(10.244.1.5:8080)')?.[1]).toBe(
      '-m comment --comment shop/web -m recent --name KUBE-SEP(10.244.1.5:8080) --set -m tcp -p tcp -j DNAT --to-destination 10.244.1.5:8080',
    );
  });

  test('holds in the chains of both policies', () => {
    const state = compile([servicePort({ affinitySeconds: 600, nodePort: 30080, externalPolicyLocal: true })]);
    for (const chain of ['KUBE-SVC', 'KUBE-SVL']) {
      expect(rules(state, 'nat', chain)?.filter((rule) => rule.includes('--rcheck'))).toHaveLength(1);
    }
  });
});

describe('protocols', () => {
  test('UDP and SCTP match as TCP does', () => {
    const state = compile([
      servicePort({ service: 'dns', protocol: 'UDP', port: 53, nodePort: 30053 }),
      servicePort({ service: 'sig', protocol: 'SCTP', port: 36412, nodePort: 30412 }),
    ]);
    expect(rules(state, 'nat', 'KUBE-NODEPORTS')?.map((rule) => rule.replace(/ -j .*/, ''))).toEqual([
      '-m comment --comment shop/dns -m udp -p udp --dport 30053',
      '-m comment --comment shop/sig -m sctp -p sctp --dport 30412',
    ]);
  });
});

test('health check node ports are open, over TCP, with or without endpoints', () => {
  const port = servicePort({ protocol: 'UDP', externalPolicyLocal: true, healthCheckNodePort: 32000, endpoints: [] });
  expect(rules(compile([port]), 'filter', 'KUBE-NODEPORTS')).toEqual([
    '-m comment --comment "shop/web health check node port" -m tcp -p tcp --dport 32000 -j ACCEPT',
  ]);
});
