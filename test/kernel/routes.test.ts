import { describe, expect, test } from 'vitest';
import { parseAddress, type Address } from '../../src/kernel/address.ts';
import { lookupRoute, routeKey, ruleKey } from '../../src/kernel/route/route.ts';
import { parseRoutes, parseRoutesJson } from '../../src/kernel/route/parse-routes.ts';
import { parseRoutingRules, parseRoutingRulesJson } from '../../src/kernel/route/parse-rules.ts';

const nothing = { family: undefined, table: undefined };

function address(text: string): Address {
  const parsed = parseAddress(text);
  if (!parsed) throw new Error(text);
  return parsed;
}

const text = `default via 192.168.10.1 dev eth0 proto dhcp src 192.168.10.11 metric 100
blackhole 10.9.0.0/16 proto bird
throw 10.8.0.0/16 table 7
10.7/16 dev eth1 scope link linkdown
default table 9 proto static
	nexthop via 10.0.0.1 dev eth0 weight 1
	nexthop via 10.0.0.2 dev eth1 weight 1
local 192.168.10.11 dev eth0 table local proto kernel scope host src 192.168.10.11
`;
const json = JSON.stringify([
  {
    dst: 'default',
    gateway: '192.168.10.1',
    dev: 'eth0',
    protocol: 'dhcp',
    prefsrc: '192.168.10.11',
    metric: 100,
    flags: [],
  },
  { type: 'blackhole', dst: '10.9.0.0/16', protocol: 'bird', flags: [] },
  { type: 'throw', dst: '10.8.0.0/16', table: '7', flags: [] },
  { dst: '10.7.0.0/16', dev: 'eth1', scope: 'link', flags: ['linkdown'] },
  {
    dst: 'default',
    table: '9',
    nexthops: [
      { gateway: '10.0.0.1', dev: 'eth0', weight: 1 },
      { gateway: '10.0.0.2', dev: 'eth1', weight: 1 },
    ],
  },
  { type: 'local', dst: '192.168.10.11', dev: 'eth0', table: 'local', prefsrc: '192.168.10.11', flags: [] },
]);

test('the text of ip route and its JSON are the same routes', () => {
  const [one, other] = [parseRoutes(text, nothing), parseRoutesJson(json, nothing)];
  expect(one.unread).toEqual([]);
  expect(one.routes.map(routeKey)).toEqual(other.routes.map(routeKey));
  expect(one.routes[4]?.hops.map(({ link }) => link)).toEqual(['eth0', 'eth1']);
});

/** What `ip route show table all` lists of a node with both families; "default" alone says nothing of its own. */
const both = `default dev wg0 table 51820 scope link
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.11
default via inet6 fe80::7 dev eth1 table 7
local 10.0.0.11 dev eth0 table local scope host src 10.0.0.11
fd00::/64 dev eth0 proto kernel metric 256 pref medium
default via fd00::1 dev eth0 metric 1024 pref medium
default dev wg0 table 51820 metric 1024 pref medium
default proto ra metric 1024
	nexthop via fe80::1 dev eth0 weight 1
unreachable default dev lo metric 4294967295 error -101
`;
const bothJson = JSON.stringify([
  { dst: 'default', dev: 'wg0', table: '51820', scope: 'link', flags: [] },
  { dst: '10.0.0.0/24', dev: 'eth0', protocol: 'kernel', prefsrc: '10.0.0.11', flags: [] },
  { dst: 'default', via: { family: 'inet6', host: 'fe80::7' }, dev: 'eth1', table: '7', flags: [] },
  { type: 'local', dst: '10.0.0.11', dev: 'eth0', table: 'local', prefsrc: '10.0.0.11', flags: [] },
  { dst: 'fd00::/64', dev: 'eth0', metric: 256, pref: 'medium', flags: [] },
  { dst: 'default', gateway: 'fd00::1', dev: 'eth0', metric: 1024, pref: 'medium', flags: [] },
  { dst: 'default', dev: 'wg0', table: '51820', metric: 1024, pref: 'medium', flags: [] },
  { dst: 'default', protocol: 'ra', metric: 1024, nexthops: [{ gateway: 'fe80::1', dev: 'eth0', weight: 1 }] },
  { type: 'unreachable', dst: 'default', dev: 'lo', metric: 4294967295, flags: [] },
]);

test('a listing of both families: each default route is of its own', () => {
  const [one, other] = [parseRoutes(both, nothing), parseRoutesJson(bothJson, nothing)];
  expect(one.routes.map(({ family }) => family.at(-1)).join('')).toBe('444466666');
  expect(one.routes.map(routeKey)).toEqual(other.routes.map(routeKey));
});

const ruleText = `0:	from all lookup local
100:	not from all fwmark 0xca6c lookup 51820
200:	from 10.1.0.0/16 to 10.2.0.0/16 iif eth1 lookup main suppress_prefixlength 0
300:	from all to 10.3.0.0/16 unreachable
400:	from all fwmark 0x80/0x80 goto 32766
500:	from all ipproto tcp dport 22 lookup 7
600:	from all ipproto udp sport 5000-5010 uidrange 1000-1999 lookup 7
32766:	from all lookup main
32767:	from all lookup default
`;
const ruleJson = JSON.stringify([
  { priority: 0, src: 'all', table: 'local' },
  { priority: 100, not: null, src: 'all', fwmark: '0xca6c', table: '51820' },
  {
    priority: 200,
    src: '10.1.0.0',
    srclen: 16,
    dst: '10.2.0.0',
    dstlen: 16,
    iif: 'eth1',
    table: 'main',
    suppress_prefixlen: 0,
  },
  { priority: 300, src: 'all', dst: '10.3.0.0', dstlen: 16, action: 'unreachable' },
  { priority: 400, src: 'all', fwmark: '0x80', fwmask: '0x80', goto: 32766 },
  { priority: 500, src: 'all', ipproto: 'tcp', dport: 22, table: '7' },
  {
    priority: 600,
    src: 'all',
    ipproto: 'udp',
    sport_start: 5000,
    sport_end: 5010,
    uid_start: 1000,
    uid_end: 1999,
    table: '7',
  },
  { priority: 32766, src: 'all', table: 'main' },
  { priority: 32767, src: 'all', table: 'default' },
]);

test('the text of ip rule and its JSON are the same rules', () => {
  const [one, other] = [parseRoutingRules(ruleText, undefined), parseRoutingRulesJson(ruleJson, undefined)];
  expect(one.unread).toEqual([]);
  expect(one.rules.map(ruleKey)).toEqual(other.rules.map(ruleKey));
});

describe('a lookup', () => {
  const { routes } = parseRoutes(
    `default via 192.168.10.1 dev eth0 metric 200
default via 192.168.10.2 dev eth0 metric 100
10.0.0.0/8 via 192.168.10.3 dev eth0
10.2.0.0/16 dev wg0
throw 10.2.7.0/24 table 7
prohibit 10.2.8.0/24 table 7
default dev tun0 table 7
local 192.168.10.11 dev eth0 table local scope host
`,
    nothing,
  );
  const known = (rules: string) => ({
    routes,
    tables: undefined,
    rules: parseRoutingRules(`0: from all lookup local\n${rules}32766: from all lookup main\n`, 'ipv4').rules,
    answers: [],
    proxied: [],
    policies: [],
  });
  const ask = (rules: string, to: string, from: string | undefined, mark = 0) => {
    const found = lookupRoute('ipv4', known(rules), {
      to: address(to),
      from: from === undefined ? undefined : address(from),
      mark,
      input: 'eth1',
      transport: { protocol: 'tcp', port: { first: 80, last: 80 }, sourcePort: { first: 32768, last: 60999 } },
    });
    if (found.kind === 'either') return found.kind;
    if (found.kind === 'route') return found.route.hops.map(({ link, gateway }) => gateway?.text ?? link).join();
    if (found.kind === 'unread') return found.text;
    return found.kind === 'none' ? found.why : found.lacks;
  };

  test.each([
    ['the lowest metric', '', '8.8.8.8', undefined, 0, '192.168.10.2'],
    ['the longest prefix', '', '10.2.0.1', undefined, 0, 'wg0'],
    ['by the source', '100: from 10.1.0.0/16 lookup 7\n', '8.8.8.8', '10.1.0.9', 0, 'tun0'],
    [
      'no rule by the source for a packet without one',
      '100: from 10.1.0.0/16 lookup 7\n',
      '8.8.8.8',
      undefined,
      0,
      '192.168.10.2',
    ],
    ['by bits of the mark', '100: from all fwmark 0x80/0x80 lookup 7\n', '8.8.8.8', undefined, 0x4080, 'tun0'],
    ['by another mark', '100: not from all fwmark 0x1 lookup 7\n', '8.8.8.8', undefined, 0, 'tun0'],
    ['throw: the next rule', '100: from all lookup 7\n', '10.2.7.1', undefined, 0, 'wg0'],
    ['prohibit: the end', '100: from all lookup 7\n', '10.2.8.1', undefined, 0, 'prohibit'],
    [
      'a prefix that is too short for the rule',
      '100: from all lookup main suppress_prefixlength 0\n200: from all lookup 7\n',
      '8.8.8.8',
      undefined,
      0,
      'tun0',
    ],
    [
      'a prefix that is not',
      '100: from all lookup main suppress_prefixlength 0\n200: from all lookup 7\n',
      '10.9.9.9',
      undefined,
      0,
      '192.168.10.3',
    ],
    ['by the interface', '100: from all iif eth1 lookup 7\n', '8.8.8.8', undefined, 0, 'tun0'],
    [
      'goto',
      '100: from all goto 300\n200: from all lookup 7\n300: from all unreachable\n',
      '8.8.8.8',
      undefined,
      0,
      'unreachable',
    ],
    [
      'goto to a rule that is not there',
      '100: from all goto 300 [unresolved]\n200: from all lookup 7\n',
      '8.8.8.8',
      undefined,
      0,
      'tun0',
    ],
    ['by the protocol and port', '100: from all ipproto tcp dport 80 lookup 7\n', '8.8.8.8', undefined, 0, 'tun0'],
    ['by another protocol', '100: from all ipproto udp lookup 7\n', '8.8.8.8', undefined, 0, '192.168.10.2'],
    ['by another port', '100: from all dport 22-79 lookup 7\n', '8.8.8.8', undefined, 0, '192.168.10.2'],
    [
      "by a port that no client's kernel chooses",
      '100: from all sport 80 lookup 7\n',
      '8.8.8.8',
      undefined,
      0,
      '192.168.10.2',
    ],
    ['by a port that it may choose', '100: from all sport 40000 lookup 7\n', '8.8.8.8', undefined, 0, 'either'],
    [
      'such a rule that makes no difference',
      '100: from all sport 40000 lookup main\n',
      '8.8.8.8',
      undefined,
      0,
      '192.168.10.2',
    ],
    [
      'by a user of the node: another host is none',
      '100: from all uidrange 1000-1999 lookup 7\n',
      '8.8.8.8',
      undefined,
      0,
      '192.168.10.2',
    ],
    [
      'by root, whose all is that no program sends',
      '100: from all uidrange 0-99 lookup 7\n',
      '8.8.8.8',
      undefined,
      0,
      'tun0',
    ],
    ['a rule that asks for something else', '100: from all tos 0x10 lookup 7\n', '8.8.8.8', undefined, 0, 'either'],
    [
      'a rule that asks for more, and for another source',
      '100: from 10.1.0.0/16 tos 0x10 lookup 7\n',
      '8.8.8.8',
      undefined,
      0,
      '192.168.10.2',
    ],
    [
      'a jump that may be',
      '100: from all tos 0x10 goto 300\n200: from all lookup 7\n300: from all nop\n',
      '8.8.8.8',
      undefined,
      0,
      'either',
    ],
  ])('%s', (_, rules, to, from, mark, expected) => {
    expect(ask(rules, to, from, mark)).toBe(expected);
  });

  test('a table that is not shown, and rules that are not', () => {
    const question = { to: address('8.8.8.8'), from: undefined, mark: 0, input: 'lo' };
    const { rules } = known('100: from all lookup 8\n');
    const partly = { routes, tables: new Set(['main']), rules, answers: [], proxied: [], policies: [] };
    expect(lookupRoute('ipv4', partly, question)).toMatchObject({ kind: 'open', lacks: 'table', table: '8' });
    expect(lookupRoute('ipv4', { ...partly, tables: undefined, rules: undefined }, question)).toMatchObject({
      lacks: 'rules',
    });
  });
});

describe('of two IPv6 routes of one metric', () => {
  const ask = (first: string, second: string): string | undefined => {
    const line = (link: string, preference: string) =>
      `default via fe80::1 dev ${link} metric 1024 pref ${preference}\n`;
    const { routes } = parseRoutes(line('eth0', first) + line('eth1', second), nothing);
    const known = { routes, tables: undefined, rules: undefined, answers: [], proxied: [], policies: [] };
    const found = lookupRoute('ipv6', known, { to: address('2001:db8::7'), from: undefined, mark: 0, input: 'lo' });
    return found.kind === 'route' ? found.route.hops[0]?.link : undefined;
  };

  test.each([
    ['low', 'high', 'eth1'],
    ['medium', 'high', 'eth1'],
    ['medium', 'low', 'eth0'],
    ['medium', 'medium', 'eth0'],
  ])('%s and %s: %s', (first, second, link) => expect(ask(first, second)).toBe(link));
});
