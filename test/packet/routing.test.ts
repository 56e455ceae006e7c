import { describe, expect, test } from 'vitest';
import { formatIpAddrJson, parseIpAddrJson, type Link } from '../../src/kernel/link/link.ts';
import { emptyState } from '../../src/kernel/state.ts';
import { readDump } from '../../src/dumps/read-dump.ts';
import { knowAll } from './know-all.ts';
import { selectIPv4, selectIPv6 } from '../../src/packet/routing/places.ts';
import type { Address } from '../../src/kernel/address.ts';
import { routingOf, type OwnSource, type Routing } from '../../src/packet/routing/routing.ts';
import { readAddress } from './lab.ts';

const link = (name: string, address: string, prefixLength: number): Link => ({
  name,
  addresses: [{ family: 'ipv4', address: readAddress(address), prefixLength }],
});

function sourceTo(routing: Routing, to: Address): OwnSource {
  return routing.sourceBy(to, routing.find({ to, from: undefined, mark: 0, input: 'lo' }));
}

describe('a node with a network within another', () => {
  const links = [link('eth0', '10.0.0.1', 8), link('cni0', '10.244.1.1', 24), link('flannel.1', '10.244.0.1', 16)];

  test.each([
    ['10.244.1.7', 'cni0', '10.244.1.1'],
    ['10.244.2.7', 'flannel.1', '10.244.0.1'],
    ['10.1.0.7', 'eth0', '10.0.0.1'],
  ])('reaches %s by the most specific of them: %s', (to, by, from) => {
    const routing = routingOf(knowAll(links), emptyState, 'ipv4');
    const address = readAddress(to);
    expect([routing.interfaceOf(address), sourceTo(routing, address).address.text]).toEqual([by, from]);
  });
});

test('the addresses of Services on kube-ipvs0 do not say which others are the node’s own', () => {
  const state = { ...emptyState, links: [link('kube-ipvs0', '10.96.0.10', 32)] };
  const { isLocal } = routingOf({ ...knowAll([]), hasAllAddresses: () => false }, state, 'ipv4');
  expect(isLocal(readAddress('10.96.0.10'))).toBe(true);
  expect(isLocal(readAddress('192.0.2.7'))).not.toBe(false);
});

test.each([
  [true, false],
  [false, true],
])('rules say which addresses are the node’s only where not all are shown (%s): %s', (hasAll, expected) => {
  const knowledge = { ...knowAll([link('eth0', '192.0.2.13', 24)]), hasAllAddresses: () => hasAll, isOwn: () => true };
  expect(routingOf(knowledge, emptyState, 'ipv4').isLocal(readAddress('192.0.2.11'))).toBe(expected);
});

const ofNode = '$ ip addr\n1: lo: <UP>\n    inet 127.0.0.1/8 scope host lo\n';
const noRoute = { kind: 'none', why: 'no-route' };

test.each<readonly [string, string, object | undefined]>([
  ['prints nothing', `$ ip -6 route show table all\n${ofNode}`, noRoute],
  ['is the last one', `${ofNode}$ ip -6 route show table all\n`, undefined],
  ['fails', `$ ip -6 route show table all\nbash: ip: command not found\n${ofNode}`, undefined],
  ['prints nothing of one table', `$ ip -6 route show table 10\n${ofNode}`, undefined],
  [
    'prints nothing, with an address',
    `$ ip -6 route show table all\n${ofNode}    inet6 ::1/128 scope host\n`,
    undefined,
  ],
])('without routes where a listing of all %s', (_, text, expected) => {
  const { routes, state } = readDump(new Map([['node.txt', text]]));
  const { find, isListed } = routingOf({ ...knowAll(state.links), routes }, state, 'ipv6');
  const found = find({ to: readAddress('fd00::1'), from: undefined, mark: 0, input: 'lo' });
  expect([isListed, isListed ? found : undefined]).toEqual([expected !== undefined, expected]);
});

test.each([
  ['all', 'none'],
  ['local', 'unknown'],
])('routes of table local alone, of a listing of table %s', (table, expected) => {
  const text = `$ ip route show table ${table}\nlocal 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1\n`;
  const { routes, state } = readDump(new Map([['node.txt', text]]));
  const { find } = routingOf({ ...knowAll([]), routes }, state, 'ipv4');
  expect(find({ to: readAddress('192.0.2.1'), from: undefined, mark: 0, input: 'lo' }).kind).toBe(expected);
});

test('an address of a link that the shown table local lacks is unknown, not another host', () => {
  const text = `$ ip addr
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500
    inet 192.168.50.11/24 scope global eth0
3: cni0: <BROADCAST,UP,LOWER_UP> mtu 1500
    inet 10.244.1.1/24 scope global cni0
$ ip route show table all
192.168.50.0/24 dev eth0 proto kernel scope link src 192.168.50.11
local 10.244.1.1 dev cni0 table local proto kernel scope host src 10.244.1.1
`;
  const { routes, state } = readDump(new Map([['node.txt', text]]));
  const { isLocal } = routingOf({ ...knowAll(state.links), routes }, state, 'ipv4');
  expect(isLocal(readAddress('10.244.1.1'))).toBe(true);
  expect(isLocal(readAddress('192.168.50.12'))).toBe(false);
  expect(isLocal(readAddress('192.168.50.11'))).toMatchObject({ missing: { kind: 'own-address', isUnrouted: true } });
});

describe('the source of packets of the node itself', () => {
  const listed = (...links: readonly (readonly [name: string, ...addresses: string[]])[]): readonly Link[] =>
    links.map(([name, ...texts]) => ({
      name,
      addresses: texts.map((text) => {
        const [address = '', length] = text.split('/');
        const parsed = readAddress(address);
        const scope = address.startsWith('fe80') ? 'link' : undefined;
        return { family: parsed.family, address: parsed, prefixLength: Number(length), scope };
      }),
    }));
  const node = listed(
    ['lo', '127.0.0.1/8', '169.254.20.10/32', '::1/128'],
    ['eth0', '192.168.50.11/24', '192.168.50.200/24', 'fd00:192::11/64', '2001:db8:1::11/64', 'fe80::1/64'],
  );
  const bridged = [
    ...node,
    ...listed(['docker0', '172.17.0.1/16'], ['cni0', '10.244.1.1/24', 'fd00:244::1/64', 'fe80::2/64']),
  ];
  const twice = listed(['eth0', '10.0.0.5/24'], ['eth1', '10.0.0.6/24']);
  const close = listed(['eth0', 'fd00:192::11/64', 'fd00:192::abcd/128', 'fd00:192:0:1::11/64']);

  test.each([
    ['the first address of the network', node, '192.168.50.99', ['192.168.50.11']],
    [
      'one of those on outward links, without a network',
      bridged,
      '10.96.0.1',
      ['192.168.50.11', '192.168.50.200', '172.17.0.1', '10.244.1.1'],
    ],
    ['the address of the link', bridged, '10.244.1.7', ['10.244.1.1']],
    ['one of each link, where two have the network', twice, '10.0.0.9', ['10.0.0.5', '10.0.0.6']],
    ['IPv6: the longest prefix, of the one link', node, 'fd00:96::80', ['fd00:192::11']],
    ['IPv6: the longest prefix, of the one link', node, '2001:db8:9::80', ['2001:db8:1::11']],
    ['IPv6: of the link with the network', bridged, 'fd00:244::7', ['fd00:244::1']],
    ['IPv6: any of several links', bridged, 'fd00:96::80', ['fd00:192::11', '2001:db8:1::11', 'fd00:244::1']],
    ['IPv6: an address without a network counts all its bits', close, 'fd00:192::ab00', ['fd00:192::abcd']],
    [
      'IPv6: no bits past the prefix count',
      listed(['eth0', 'fd00:192::11/64', 'fd00:192::12/64']),
      'fd00:192::13',
      ['fd00:192::11', 'fd00:192::12'],
    ],
    ['of a link alone', node, 'fe80::9', ['fe80::1']],
  ])('is %s', (_, links, to, expected) => {
    const address = readAddress(to);
    const routing = routingOf(knowAll(links), emptyState, address.family);
    const { address: source, candidates = [source] } = sourceTo(routing, address);
    expect(candidates.map(({ text }) => text)).toEqual(expected);
  });
});

test.each([
  ['tentative', 'fd00:192::11'],
  ['tentative dadfailed', 'fd00:192::11'],
  ['tentative optimistic', 'fd00:192::12'],
])('IPv6: whether an address that is %s is the source, as text and as JSON', (flags, expected) => {
  const addresses = ['fd00:192::12', 'fd00:192::11'];
  const lines = addresses.map((each, at) => `    inet6 ${each}/64 scope global ${at === 0 ? `${flags} ` : ''}\n`);
  const infos = addresses.map((local, at) => ({
    family: 'inet6',
    local,
    prefixlen: 64,
    ...(at === 0 ? Object.fromEntries(flags.split(' ').map((flag) => [flag, true])) : {}),
  }));
  const to = readAddress('fd00:192::13');
  for (const text of [
    `2: eth0: <UP> mtu 1500\n${lines.join('')}`,
    JSON.stringify([{ ifindex: 2, ifname: 'eth0', addr_info: infos }]),
  ]) {
    const { links } = readDump(new Map([['ip-addr', text]])).state;
    for (const each of [links, parseIpAddrJson(formatIpAddrJson(links)).links]) {
      const routing = routingOf(knowAll(each), emptyState, 'ipv6');
      const { address, candidates = [address] } = sourceTo(routing, to);
      expect(candidates.map(({ text: one }) => one)).toContain(expected);
      expect(routing.isLocal(readAddress('fd00:192::12'))).toBe(expected === 'fd00:192::12');
    }
  }
});

test('a deprecated address is the source only if there is no other, as text and as JSON', () => {
  const addresses = ['fd00:244:1::ff', 'fd00:244:1::1'];
  const lines = addresses.map(
    (each, at) => `    inet6 ${each}/64 scope global ${at === 0 ? 'deprecated ' : ''}nodad \n`,
  );
  const infos = addresses.map((local, at) => ({
    family: 'inet6',
    local,
    prefixlen: 64,
    deprecated: at === 0 || undefined,
  }));
  for (const text of [
    `2: cni0: <UP> mtu 1500\n${lines.join('')}`,
    JSON.stringify([{ ifindex: 2, ifname: 'cni0', addr_info: infos }]),
  ]) {
    const links = readDump(new Map([['ip-addr', text]])).state.links;
    const own = links.flatMap(({ name, addresses: each }) => each.map((one) => ({ ...one, link: name })));
    const chosen = (among: typeof own) => selectIPv6(among, 'cni0', readAddress('fd00:244:1::11'))?.text;
    expect([chosen(own), chosen(own.slice(0, 1))]).toEqual(['fd00:244:1::1', 'fd00:244:1::ff']);
    // One of another link goes before it.
    expect(chosen([...own.slice(0, 1), ...own.slice(1).map((each) => ({ ...each, link: 'eth0' }))])).toBe(
      'fd00:244:1::1',
    );
  }
});

test('a link without an address borrows one of lo, or of another link, and nothing shows of which', () => {
  const at = (name: string, address: string) => {
    return { family: 'ipv4', address: readAddress(address), prefixLength: 24, link: name } as const;
  };
  const chosen = (...own: ReturnType<typeof at>[]) => selectIPv4(own, 'veth1', undefined).map(({ text }) => text);
  const [eth0, docker0] = [at('eth0', '192.168.50.11'), at('docker0', '172.17.0.1')];
  expect(chosen(eth0, docker0)).toEqual(['192.168.50.11', '172.17.0.1']);
  expect(chosen(at('eth0', '192.168.50.11'))).toEqual(['192.168.50.11']);
  expect(chosen(eth0, docker0, at('lo', '203.0.113.8'))).toEqual(['203.0.113.8']);
});
