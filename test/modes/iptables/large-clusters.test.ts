import { describe, expect, test } from 'vitest';
import type { ServicePort } from '../../../src/cluster/model.ts';
import { endpointChainNames } from '../../../src/modes/iptables/plan-service-port.ts';
import { formatChance } from '../../../src/modes/iptables/service-chains.ts';
import type { KernelState } from '../../../src/kernel/state.ts';
import { address, compile, endpoint, rules, servicePort } from './compile.ts';

/** That many endpoints on the node. */
function manyEndpoints(count: number) {
  return Array.from({ length: count }, (_, i) => endpoint(`10.244.${Math.floor(i / 250)}.${(i % 250) + 1}`));
}

function perEndpointRules(state: KernelState): readonly string[] {
  return [
    ...(rules(state, 'nat', 'KUBE-SVC')?.slice(1) ?? []),
    ...(rules(state, 'nat', 'KUBE-SEP(10.244.0.1:8080)') ?? []),
  ];
}

/** Whether the first port's rules that name an endpoint have comments. */
function hasComments(ports: readonly ServicePort[]): boolean {
  const chain = compile(ports).iptables.ipv4?.nat?.get(
    endpointChainNames(servicePort({ portName: 'http' }))('10.244.9.9:8080'),
  );
  return chain?.rules[0]?.args[0]?.kind === 'comment';
}

describe('above a thousand endpoints', () => {
  test('rules that name an endpoint have no comment', () => {
    const thousand = perEndpointRules(compile([servicePort({ endpoints: manyEndpoints(1000) })]));
    expect(thousand.filter((rule) => !rule.startsWith('-m comment --comment '))).toEqual([]);
    const state = compile([servicePort({ affinitySeconds: 60, endpoints: manyEndpoints(1001) })]);
    expect(perEndpointRules(state).filter((rule) => rule.includes('--comment'))).toEqual([]);
    expect(rules(state, 'nat', 'KUBE-SEP(10.244.0.1:8080)')).toEqual([
      '-s 10.244.0.1 -j KUBE-MARK-MASQ',
      '-m recent --name KUBE-SEP(10.244.0.1:8080) --set -m tcp -p tcp -j DNAT --to-destination 10.244.0.1:8080',
    ]);
  });

  test('other rules keep theirs', () => {
    const state = compile([servicePort({ nodePort: 30080, endpoints: manyEndpoints(1001) })]);
    for (const chain of ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-EXT']) {
      expect(rules(state, 'nat', chain)?.[0]).toContain('--comment');
    }
    expect(rules(state, 'nat', 'KUBE-SVC')?.[0]).toContain('--comment "shop/web cluster IP"');
  });

  test('an endpoint counts once for each port, ready or not, in its own family only', () => {
    const half = [
      endpoint('10.244.9.9'),
      ...Array.from({ length: 500 }, (_, i) =>
        endpoint('10.244.8.8', { port: 8000 + i, ready: false, serving: false }),
      ),
    ];
    const http = servicePort({ portName: 'http', endpoints: half });
    const https = servicePort({ portName: 'https', port: 443, endpoints: half });
    expect(hasComments([http])).toBe(true);
    expect(hasComments([http, https])).toBe(false);
    expect(hasComments([http, { ...https, family: 'ipv6', clusterIP: address('fd00:96::a') }])).toBe(true);
  });
});

test('chances have ten decimals, rounded as Go rounds them', () => {
  const chances = [2, 3, 6, 7, 2047, 2048, 2049, 10240, 1_000_000].map(
    (count) => `1/${count} = ${formatChance(count)}`,
  );
  expect(chances).toEqual([
    '1/2 = 0.5000000000',
    '1/3 = 0.3333333333',
    '1/6 = 0.1666666667',
    '1/7 = 0.1428571429',
    '1/2047 = 0.0004885198',
    '1/2048 = 0.0004882812',
    '1/2049 = 0.0004880429',
    '1/10240 = 0.0000976563',
    '1/1000000 = 0.0000010000',
  ]);
});
