import { describe, expect, test } from 'vitest';
import type { NodeContext, ServicePort } from '../../../src/cluster/model.ts';
import type { ProxySettings } from '../../../src/cluster/objects.ts';
import { compileIpvs } from '../../../src/modes/ipvs/compile-ipvs.ts';
import { makeSets, noMembers } from '../../../src/modes/ipvs/rules-and-sets.ts';
import { families } from '../../../src/kernel/address.ts';
import { formatRule } from '../../../src/kernel/iptables/iptables.ts';
import { formatVirtualServer } from '../../../src/kernel/ipvs/ipvs.ts';
import { formatEntry } from '../../../src/kernel/ipset/set-entry.ts';
import type { KernelState } from '../../../src/kernel/state.ts';
import { address, clusterOf, defaults, endpoint, network, remote, servicePort, worker } from '../iptables/compile.ts';

/** Compiles Service ports for worker-1, whose addresses are 192.168.0.1 and fd00::1. */
function compile(ports: readonly ServicePort[], settings: Partial<ProxySettings> = {}, node: NodeContext = worker) {
  return compileIpvs(clusterOf(...ports), node, { ...defaults, mode: 'ipvs', ...settings }, families);
}

/** The virtual servers as ipvsadm has them. */
function servers(state: KernelState): readonly string[] {
  return state.virtualServers.map(formatVirtualServer).join('').trimEnd().split('\n');
}

function entries(state: KernelState, set: string): readonly string[] | undefined {
  return state.sets.find(({ name }) => name === set)?.entries.map(formatEntry);
}

function rules(state: KernelState, table: 'nat' | 'filter', chain: string): readonly string[] {
  return (state.iptables.ipv4?.[table]?.get(chain)?.rules ?? []).map((rule) => formatRule(rule));
}

function bound(state: KernelState): readonly string[] {
  return state.links.flatMap(({ addresses }) => addresses.map(({ address: { text } }) => text));
}

const lan = network('203.0.113.0/24');
const loadBalancer = { loadBalancerIPs: [address('198.51.100.7')] } satisfies Partial<ServicePort>;

describe('a cluster IP', () => {
  const state = compile([servicePort({ endpoints: [remote('10.244.12.5'), endpoint('10.244.1.5')] })]);

  test('is a virtual server with the endpoints behind it, by address as a number', () => {
    expect(servers(state)).toEqual([
      '-A -t 10.96.0.10:80 -s rr',
      '-a -t 10.96.0.10:80 -r 10.244.1.5:8080 -m -w 1',
      '-a -t 10.96.0.10:80 -r 10.244.12.5:8080 -m -w 1',
    ]);
  });

  test('is bound to kube-ipvs0 and stands in the sets', () => {
    expect(bound(state)).toEqual(['10.96.0.10']);
    expect(entries(state, 'KUBE-IPVS-IPS')).toEqual(['10.96.0.10']);
    expect(entries(state, 'KUBE-CLUSTER-IP')).toEqual(['10.96.0.10,tcp:80']);
  });

  test('has its local endpoints, ready or not, masqueraded when they reach themselves', () => {
    const unready = endpoint('10.244.1.6', { ready: false, serving: false });
    const hairpin = compile([servicePort({ endpoints: [endpoint('10.244.1.5'), unready, remote('10.244.2.5')] })]);
    expect(entries(hairpin, 'KUBE-LOOP-BACK')).toEqual([
      '10.244.1.5,tcp:8080,10.244.1.5',
      '10.244.1.6,tcp:8080,10.244.1.6',
    ]);
  });

  test('is masqueraded for clients outside the pod network only', () => {
    expect(rules(state, 'nat', 'KUBE-SERVICES')).toContain(
      '-m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" ' +
        '-m set --match-set KUBE-CLUSTER-IP dst,dst ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ',
    );
  });
});

describe('a virtual server', () => {
  test('keeps a client on one endpoint with session affinity', () => {
    expect(servers(compile([servicePort({ affinitySeconds: 10800 })]))[0]).toBe('-A -t 10.96.0.10:80 -s rr -p 10800');
  });

  test("has the node's scheduler, or the one that its Service's annotation asks for", () => {
    const lc = { ipvs: { ...defaults.ipvs, scheduler: 'lc' } };
    expect(servers(compile([servicePort()], lc))[0]).toBe('-A -t 10.96.0.10:80 -s lc');
    expect(servers(compile([servicePort({ scheduler: 'sh' })], lc))[0]).toBe('-A -t 10.96.0.10:80 -s sh');
  });

  test("mixes the client's port into the hash of scheduler mh, as kube-proxy does", () => {
    const mh = compile([servicePort({ scheduler: 'mh' })]);
    expect(mh.virtualServers[0]?.schedulerFlags).toEqual(['flag-2']);
    expect(mh.modules).toContain('ip_vs_mh');
  });

  test('sends on with the method that the annotation asks for', () => {
    expect(
      servers(compile([servicePort({ forwarding: 'direct', endpoints: [endpoint('10.244.1.5', { port: 80 })] })])),
    ).toContain('-a -t 10.96.0.10:80 -r 10.244.1.5:80 -g -w 1');
  });

  test("goes to the first of two Services that claim its address, whatever the input's order", () => {
    const claim = { clusterIP: address('10.96.0.10'), externalIPs: [address('198.51.100.9')] };
    const first = servicePort({ ...claim, service: 'a', endpoints: [endpoint('10.244.1.1')] });
    const second = servicePort({ ...claim, service: 'b', endpoints: [endpoint('10.244.1.2')] });
    const state = compile([first, second]);
    expect(state.virtualServers.map(({ origin }) => origin?.servicePort)).toEqual(['shop/a', 'shop/a']);
  });

  test('that a Service port claims twice has the endpoints of the later claim, as kube-proxy leaves it', () => {
    const port = servicePort({
      externalIPs: [address('10.96.0.10')],
      externalPolicyLocal: true,
      endpoints: [endpoint('10.244.1.5'), remote('10.244.2.5')],
    });
    expect(servers(compile([port]))).toEqual([
      '-A -t 10.96.0.10:80 -s rr',
      '-a -t 10.96.0.10:80 -r 10.244.1.5:8080 -m -w 1',
    ]);
  });
});

describe('a node port', () => {
  const port = servicePort({ nodePort: 30080 });

  test("is a virtual server at each of the node's addresses but loopback", () => {
    expect(servers(compile([port]))).toContain('-A -t 192.168.0.1:30080 -s rr');
    expect(servers(compile([port])).join('\n')).not.toContain('127.0.0.1');
    expect(entries(compile([port]), 'KUBE-NODE-PORT-TCP')).toEqual(['30080']);
  });

  test('listens in the networks of nodePortAddresses alone', () => {
    const elsewhere = compile([port], { nodePortAddresses: ['172.16.0.0/12'] });
    expect(servers(elsewhere).join('\n')).not.toContain('30080');
    expect(entries(elsewhere, 'KUBE-NODE-PORT-TCP')).toEqual([]);
  });

  test('that has no address to listen on takes the health check port with it, as kube-proxy stops there', () => {
    const local = servicePort({ nodePort: 30080, externalPolicyLocal: true, healthCheckNodePort: 32000 });
    expect(entries(compile([local]), 'KUBE-HEALTH-CHECK-NODE-PORT')).toEqual(['32000']);
    const elsewhere = compile([local], { nodePortAddresses: ['172.16.0.0/12'] });
    expect(entries(elsewhere, 'KUBE-HEALTH-CHECK-NODE-PORT')).toEqual([]);
  });

  test('of SCTP is in a set with the addresses: bitmap:port knows no SCTP', () => {
    const sctp = compile([servicePort({ protocol: 'SCTP', nodePort: 30080 })]);
    expect(entries(sctp, 'KUBE-NODE-PORT-SCTP-HASH')).toEqual(['192.168.0.1,sctp:30080']);
  });

  test('with policy Local is served by the cluster where the node has no endpoint, unlike in iptables mode', () => {
    const local = compile([
      servicePort({ nodePort: 30080, externalPolicyLocal: true, endpoints: [remote('10.244.2.5')] }),
    ]);
    expect(servers(local)).toContain('-a -t 192.168.0.1:30080 -r 10.244.2.5:8080 -m -w 1');
    expect(entries(local, 'KUBE-NODE-PORT-LOCAL-TCP')).toEqual(['30080']);
  });
});

describe('a load balancer address', () => {
  test('with source ranges is closed to others, and to the node where no range holds its address', () => {
    const state = compile([servicePort({ ...loadBalancer, sourceRanges: [lan] })]);
    expect(entries(state, 'KUBE-LOAD-BALANCER-FW')).toEqual(['198.51.100.7,tcp:80']);
    expect(entries(state, 'KUBE-LOAD-BALANCER-SOURCE-CIDR')).toEqual(['198.51.100.7,tcp:80,203.0.113.0/24']);
    expect(entries(state, 'KUBE-LOAD-BALANCER-SOURCE-IP')).toEqual([]);
    expect(rules(state, 'filter', 'KUBE-IPVS-OUT-FILTER')).toEqual([
      '-s 198.51.100.7 -m ipvs --vaddr 198.51.100.7 --vproto tcp --vport 80 -j DROP',
    ]);
  });

  test("with source ranges that hold the node's address is open to the node, from the virtual address itself", () => {
    const state = compile([servicePort({ ...loadBalancer, sourceRanges: [network('192.168.0.0/24')] })]);
    expect(entries(state, 'KUBE-LOAD-BALANCER-SOURCE-IP')).toEqual(['198.51.100.7,tcp:80,198.51.100.7']);
    expect(rules(state, 'filter', 'KUBE-IPVS-OUT-FILTER')).toEqual([]);
  });

  test("that is the node's own is served but not bound to kube-ipvs0", () => {
    const state = compile([servicePort({ loadBalancerIPs: [address('192.168.0.1')] })]);
    expect(servers(state)).toContain('-A -t 192.168.0.1:80 -s rr');
    expect(bound(state)).toEqual(['10.96.0.10']);
  });
});

describe('settings', () => {
  test('strictARP keeps the node from answering for addresses on kube-ipvs0', () => {
    const { sysctls } = compile([], { ipvs: { ...defaults.ipvs, strictARP: true } });
    expect(sysctls.get('net.ipv4.conf.all.arp_ignore')).toBe('1');
    expect(sysctls.get('net.ipv4.conf.all.arp_announce')).toBe('2');
  });

  test('timeouts are set where one is given', () => {
    expect(compile([]).ipvsTimeouts).toBeUndefined();
    expect(compile([], { ipvs: { ...defaults.ipvs, tcpTimeout: 900 } }).ipvsTimeouts).toEqual({
      tcp: 900,
      tcpFin: 0,
      udp: 0,
    });
  });

  test('without a way to tell pods from others, only what comes from a cluster IP is masqueraded', () => {
    expect(rules(compile([servicePort()], { clusterCIDRs: [] }), 'nat', 'KUBE-SERVICES')).toContain(
      '-m comment --comment "Kubernetes service cluster ip + port for masquerade purpose" ' +
        '-m set --match-set KUBE-CLUSTER-IP src,dst -j KUBE-MARK-MASQ',
    );
  });
});

test('makes a set large enough for its entries: the kernel refuses what is past maxelem', () => {
  const endpoints = Array.from({ length: 70_000 }, (_, i) => endpoint(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`));
  const state = compile([servicePort({ endpoints })]);
  const sizes = new Map(state.sets.map(({ name, maxElements }) => [name, maxElements]));
  expect(entries(state, 'KUBE-LOOP-BACK')).toHaveLength(70_000);
  expect(sizes.get('KUBE-LOOP-BACK')).toBe(131_072);
  expect(sizes.get('KUBE-CLUSTER-IP')).toBe(65_536);
});

// kube-proxy's sets hold 65,536 entries, and the kernel refuses what is beyond a set's limit.
test.each([
  [65_535, 65_536],
  [65_536, 65_536],
  [65_537, 131_072],
  [131_072, 131_072],
  [131_073, 262_144],
])('a set of %d entries has room for %d', (count, room) => {
  const members = noMembers();
  for (let i = 0; i < count; i++) {
    const ip = address(`10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`);
    members.clusterIP.push({ address: ip, protocol: 'TCP', port: 80 });
  }
  const set = makeSets(members, 'ipv4').find(({ name }) => name === 'KUBE-CLUSTER-IP');
  expect(set?.entries.length).toBe(count);
  expect(set?.maxElements).toBe(room);
});
