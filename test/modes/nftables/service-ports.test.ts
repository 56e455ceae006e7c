import { describe, expect, test } from 'vitest';
import type { NodeContext, ServicePort } from '../../../src/cluster/model.ts';
import type { ProxySettings } from '../../../src/cluster/objects.ts';
import { families, type Family } from '../../../src/kernel/address.ts';
import { formatElement, formatNftRule, formatTables } from '../../../src/kernel/nftables/format.ts';
import { findTable, type NftTable } from '../../../src/kernel/nftables/table.ts';
import { endpointNames, serviceChainNames } from '../../../src/modes/nftables/service-objects.ts';
import { compileNftables, NftablesMemo, findLongComments } from '../../../src/modes/nftables/compile-nftables.ts';
import { address, clusterOf, defaults, endpoint, network, remote, servicePort, worker } from '../iptables/compile.ts';

const settings: ProxySettings = { ...defaults, mode: 'nftables', nodePortAddresses: ['primary'] };

function compile(ports: readonly ServicePort[], changed: Partial<ProxySettings> = {}, node: NodeContext = worker) {
  return compileNftables(clusterOf(...ports), node, { ...settings, ...changed }, families).nftables;
}

function tableOf(tables: readonly NftTable[], family: Family = 'ipv4'): NftTable {
  const table = findTable(tables, family, 'kube-proxy');
  if (!table) throw new Error(`no table of ${family}`);
  return table;
}

const elements = (tables: readonly NftTable[], set: string, family: Family = 'ipv4') =>
  tableOf(tables, family).sets.get(set)?.elements.map(formatElement);

const rules = (tables: readonly NftTable[], chain: string, family: Family = 'ipv4') =>
  tableOf(tables, family).chains.get(chain)?.rules.map(formatNftRule);

describe('names', () => {
  const long = {
    namespace: 'very-long-namespace-name-abcdefghijklmnopqrstuvwxyz0123456789xx',
    service: 'very-long-service-name-why-would-you-even-do-this-i-mean-really',
    portName: 'port-443-providing-the-hypertext-transmission-protocol-with-tls',
    protocol: 'SCTP',
  } as const;
  const longText = `${long.namespace}/${long.service}/sctp/${long.portName}`;
  const short = { namespace: 'testing', service: 'service', portName: 'http' };

  // From kube-proxy's own tests: Test_servicePortChainNameBase.
  test.each([
    [short, 'P4ZYZVCF-testing/service/tcp/http'],
    [{ ...short, portName: 'https' }, 'LZBRENCP-testing/service/tcp/https'],
    [long, `KR6NACJP-${longText}`],
  ])('of a Service port', (fields, base) => {
    expect(serviceChainNames(servicePort(fields))).toEqual({
      Cluster: `service-${base}`,
      Local: `local-${base}`,
      external: `external-${base}`,
      firewall: `firewall-${base}`,
    });
  });

  // Test_servicePortEndpointChainNameBase.
  test.each([
    [short, '10.180.0.1', 80, 'JO2XBXZR-testing/service/tcp/http__10.180.0.1/80'],
    [
      short,
      'fd80:abcd:12::a1b2:c3d4:e5f6:9999',
      80,
      'U7E2ET36-testing/service/tcp/http__fd80.abcd.12..a1b2.c3d4.e5f6.9999/80',
    ],
    [long, '1234:5678:9abc:def0::abc:1234', 443, `5YS7AFEA-${longText}__1234.5678.9abc.def0..abc.1234/443`],
    [long, '1234:5678:9abc:def0::abcd:1234:5678', 443, `CI6C53Q3-${longText}__1234.5678.9abc.def0..abcd.1234...`],
  ])('of an endpoint', (fields, ip, port, base) => {
    // Those tests have addresses that are not in their shortest form.
    const asWritten = { ...endpoint(ip, { port }), address: { ...address(ip), text: ip } };
    expect(endpointNames(servicePort(fields), asWritten)).toEqual({
      chain: `endpoint-${base}`,
      affinitySet: `affinity-${base}`,
    });
  });
});

describe('addresses that are claimed twice', () => {
  const first = servicePort({ service: 'a', externalIPs: [address('203.0.113.1')], nodePort: 30001 });
  const second = servicePort({ service: 'b', clusterIP: address('203.0.113.1'), nodePort: 30001 });

  test('by two Service ports: the first gets them, and nft none twice', () => {
    const { external } = serviceChainNames(first);
    const { Cluster: cluster } = serviceChainNames(second);
    const tables = compile([first, second]);
    expect(elements(tables, 'service-ips')).toContain(`203.0.113.1 . tcp . 80 : goto ${external}`);
    expect(elements(tables, 'service-ips')).not.toContain(`203.0.113.1 . tcp . 80 : goto ${cluster}`);
    expect(elements(tables, 'service-nodeports')).toEqual([`tcp . 30001 : goto ${external}`]);
  });

  test('by one Service port: the way from outside, as kube-proxy puts that in last', () => {
    const twice = servicePort({ externalIPs: [address('10.96.0.10')], loadBalancerIPs: [address('10.96.0.10')] });
    const { external } = serviceChainNames(twice);
    expect(elements(compile([twice]), 'service-ips')).toEqual([`10.96.0.10 . tcp . 80 : goto ${external}`]);
    expect(elements(compile([twice]), 'cluster-ips')).toEqual(['10.96.0.10']);
  });
});

describe('a Service port', () => {
  test('without local endpoints sends on what comes from the node, and drops the rest', () => {
    const port = servicePort({ externalPolicyLocal: true, nodePort: 30001, endpoints: [remote('10.244.2.5')] });
    const { Cluster: cluster, external } = serviceChainNames(port);
    const tables = compile([port]);
    expect(elements(tables, 'service-nodeports')).toEqual([`tcp . 30001 : goto ${external}`]);
    expect(elements(tables, 'no-endpoint-nodeports')).toEqual(['tcp . 30001 comment "shop/web" : drop']);
    expect(rules(tables, external)).toEqual([
      `ip saddr 10.244.0.0/16 goto ${cluster} comment "short-circuit pod traffic"`,
      'fib saddr type local mark set mark or 0x00004000 comment "masquerade local traffic"',
      `fib saddr type local goto ${cluster} comment "short-circuit local traffic"`,
    ]);
  });

  test('with source ranges lets the node in where its own address is in one', () => {
    const port = servicePort({
      loadBalancerIPs: [address('203.0.113.9')],
      sourceRanges: [network('192.168.0.0/24'), network('192.0.2.1/32')],
      endpoints: [],
    });
    const { firewall } = serviceChainNames(port);
    expect(rules(compile([port]), firewall)).toEqual([
      'ip saddr != { 192.168.0.0/24, 192.0.2.1/32, 203.0.113.9 } drop',
    ]);
    const elsewhere = { ...worker, nodeIPs: { ...worker.nodeIPs, ipv4: address('172.16.0.1') } };
    expect(rules(compile([port], {}, elsewhere), firewall)).toEqual([
      'ip saddr != { 192.168.0.0/24, 192.0.2.1/32 } drop',
    ]);
  });

  test('without session affinity has no chain of an endpoint, and each chain tells its Service port', () => {
    const [plain, sticky] = [0, 60].map((affinitySeconds) => tableOf(compile([servicePort({ affinitySeconds })])));
    const own = (table: NftTable | undefined) => [...(table?.chains.values() ?? [])].filter(({ origin }) => origin);
    expect(own(plain).map(({ name }) => name.split('-')[0])).toEqual(['service']);
    expect(own(sticky).map(({ name }) => name.split('-')[0])).toEqual(['service', 'endpoint']);
    expect(own(sticky).map(({ origin }) => origin?.servicePort)).toEqual(['shop/web', 'shop/web']);
  });
});

describe('node ports', () => {
  const port = servicePort({ nodePort: 30001 });

  test('listen on the addresses of a set, loopback left out', () => {
    const tables = compile([port], { nodePortAddresses: ['127.0.0.0/8', '192.168.0.0/16'] });
    expect(elements(tables, 'nodeport-ips')).toEqual(['192.168.0.1']);
    expect(rules(tables, 'services')).toContain(
      'ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports',
    );
  });

  test('or on all addresses of the node, and there is no such set', () => {
    const tables = compile([port], { nodePortAddresses: [] });
    expect(elements(tables, 'nodeport-ips')).toBeUndefined();
    expect(rules(tables, 'services', 'ipv6')).toContain(
      'fib daddr type local ip6 daddr != ::1 meta l4proto . th dport vmap @service-nodeports',
    );
  });
});

test.each([
  [{ mode: 'BridgeInterface', bridgeInterface: 'cni0' }, 'iifname != cni0'],
  [{ mode: 'BridgeInterface', bridgeInterface: 'bridge' }, 'iifname != "bridge"'],
  [{ mode: 'BridgeInterface', bridgeInterface: 'br0:1' }, 'iifname != "br0:1"'],
  [{ mode: 'InterfaceNamePrefix', interfaceNamePrefix: 'veth' }, 'iifname != veth*'],
] as const)('an interface is written so that nft reads it: %j', (detectLocal, match) => {
  expect(rules(compile([], { detectLocal }), 'services')?.[0]).toBe(
    `ip daddr @cluster-ips ${match} mark set mark or 0x00004000 comment "masquerade clusterIP traffic from outside cluster"`,
  );
});

describe('names that are too long for a comment', () => {
  const names = { namespace: 'n'.repeat(63), service: 's'.repeat(63), label: `${'n'.repeat(63)}/${'s'.repeat(63)}:p2` };

  test('are cut to 128 bytes', () => {
    const commentBy = (release: '1.36' | '1.37') => {
      const tables = compile([servicePort({ ...names, portName: 'p2', endpoints: [] })], { release });
      return tableOf(tables).sets.get('no-endpoint-services')?.elements[0]?.comment;
    };
    expect(commentBy('1.36')).toBe(`${names.label.slice(0, 125)}...`);
    expect(commentBy('1.37')).toBe(names.label.slice(0, 128));
  });

  const local = { internalPolicyLocal: true, endpoints: [remote('10.244.2.5')] };
  test.each([
    ['without endpoints', { endpoints: [] }, ['no-endpoints']],
    ['without local endpoints', local, ['no-local-endpoints']],
    ['with endpoints', {}, []],
    [
      'without local endpoints, and nothing from outside',
      { ...local, internalPolicyLocal: false, externalPolicyLocal: true },
      [],
    ],
  ])('are warned of, %s', (_, fields, expected) => {
    const warnings = findLongComments(clusterOf(servicePort({ ...names, portName: 'p2', ...fields })));
    expect(warnings.map(({ arguments: details }) => 'lack' in details && details.lack)).toEqual(expected);
    expect(findLongComments(clusterOf(servicePort(fields)))).toEqual([]);
  });
});

test('a memo changes no result', () => {
  const ports = [
    servicePort({
      nodePort: 30001,
      externalPolicyLocal: true,
      endpoints: [endpoint('10.244.1.5'), remote('10.244.2.5')],
    }),
    servicePort({ service: 'z', loadBalancerIPs: [address('203.0.113.9')], sourceRanges: [network('192.168.0.0/24')] }),
    servicePort({ service: 'y', affinitySeconds: 60, endpoints: [remote('10.244.2.6')] }),
  ];
  const outside = { ...worker, nodeIPs: { ...worker.nodeIPs, ipv4: address('172.16.0.1') } };
  const nodes = [worker, { ...worker, name: 'worker-2' }, { ...worker, name: 'worker-3' }, outside];
  const memo = new NftablesMemo();
  for (const node of [...nodes, ...nodes.toReversed()]) {
    const { nftables } = compileNftables(clusterOf(...ports), node, settings, families, memo);
    expect(formatTables(nftables)).toBe(formatTables(compile(ports, {}, node)));
  }
});
