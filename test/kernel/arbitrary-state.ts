import * as fc from 'fast-check';
import { type Address, type Family, parseAddress, unspecifiedIPv4 } from '../../src/kernel/address.ts';
import {
  isBuiltInChain,
  type Chain,
  type Rule,
  type RuleArg,
  type TableName,
  type Tables,
  type RuleTarget,
} from '../../src/kernel/iptables/iptables.ts';
import { compareProxyPorts, proxyPortKey, type ProxyPort } from '../../src/kernel/balancer/balancer.ts';
import { formatSocketAddress } from '../../src/kernel/ports-and-marks.ts';
import { parseAddressRange } from '../../src/kernel/address-range.ts';
import type { IpSet } from '../../src/kernel/ipset/ipset.ts';
import { compareEntries, formatEntry, parseEntry, type SetEntry } from '../../src/kernel/ipset/set-entry.ts';
import {
  compareRealServers,
  compareVirtualServers,
  type RealServer,
  type SchedulerFlag,
  type VirtualServer,
} from '../../src/kernel/ipvs/ipvs.ts';
import type { Link, LinkAddress } from '../../src/kernel/link/link.ts';
import { jumpChain, type KernelState } from '../../src/kernel/state.ts';

// Small pools of names and addresses, so that two random states have much in common.
const addresses: { readonly [F in Family]: readonly string[] } = {
  ipv4: ['10.0.0.1', '10.0.0.9', '10.0.0.10', '192.168.1.1', '203.0.113.250'],
  ipv6: ['fd00::1', 'fd00::a', 'fd00:10:96::77', '2001:db8::1:0:0:1', '::1'],
};

function existing<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('not an address');
  return value;
}

const port = fc.constantFrom(53, 80, 443, 8080, 30080);
const protocol = fc.constantFrom('tcp' as const, 'udp' as const, 'sctp' as const);
const mark = fc.constantFrom(0, 1, 0x4000, 0x80000000, 0xffffffff);
const userChains = ['KUBE-SERVICES', 'KUBE-SVC-A', 'KUBE-SVC-B', 'KUBE-SEP-A', 'CNI-1'];

/** Printable text without line breaks, quotes and backslashes among it. */
const text = fc.oneof(
  fc.constantFrom(
    'ns/svc:http',
    'ns/svc:http cluster IP',
    'a "quoted" \\ text',
    "it's",
    '->',
    '# no comment',
    '-j',
    '!',
  ),
  fc.string({ minLength: 1, maxLength: 12 }),
);

/** With the key where it is true, without it where it is false: the parsers leave it out. */
function negatable<T extends object>(arg: fc.Arbitrary<T>): fc.Arbitrary<T & { negated?: true }> {
  return fc.oneof(
    arg,
    arg.map((value) => Object.assign({ negated: true as const }, value)),
  );
}

function ruleArgs(family: Family): fc.Arbitrary<RuleArg> {
  const range = fc
    .tuple(fc.constantFrom(...addresses[family]), fc.constantFrom('', '/0', '/8', '/32'))
    .map(([address, length]) => existing(parseAddressRange(address + length)));
  return fc.oneof(
    negatable(fc.record({ kind: fc.constantFrom('source' as const, 'destination' as const), range })),
    negatable(
      fc.record({
        kind: fc.constantFrom('in-interface' as const, 'out-interface' as const),
        name: fc.constantFrom('eth0', 'cni0', 'veth+'),
      }),
    ),
    negatable(fc.record({ kind: fc.constant('protocol' as const), protocol })),
    fc.record({ kind: fc.constant('module' as const), name: protocol }),
    negatable(
      fc.record({
        kind: fc.constantFrom('destination-port' as const, 'source-port' as const),
        ports: fc.constantFrom({ first: 80, last: 80 }, { first: 80, last: 90 }),
      }),
    ),
    fc.record({ kind: fc.constant('comment' as const), text }),
    negatable(fc.record({ kind: fc.constant('mark' as const), value: mark, mask: mark })),
    negatable(
      fc.record({
        kind: fc.constant('conntrack-state' as const),
        states: fc.uniqueArray(fc.constantFrom('NEW', 'RELATED', 'ESTABLISHED', 'DNAT'), { minLength: 1 }),
      }),
    ),
    negatable(
      fc.record({
        kind: fc.constantFrom('source-type' as const, 'destination-type' as const),
        type: fc.constantFrom('LOCAL', 'UNICAST'),
      }),
    ),
    negatable(
      fc.record({
        kind: fc.constant('match-set' as const),
        set: fc.constantFrom('KUBE-CLUSTER-IP', 'KUBE-LOOP-BACK'),
        directions: fc.array(fc.constantFrom('src' as const, 'dst' as const), { minLength: 1, maxLength: 3 }),
      }),
    ),
    negatable(fc.record({ kind: fc.constant('physdev-is-in' as const) })),
    fc.record({
      kind: fc.constant('virtual-server' as const),
      address: fc.constantFrom(...addresses[family]).map((each) => existing(parseAddress(each))),
      protocol,
      port,
    }),
    fc.record({
      kind: fc.constant('statistic' as const),
      probability: fc.constantFrom('0.3333333333', '0.5000000000', '1.0000000000'),
    }),
    fc.record({
      kind: fc.constant('recent' as const),
      name: fc.constantFrom('KUBE-SEP-A', 'KUBE-SEP-B'),
      action: fc.oneof(
        fc.constant({ kind: 'set' as const }),
        fc.record({ kind: fc.constant('rcheck' as const), seconds: fc.constantFrom(1, 10800), reap: fc.boolean() }),
      ),
    }),
    fc.constantFrom<RuleArg>(
      { kind: 'other', words: ['-m', 'limit', '--limit', '5/min'] },
      { kind: 'other', words: ['-m', 'iprange', '!', '--src-range', '10.0.0.1-10.0.0.9'] },
      { kind: 'other', words: ['-f'] },
    ),
  );
}

function targets(family: Family): fc.Arbitrary<RuleTarget> {
  const address = existing(parseAddress(addresses[family][0] ?? ''));
  return fc.oneof(
    fc.record({ kind: fc.constant('chain' as const), chain: fc.constantFrom(...userChains) }),
    fc.constantFrom<RuleTarget>(
      { kind: 'accept' },
      { kind: 'drop' },
      { kind: 'return' },
      { kind: 'reject' },
      { kind: 'reject', with: 'tcp-reset' },
      { kind: 'masquerade', randomFully: false },
      { kind: 'masquerade', randomFully: true },
      { kind: 'dnat', address, port: 80 },
      { kind: 'dnat', address, port: undefined },
      { kind: 'mark', operation: 'or', value: 0x4000, mask: 0x4000 },
      { kind: 'mark', operation: 'xor', value: 0x4000, mask: 0 },
      { kind: 'mark', operation: 'set', value: 1, mask: 0xff },
      { kind: 'other', words: ['LOG', '--log-prefix', 'say "no": '] },
      { kind: 'other', words: ['LOG'] },
    ),
  );
}

export function rules(family: Family): fc.Arbitrary<Rule> {
  const jump = fc
    .tuple(targets(family), fc.boolean())
    .map(([target, goto]): RuleArg => (goto ? { kind: 'jump', target, goto } : { kind: 'jump', target }));
  return fc
    .tuple(fc.array(ruleArgs(family), { maxLength: 4 }), fc.option(jump, { nil: undefined }))
    .map(([args, target]) => ({ args: target ? [...args, target] : args }));
}

const chainNames: { readonly [T in TableName]?: readonly string[] } = {
  nat: ['PREROUTING', 'POSTROUTING', ...userChains],
  filter: ['INPUT', 'FORWARD', ...userChains],
  mangle: ['OUTPUT', 'KUBE-PROXY-CANARY'],
};

/**
 * Rules of one of the kernel's own chains: few different ones, many of them twice or more. kube-proxy's are those that jump to
 * its chains.
 */
export const repeatedJumps: fc.Arbitrary<readonly Rule[]> = fc.array(
  fc
    .constantFrom('KUBE-SERVICES', 'KUBE-SVC-A', 'KUBE-SVC-B')
    .map((chain): Rule => ({ args: [{ kind: 'jump', target: { kind: 'chain', chain } }] })),
  { maxLength: 6 },
);

/** Chains of one table. One of the kernel's own without rules cannot be written, nor can two spellings of nothing. */
function chainsOf(table: TableName, family: Family): fc.Arbitrary<ReadonlyMap<string, Chain>> {
  const chain = fc.record({
    name: fc.constantFrom(...(chainNames[table] ?? [])),
    rules: fc.array(rules(family), { maxLength: 4 }),
  });
  return fc
    .uniqueArray(chain, { selector: ({ name }) => name, maxLength: 5 })
    .map((chains) => chains.filter(({ name, rules: list }) => list.length > 0 || !isBuiltInChain(table, name)))
    .map((chains) => new Map(chains.map((one) => [one.name, one])))
    .map(withTargets);
}

/** iptables has no jump to a chain that is not there. */
function withTargets(chains: ReadonlyMap<string, Chain>): ReadonlyMap<string, Chain> {
  const jumps = [...chains.values()].flatMap((chain) => chain.rules.map(jumpChain));
  const missing = jumps.filter((name) => name !== undefined).filter((name) => !chains.has(name));
  return new Map([...chains, ...missing.map((name): [string, Chain] => [name, { name, rules: [] }])]);
}

export function tables(family: Family): fc.Arbitrary<Tables> {
  return fc.record(
    { nat: chainsOf('nat', family), filter: chainsOf('filter', family), mangle: chainsOf('mangle', family) },
    { requiredKeys: [] },
  );
}

function entriesOf(type: string, family: Family): fc.Arbitrary<SetEntry> {
  const address = fc.constantFrom(...addresses[family]);
  const portPart = fc.tuple(protocol, port).map(([name, number]) => `${name}:${number}`);
  const network = family === 'ipv4' ? '10.0.0.0/8' : 'fd00::/64';
  const last = type === 'hash:ip,port,net' ? fc.constant(network) : address;
  const value =
    type === 'bitmap:port'
      ? port.map(String)
      : fc
          .tuple(address, portPart, last)
          .map((parts) => parts.slice(0, type === 'hash:ip' ? 1 : type === 'hash:ip,port' ? 2 : 3).join(','));
  // Among an entry's options, these change what the kernel does with it.
  const options = fc.constantFrom(undefined, undefined, ['nomatch'], ['timeout', '60'], ['timeout', '90']);
  return fc.tuple(value, options).map(([text_, own]) => ({ ...parseEntry(text_, type), ...(own && { options: own }) }));
}

const setKinds = fc.constantFrom('hash:ip', 'hash:ip,port', 'hash:ip,port,ip', 'hash:ip,port,net', 'bitmap:port');

const ipSets: fc.Arbitrary<IpSet> = fc
  .tuple(setKinds, fc.constantFrom('ipv4' as const, 'ipv6' as const))
  .chain(([type, family]) =>
    fc
      .record({
        name: fc.constantFrom('KUBE-CLUSTER-IP', 'KUBE-LOOP-BACK', 'KUBE-6-CLUSTER-IP', 'OTHER'),
        maxElements: fc.constantFrom(6, 65536, 131072),
        options: fc.constantFrom(undefined, undefined, ['timeout', '0'], ['comment']),
        entries: fc
          .uniqueArray(entriesOf(type, family), { selector: formatEntry, maxLength: 6 })
          .map((entries) => entries.toSorted(compareEntries)),
      })
      .map(({ name, maxElements, options, entries }): IpSet =>
        type === 'bitmap:port'
          ? { name, type, range: maxElements === 6 ? '0-32767' : '0-65535', options, entries }
          : { name, type, family: family === 'ipv4' ? 'inet' : 'inet6', hashSize: 1024, maxElements, options, entries },
      ),
  );

/** Sets with one that holds some of them, which comes after them. */
export const setsOfSets: fc.Arbitrary<readonly IpSet[]> = fc
  .tuple(fc.subarray(['A', 'B', 'C']), fc.option(fc.subarray(['A', 'B', 'C']), { nil: undefined }))
  .map(([names, held]) => {
    const members: readonly IpSet[] = names.map((name) => ({ name, type: 'hash:ip', family: 'inet', entries: [] }));
    if (!held) return members;
    const entries = held.filter((name) => names.includes(name)).map((name) => parseEntry(name, 'list:set'));
    return [...members, { name: 'GROUP', type: 'list:set', entries }];
  });

export const sets: fc.Arbitrary<readonly IpSet[]> = fc.uniqueArray(ipSets, {
  selector: ({ name }) => name,
  maxLength: 4,
});

function addressOf(family: Family): fc.Arbitrary<Address> {
  return fc.constantFrom(...addresses[family].flatMap((text_) => parseAddress(text_) ?? []));
}

function realServers(family: Family): fc.Arbitrary<readonly RealServer[]> {
  const server = fc.record({
    address: addressOf(family),
    port,
    weight: fc.constantFrom(0, 1, 100),
    forwarding: fc.constantFrom('masquerade' as const, 'direct' as const, 'tunnel' as const),
  });
  return fc
    .uniqueArray(server, { selector: (one) => `${one.address.text} ${one.port}`, maxLength: 5 })
    .map((servers) => servers.sort(compareRealServers));
}

const schedulerFlags = fc.subarray<SchedulerFlag>(['flag-1', 'flag-2', 'flag-3']);

const virtualServer: fc.Arbitrary<VirtualServer> = fc.constantFrom('ipv4' as const, 'ipv6' as const).chain((family) =>
  fc.record(
    {
      family: fc.constant(family),
      protocol: fc.constantFrom('TCP' as const, 'UDP' as const, 'SCTP' as const),
      address: addressOf(family),
      port,
      scheduler: fc.constantFrom('rr', 'wlc', 'mh'),
      schedulerFlags,
      realServers: realServers(family),
      persistentSeconds: fc.constantFrom(1, 10800),
      options: fc.constantFrom(['-o'], ['--pe', 'sip']),
    },
    {
      requiredKeys: ['family', 'protocol', 'address', 'port', 'scheduler', 'schedulerFlags', 'realServers'],
    },
  ),
);

export const virtualServers: fc.Arbitrary<readonly VirtualServer[]> = fc
  .uniqueArray(virtualServer, { selector: (one) => `${one.protocol} ${one.address.text} ${one.port}`, maxLength: 6 })
  .map((servers) => servers.sort(compareVirtualServers));

function linkAddresses(family: Family): fc.Arbitrary<LinkAddress> {
  return fc.record(
    {
      family: fc.constant(family),
      address: addressOf(family),
      prefixLength: fc.constantFrom(24, 32),
      scope: fc.constantFrom('host', 'link'),
    },
    { requiredKeys: ['family', 'address', 'prefixLength'] },
  );
}

/** Links whose kind is known: others cannot be made. */
export const links: fc.Arbitrary<readonly Link[]> = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom('kube-ipvs0', 'nodelocaldns', 'eth0'),
    kind: fc.constantFrom('dummy', 'veth'),
    addresses: fc.uniqueArray(fc.oneof(linkAddresses('ipv4'), linkAddresses('ipv6')), {
      selector: (one) => `${one.address.text}/${one.prefixLength}`,
      maxLength: 5,
    }),
  }),
  { selector: ({ name }) => name, maxLength: 3 },
);

export const sysctls: fc.Arbitrary<ReadonlyMap<string, string>> = fc
  .dictionary(
    fc.constantFrom('net.ipv4.ip_forward', 'net.ipv4.vs.conntrack', 'kernel.printk'),
    fc.constantFrom('0', '1', '4 4 1 7'),
  )
  .map((values) => new Map(Object.entries(values)));

export const modules: fc.Arbitrary<readonly string[]> = fc.uniqueArray(
  fc.constantFrom('ip_vs', 'ip_vs_rr', 'nf_conntrack', 'br_netfilter'),
);

const proxyPorts: fc.Arbitrary<readonly ProxyPort[]> = fc
  .uniqueArray(
    fc
      .record({
        protocol: fc.constantFrom('TCP' as const, 'UDP' as const),
        address: fc.constantFrom(unspecifiedIPv4, parseAddress('192.168.50.11') as Address),
        port: fc.integer({ min: 61000, max: 61009 }),
        endpoints: fc.uniqueArray(fc.record({ address: addressOf('ipv4'), port: fc.integer({ min: 1, max: 65535 }) }), {
          selector: formatSocketAddress,
          maxLength: 3,
        }),
        isSticky: fc.boolean(),
      })
      .map(({ isSticky, ...shape }): ProxyPort => {
        // Without endpoints there is nothing to choose among, and a TCP client may be idle for as long as it likes.
        const isServed = shape.endpoints.length > 0;
        return { ...shape, affinity: isServed && isSticky, udpIdle: isServed && shape.protocol === 'UDP' ? 250 : 0 };
      }),
    { selector: proxyPortKey, maxLength: 6 },
  )
  .map((ports) => ports.sort(compareProxyPorts));

export const states: fc.Arbitrary<KernelState> = fc.record({
  iptables: fc.record({ ipv4: tables('ipv4'), ipv6: tables('ipv6') }, { requiredKeys: [] }),
  nftables: fc.constant([]),
  sets,
  virtualServers,
  proxyPorts,
  links,
  sysctls,
  ipvsTimeouts: fc.option(
    fc.record({ tcp: fc.constantFrom(0, 900), tcpFin: fc.constantFrom(0, 120), udp: fc.constantFrom(0, 300, 301) }),
    { nil: undefined },
  ),
  modules,
});
