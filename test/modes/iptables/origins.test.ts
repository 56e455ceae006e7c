import { expect, test } from 'vitest';
import { formatRule, type Rule } from '../../../src/kernel/iptables/iptables.ts';
import type { Origin, Place } from '../../../src/kernel/place.ts';
import type { ServicePort } from '../../../src/cluster/model.ts';
import { address, compile, endpoint, network, servicePort } from './compile.ts';

/** A place that has only a file name. */
function place(file: string): Place {
  return { file, locate: () => ({ file, line: 1, column: 1 }) };
}

const places: ServicePort['places'] = {
  port: place('port'),
  clusterIP: place('clusterIP'),
  nodePort: place('nodePort'),
  externalIP: (index) => place(`externalIPs[${index}]`),
  ingress: (index) => place(`ingress[${index}]`),
  sourceRange: (index) => place(`sourceRanges[${index}]`),
};

const everything = servicePort({
  nodePort: 30080,
  externalIPs: ['198.51.100.1', '198.51.100.2'].map(address),
  loadBalancerIPs: [address('203.0.113.7')],
  sourceRanges: ['10.0.0.0/8', '192.168.0.0/16'].map(network),
  affinitySeconds: 60,
  externalPolicyLocal: true,
  healthCheckNodePort: 32000,
  endpoints: [{ ...endpoint('10.244.1.5'), place: place('endpoints[0]') }],
  places,
});

const state = compile([
  everything,
  servicePort({ service: 'silent', internalPolicyLocal: true, endpoints: [], places }),
]);

function allRules(): readonly (readonly [string, Rule])[] {
  const { nat, filter } = state.iptables.ipv4 ?? {};
  return [...(nat?.values() ?? []), ...(filter?.values() ?? [])].flatMap((chain) =>
    chain.rules.map((rule) => [chain.name, rule] as const),
  );
}

function originOf(part: string): Origin | undefined {
  const found = allRules().filter(([, rule]) => formatRule(rule).includes(part));
  expect(found).toHaveLength(1);
  return found[0]?.[1].origin;
}

test('each rule of a Service port says which port, and from which field it came', () => {
  const fields = {
    '-d 198.51.100.2 ': 'externalIPs[1]',
    '-s 192.168.0.0/16 ': 'sourceRanges[1]',
    '-s 203.0.113.7 ': 'ingress[0]',
    '--dport 30080 ': 'nodePort',
    '--dport 32000 ': 'port',
    'traffic not accepted by': 'ingress[0]',
    'cluster IP" -m tcp -p tcp -d 10.96.0.10 --dport 80 ! -s': 'clusterIP',
    '-j DNAT': 'endpoints[0]',
  };
  for (const [part, field] of Object.entries(fields)) {
    expect(originOf(part)).toMatchObject({ servicePort: 'shop/web', place: { file: field } });
  }
  expect(originOf('shop/silent has no endpoints')).toMatchObject({
    servicePort: 'shop/silent',
    place: { file: 'clusterIP' },
  });
});

test('each chain that a Service port has for itself says so, and so do all rules in it', () => {
  const own = [...(state.iptables.ipv4?.nat?.values() ?? [])].filter(({ name }) =>
    /^KUBE-[A-Z]{2,3}-[A-Z2-7]{16}$/.test(name),
  );
  const kinds = own.map(({ name, origin }) => `${name.slice(0, -17)}: ${origin?.servicePort}, ${origin?.place?.file}`);
  expect(kinds).toEqual([
    'KUBE-EXT: shop/web, port',
    'KUBE-FW: shop/web, port',
    'KUBE-SVC: shop/web, port',
    'KUBE-SVL: shop/web, port',
    'KUBE-SEP: shop/web, endpoints[0]',
  ]);
  for (const rule of own.flatMap((chain) => chain.rules)) expect(rule.origin?.servicePort).toBe('shop/web');
});

test('what every node has comes from no Service', () => {
  const shared = allRules().filter(([, rule]) => !/shop\/(web|silent)/.test(formatRule(rule)) && !rule.origin);
  expect(shared.map(([chain]) => chain)).toContain('KUBE-POSTROUTING');
  for (const [chain] of shared) expect(chain).not.toMatch(/^KUBE-(SVC|SVL|EXT|FW|SEP)-/);
});
