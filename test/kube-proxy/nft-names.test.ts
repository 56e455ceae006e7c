import { describe, expect, test } from 'vitest';
import { families } from '../../src/kernel/address.ts';
import { isNftServiceName, parseNftName } from '../../src/kube-proxy/nft-table.ts';
import { compileNftables } from '../../src/modes/nftables/compile-nftables.ts';
import type { ServicePort } from '../../src/cluster/model.ts';
import { address, clusterOf, defaults, endpoint, servicePort, worker } from '../modes/iptables/compile.ts';

/** The names of the chains and sets that belong to a Service port. */
function namesOf(port: Partial<ServicePort>): readonly string[] {
  const settings = { ...defaults, mode: 'nftables' } as const;
  const { nftables } = compileNftables(clusterOf(servicePort(port)), worker, settings, families);
  return nftables.flatMap(({ chains, sets }) =>
    [...chains.values(), ...sets.values()].filter(({ origin }) => origin).map(({ name }) => name),
  );
}

describe('names of nftables mode', () => {
  test('tell the Service port, its protocol, and the endpoint', () => {
    const names = namesOf({ portName: 'http', affinitySeconds: 60, nodePort: 30080 });
    expect(names.map((name) => parseNftName(name))).toEqual([
      { kind: 'cluster', label: 'shop/web:http', protocol: 'TCP', endpoint: undefined },
      { kind: 'external', label: 'shop/web:http', protocol: 'TCP', endpoint: undefined },
      { kind: 'endpoint', label: 'shop/web:http', protocol: 'TCP', endpoint: '10.244.1.5:8080' },
      { kind: 'affinity', label: 'shop/web:http', protocol: 'TCP', endpoint: '10.244.1.5:8080' },
    ]);
  });

  test('tell a port without a name, and IPv6 in which a name has no colons', () => {
    const port = {
      family: 'ipv6',
      protocol: 'UDP',
      clusterIP: address('fd00:96::10'),
      affinitySeconds: 60,
      endpoints: [endpoint('fd00:244::5', { port: 53 })],
    } as const;
    const told = { label: 'shop/web', protocol: 'UDP' };
    expect(namesOf(port).map((name) => parseNftName(name))).toEqual([
      { kind: 'cluster', ...told, endpoint: undefined },
      { kind: 'endpoint', ...told, endpoint: '[fd00:244::5]:53' },
      { kind: 'affinity', ...told, endpoint: '[fd00:244::5]:53' },
    ]);
  });

  test('that are too long tell the Service port, and no endpoint', () => {
    const long = { namespace: 'n'.repeat(63), service: 's'.repeat(63), portName: 'p'.repeat(63) };
    const port = {
      ...long,
      label: `${long.namespace}/${long.service}:${long.portName}`,
      family: 'ipv6',
      clusterIP: address('fd00:96::10'),
      affinitySeconds: 60,
      endpoints: [endpoint('fd00:1111:2222:3333:4444:5555:6666:7777', { port: 65535 })],
    } as const;
    const names = namesOf(port).map((name) => parseNftName(name));
    expect(names.map((name) => name?.label)).toEqual([port.label, port.label, port.label]);
    expect(names.map((name) => name?.endpoint)).toEqual([undefined, undefined, undefined]);
  });

  test.for([
    'services',
    'firewall-check',
    'reject-chain',
    'service-ips',
    'service-nodeports',
    'service-ABCDEFGH-shop/web/icmp/',
    'service-abcdefgh-shop/web/tcp/',
    'service-ABCDEFGH-shop/web/tcp/__10.0.0.1/80',
    'endpoint-ABCDEFGH-shop/web/tcp/',
    'KUBE-SVC-ABCDEFGHIJKLMNOP',
    'shop/web',
    '',
  ])('%j is none', (name) => {
    expect(isNftServiceName(name)).toBe(false);
  });
});
