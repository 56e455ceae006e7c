import { describe, expect, test } from 'vitest';
import { namesLocalhost, planNodePorts } from '../../src/cluster/node-context.ts';
import type { ProxySettings } from '../../src/cluster/objects.ts';
import { planMasquerade } from '../../src/cluster/plan-masquerade.ts';
import { defaults, worker } from '../modes/iptables/compile.ts';

function plan(settings: Partial<ProxySettings> = {}, family: 'ipv4' | 'ipv6' = 'ipv4') {
  return planMasquerade({ ...defaults, ...settings }, worker, family);
}

describe('masquerading of packets to cluster IPs', () => {
  const pods = { kind: 'from-network', network: { text: '10.244.0.0/16' } };

  test('concerns all but the pods where something tells them', () => {
    expect(plan()).toMatchObject({ localTraffic: pods, toClusterIPs: { kind: 'all-but-pods', pods } });
  });

  test('concerns all under masqueradeAll; pods are still told, for the paths from outside', () => {
    expect(plan({ masqueradeAll: true })).toMatchObject({ localTraffic: pods, toClusterIPs: { kind: 'all' } });
  });

  test('concerns none that are known where nothing tells: no CIDR of the family', () => {
    expect(plan({}, 'ipv6')).toMatchObject({ localTraffic: undefined, toClusterIPs: { kind: 'none-known' } });
  });

  test('tells pods by the CIDR of the node, a bridge, or the names of interfaces', () => {
    const by = (detectLocal: ProxySettings['detectLocal']) => plan({ detectLocal }).localTraffic;
    expect(by({ mode: 'NodeCIDR' })).toMatchObject({ kind: 'from-network', network: { text: '10.244.1.0/24' } });
    expect(by({ mode: 'BridgeInterface', bridgeInterface: 'cni0' })).toEqual({ kind: 'from-interface', name: 'cni0' });
    expect(by({ mode: 'InterfaceNamePrefix', interfaceNamePrefix: 'veth' })).toEqual({
      kind: 'from-interfaces',
      prefix: 'veth',
    });
  });

  test('is asked for by one bit of the mark, the highest one too', () => {
    expect(plan({ masqueradeBit: 14 }).mark).toBe(0x4000);
    expect(plan({ masqueradeBit: 31 }).mark).toBe(0x80000000);
  });
});

describe('where node ports listen', () => {
  const listen = (nodePortAddresses: readonly string[], family: 'ipv4' | 'ipv6' = 'ipv4') => {
    const { addresses, picksIPv4Loopback } = planNodePorts({ nodePortAddresses }, worker, family);
    return { addresses: addresses?.map(({ text }) => text), picksIPv4Loopback };
  };

  test('is every local address where no CIDR of the family is given', () => {
    expect(listen([])).toEqual({ addresses: undefined, picksIPv4Loopback: true });
    expect(listen(['192.168.0.0/24'], 'ipv6').addresses).toBeUndefined();
  });

  test("is the node's addresses in the CIDRs, loopback among them", () => {
    expect(listen(['192.168.0.0/24'])).toEqual({ addresses: ['192.168.0.1'], picksIPv4Loopback: false });
    expect(listen(['127.0.0.0/8', '192.168.0.0/24'])).toEqual({
      addresses: ['127.0.0.1', '192.168.0.1'],
      picksIPv4Loopback: true,
    });
    expect(listen(['172.16.0.0/12'])).toEqual({ addresses: [], picksIPv4Loopback: false });
  });

  test('is the address of the Node for the word primary', () => {
    expect(listen(['primary']).addresses).toEqual(['192.168.0.1']);
    expect(listen(['primary'], 'ipv6').addresses).toEqual(['fd00::1']);
  });

  test.each([
    ['127.0.0.0/8', true, true],
    ['0.0.0.0/0,127.0.0.0/8', true, true],
    ['126.0.0.0/7', false, true],
    ['0.0.0.0/0', false, false],
    ['0.0.0.0/0,192.168.0.0/24', false, false],
  ])('%s names localhost, whatever it is listed beside: up to 1.37 %s, then %s', (given, before, after) => {
    const networks = given.split(',');
    for (const nodePortAddresses of [networks, networks.toReversed()]) {
      const ports = planNodePorts({ nodePortAddresses }, worker, 'ipv4');
      const later = new Set(['localhost-within-network'] as const);
      expect([namesLocalhost(ports, new Set()), namesLocalhost(ports, later)]).toEqual([before, after]);
    }
  });
});
