import fc from 'fast-check';
import { servicePortLabel, type Endpoint, type NodeContext, type ServicePort } from '../../../src/cluster/model.ts';
import type { ProxySettings } from '../../../src/cluster/objects.ts';
import { families, type Family, joinHostPort } from '../../../src/kernel/address.ts';
import type { NftTable } from '../../../src/kernel/nftables/table.ts';
import { compileNftables } from '../../../src/modes/nftables/compile-nftables.ts';
import { address, clusterOf, defaults, network, worker } from '../iptables/compile.ts';

const number = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max });

const endpoints = (family: Family): fc.Arbitrary<readonly Endpoint[]> =>
  fc.uniqueArray(
    fc
      .record({
        host: number(40),
        port: fc.constantFrom(80, 8080),
        nodeName: fc.constantFrom('worker-1', 'worker-2'),
        ready: fc.boolean(),
        terminating: fc.boolean(),
      })
      .map(({ host, port, ...status }): Endpoint => {
        const ip = family === 'ipv4' ? `10.244.1.${host}` : `fd00:10:244::${host.toString(16)}`;
        return {
          address: address(ip),
          port,
          label: joinHostPort(address(ip).text, port),
          status: { ...status, serving: true, zone: 'zone-a', zoneHints: [], nodeHints: [] },
        };
      }),
    { selector: ({ label }) => label, maxLength: 5 },
  );

const ranges = {
  ipv4: ['10.0.0.0/8', '10.1.0.0/16', '10.2.0.0/15', '192.168.0.0/24', '192.168.1.0/24', '192.0.2.1/32', '0.0.0.0/0'],
  ipv6: ['fd00::/16', 'fd00::/17', 'fd00:8000::/17', '2001:db8::/32', '2001:db8::1/128', '2001:db9::/32', '::/0'],
} as const;

export const servicePort = (family: Family): fc.Arbitrary<ServicePort> => {
  const ip = (four: number, last: number): ReturnType<typeof address> =>
    address(family === 'ipv4' ? `203.0.${four}.${last}` : `2001:db8:${four}::${last.toString(16)}`);
  return fc
    .record({
      id: number(400),
      portName: fc.constantFrom('', 'http', 'p'.repeat(15)),
      protocol: fc.constantFrom('TCP' as const, 'UDP' as const, 'SCTP' as const),
      longName: fc.boolean(),
      nodePort: fc.constantFrom(0, 0, 30000, 30001, 32767),
      externals: fc.uniqueArray(number(6), { maxLength: 2 }),
      loadBalancers: fc.uniqueArray(number(6), { maxLength: 2 }),
      sourceRanges: fc.uniqueArray(fc.constantFrom(...ranges[family]), { maxLength: 4 }),
      affinitySeconds: fc.constantFrom(0, 0, 1, 10800, 86400),
      internalPolicyLocal: fc.boolean(),
      externalPolicyLocal: fc.boolean(),
      endpoints: endpoints(family),
    })
    .map(({ id, longName, externals, loadBalancers, sourceRanges, portName, ...rest }): ServicePort => {
      const namespace = longName ? 'n'.repeat(63) : 'shop';
      const service = longName ? `s${id}-${'x'.repeat(58)}` : `s${id}`;
      return {
        namespace,
        service,
        portName,
        label: servicePortLabel(namespace, service, portName),
        family,
        clusterIP: ip(200, id % 255),
        port: 80 + (id % 3),
        externalIPs: externals.map((last) => ip(113, last)),
        loadBalancerIPs: loadBalancers.map((last) => ip(114, last)),
        sourceRanges: sourceRanges.map(network),
        healthCheckNodePort: 0,
        scheduler: '',
        forwarding: 'masquerade',
        ...rest,
      };
    });
};

const settings: fc.Arbitrary<Partial<ProxySettings>> = fc.record({
  masqueradeAll: fc.boolean(),
  masqueradeBit: number(31),
  nodePortAddresses: fc.constantFrom([], ['primary'], ['192.168.0.0/16'], ['127.0.0.0/8', '::/0']),
  detectLocal: fc.constantFrom<ProxySettings['detectLocal']>(
    { mode: 'ClusterCIDR' },
    { mode: 'NodeCIDR' },
    { mode: 'BridgeInterface', bridgeInterface: 'bridge' },
    { mode: 'InterfaceNamePrefix', interfaceNamePrefix: 'veth' },
  ),
  clusterCIDRs: fc.constantFrom([], ['10.244.0.0/16'], ['10.244.0.0/16', 'fd00:10:244::/56']),
});

const node: NodeContext = { ...worker, podCIDRs: [network('10.244.1.0/24'), network('fd00:10:244:1::/64')] };

/** What is compiled for some Service ports, some of which claim the same addresses. */
export const compiledTables: fc.Arbitrary<readonly NftTable[]> = fc
  .tuple(
    fc.array(servicePort('ipv4'), { maxLength: 8 }),
    fc.array(servicePort('ipv6'), { maxLength: 4 }),
    settings,
    fc.constantFrom([], [network('10.96.0.0/12')], [network('10.96.0.0/12'), network('fd00:96::/112')]),
  )
  .map(([four, six, chosen, networks]) => {
    const serviceCidrs = networks.map((range) => ({ network: range, from: 'ServiceCIDR' as const }));
    const cluster = { ...clusterOf(...four, ...six), serviceCidrs };
    return compileNftables(cluster, node, { ...defaults, mode: 'nftables', ...chosen }, families).nftables;
  });
