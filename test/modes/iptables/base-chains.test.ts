import { describe, expect, test } from 'vitest';
import { compileIptables } from '../../../src/modes/iptables/compile-iptables.ts';
import type { Family } from '../../../src/kernel/address.ts';
import { address, chainNames, clusterOf, compile, defaults, endpoint, rules, servicePort, worker } from './compile.ts';

const dispatch = '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"';

describe('without any Service', () => {
  const state = compile([]);

  test('both tables have their chains all the same', () => {
    expect(chainNames(state, 'nat').join(' ')).toBe(
      'PREROUTING OUTPUT POSTROUTING KUBE-SERVICES KUBE-NODEPORTS KUBE-POSTROUTING KUBE-MARK-MASQ',
    );
    expect(chainNames(state, 'filter').join(' ')).toBe(
      'INPUT FORWARD OUTPUT KUBE-SERVICES KUBE-EXTERNAL-SERVICES KUBE-FORWARD KUBE-NODEPORTS KUBE-PROXY-FIREWALL KUBE-FIREWALL',
    );
    expect(chainNames(state, 'filter', 'ipv6')).toEqual(chainNames(state, 'filter'));
  });

  test('the jumps that kube-proxy inserts last stand first', () => {
    expect(rules(state, 'filter', 'INPUT')).toEqual([
      '-j KUBE-FIREWALL',
      '-m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL',
      '-m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS',
      '-m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES',
    ]);
    expect(rules(state, 'filter', 'FORWARD')).toEqual([
      '-m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL',
      '-m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD',
      '-m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      '-m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES',
    ]);
    expect(rules(state, 'filter', 'OUTPUT')).toEqual([
      '-j KUBE-FIREWALL',
      '-m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL',
      '-m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    ]);
    for (const chain of ['PREROUTING', 'OUTPUT']) {
      expect(rules(state, 'nat', chain)).toEqual([
        '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
      ]);
    }
  });

  test('marked packets are masqueraded and forwarded, those out of window dropped', () => {
    expect(rules(state, 'nat', 'KUBE-MARK-MASQ')).toEqual(['-j MARK --or-mark 0x00004000']);
    expect(rules(state, 'nat', 'KUBE-POSTROUTING')).toEqual([
      '-m mark ! --mark 0x00004000/0x00004000 -j RETURN',
      '-j MARK --xor-mark 0x00004000',
      '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    ]);
    expect(rules(state, 'filter', 'KUBE-FORWARD')).toEqual([
      '-m conntrack --ctstate INVALID -j DROP',
      '-m comment --comment "kubernetes forwarding rules" -m mark --mark 0x00004000/0x00004000 -j ACCEPT',
      '-m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
    ]);
  });

  test('needs the modules of its matches', () => {
    expect(state.modules).toEqual(['nf_conntrack', 'xt_comment', 'xt_mark', 'xt_addrtype', 'xt_conntrack']);
  });
});

test('only the families asked for are compiled, and route_localnet is IPv4’s', () => {
  const state = compileIptables(clusterOf(), worker, defaults, ['ipv6']);
  expect(Object.keys(state.iptables)).toEqual(['ipv6']);
  expect([...state.sysctls]).toEqual([]);
});

test('the mark may be any bit, the highest included', () => {
  expect(rules(compile([], { masqueradeBit: 31 }), 'nat', 'KUBE-MARK-MASQ')).toEqual(['-j MARK --or-mark 0x80000000']);
  expect(rules(compile([], { masqueradeBit: 0 }), 'nat', 'KUBE-MARK-MASQ')).toEqual(['-j MARK --or-mark 0x00000001']);
});

test('where conntrack is liberal nothing is out of window, and nothing dropped for it', () => {
  const state = compile([], { conntrack: { ...defaults.conntrack, tcpBeLiberal: true } });
  expect(rules(state, 'filter', 'KUBE-FORWARD')?.join('\n')).not.toContain('INVALID');
});

describe('node ports on 127.0.0.1', () => {
  const protection =
    '-m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';

  test('are on by default, in IPv4 only, with route_localnet and protection from neighbours', () => {
    const state = compile([]);
    expect([...state.sysctls]).toEqual([['net.ipv4.conf.all.route_localnet', '1']]);
    expect(rules(state, 'filter', 'KUBE-FIREWALL')).toEqual([protection]);
    expect(rules(state, 'filter', 'KUBE-FIREWALL', 'ipv6')).toEqual([]);
    expect(rules(state, 'nat', 'KUBE-SERVICES')).toEqual([
      `${dispatch} -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
    ]);
    expect(rules(state, 'nat', 'KUBE-SERVICES', 'ipv6')).toEqual([
      `${dispatch} -m addrtype --dst-type LOCAL ! -d ::1/128 -j KUBE-NODEPORTS`,
    ]);
  });

  test('can be turned off', () => {
    const state = compile([], { localhostNodePorts: false });
    expect([...state.sysctls]).toEqual([]);
    expect(rules(state, 'filter', 'KUBE-FIREWALL')).toEqual([]);
    expect(rules(state, 'nat', 'KUBE-SERVICES')).toEqual([
      `${dispatch} -m addrtype --dst-type LOCAL ! -d 127.0.0.0/8 -j KUBE-NODEPORTS`,
    ]);
  });

  test('go with node port addresses that leave loopback out', () => {
    const state = compile([], { nodePortAddresses: ['192.168.0.0/24'] });
    expect([...state.sysctls]).toEqual([]);
    expect(rules(state, 'filter', 'KUBE-FIREWALL')).toEqual([]);
  });

  test('stay with node port addresses that name it', () => {
    const state = compile([], { nodePortAddresses: ['127.0.0.0/8'] });
    expect([...state.sysctls]).toEqual([['net.ipv4.conf.all.route_localnet', '1']]);
    expect(rules(state, 'nat', 'KUBE-SERVICES')).toEqual([`${dispatch} -d 127.0.0.1 -j KUBE-NODEPORTS`]);
  });
});

/** What the jumps to node ports match, on a node with one more address. */
function jumpsTo(nodePortAddresses: readonly string[], family: Family, localhostNodePorts = true) {
  const hostAddresses = [...worker.hostAddresses, address('192.168.0.9')];
  const state = compile([], { nodePortAddresses, localhostNodePorts }, { ...worker, hostAddresses });
  return rules(state, 'nat', 'KUBE-SERVICES', family)?.map((rule) =>
    rule.replace(`${dispatch} `, '').replace(' -j KUBE-NODEPORTS', ''),
  );
}

describe('node port addresses', () => {
  test('are those of the node in the networks given', () => {
    expect(jumpsTo(['192.168.0.0/16'], 'ipv4')).toEqual(['-d 192.168.0.1', '-d 192.168.0.9']);
    expect(jumpsTo(['192.168.0.9/32', '192.168.0.0/16'], 'ipv4')).toEqual(['-d 192.168.0.1', '-d 192.168.0.9']);
    expect(jumpsTo(['203.0.113.0/24'], 'ipv4')).toEqual([]);
  });

  test('are all in a family that none is given for', () => {
    expect(jumpsTo(['192.168.0.0/16'], 'ipv6')).toEqual(['-m addrtype --dst-type LOCAL ! -d ::1/128']);
  });

  test('are all where one of the networks is everything', () => {
    expect(jumpsTo(['192.168.0.0/16', '0.0.0.0/0'], 'ipv4')).toEqual(['-m addrtype --dst-type LOCAL']);
  });

  test('never include IPv6 loopback, and 127.0.0.1 only where node ports work there', () => {
    expect(jumpsTo(['::1/128', 'fd00::/64'], 'ipv6')).toEqual(['-d fd00::1']);
    expect(jumpsTo(['127.0.0.0/8', '192.168.0.1/32'], 'ipv4')).toEqual(['-d 127.0.0.1', '-d 192.168.0.1']);
    expect(jumpsTo(['127.0.0.0/8', '192.168.0.1/32'], 'ipv4', false)).toEqual(['-d 192.168.0.1']);
  });

  test('come after all Services, whose ports could have a node port’s number', () => {
    const state = compile([servicePort({ nodePort: 30080, endpoints: [endpoint('10.244.1.5')] })]);
    expect(rules(state, 'nat', 'KUBE-SERVICES')?.at(-1)).toContain('this must be the last rule in this chain');
  });
});
