import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  diffStates,
  isEmptyDelta,
  splitDelta,
  restrictState,
  emptyState,
  type KernelState,
} from '../../src/kernel/state.ts';
import { families, parseAddress } from '../../src/kernel/address.ts';
import type { Rule, Tables } from '../../src/kernel/iptables/iptables.ts';
import { diffTables, formatTablesDelta } from '../../src/kernel/iptables/iptables-delta.ts';
import { ruleMeaning } from '../../src/kernel/iptables/iptables-meaning.ts';
import { rounds } from '../support/rounds.ts';
import { parseRule } from './parse-rule.ts';
import {
  type IpSet,
  diffIpSets,
  formatSetsDelta,
  temporarySetName,
  splitSetsDelta,
} from '../../src/kernel/ipset/ipset.ts';
import { parseEntry } from '../../src/kernel/ipset/set-entry.ts';
import { diffVirtualServers, formatVirtualServersDelta } from '../../src/kernel/ipvs/ipvs-delta.ts';
import {
  formatRealServer,
  formatServiceName,
  formatServiceOptions,
  type RealServer,
  type VirtualServer,
} from '../../src/kernel/ipvs/ipvs.ts';
import { diffLinks, formatLinksDelta, splitLinksDelta } from '../../src/kernel/link/link.ts';
import { partition, type Split } from '../../src/kernel/compare.ts';
import {
  loadTables,
  runIp,
  runIpset,
  runIptablesRestore,
  runIpvsadm,
  withoutEmpty,
  type Kernel,
} from './fake-tools.ts';
import { links, repeatedJumps, rules, sets, setsOfSets, states, tables, virtualServers } from './arbitrary-state.ts';

describe('a delta', () => {
  test('of a state with itself is empty, also where it was parsed anew', () => {
    fc.assert(
      fc.property(states, (a) => {
        expect(isEmptyDelta(diffStates(a, structuredClone(a)))).toBe(true);
      }),
    );
  });

  test('has removals that add nothing', () => {
    fc.assert(
      fc.property(states, states, (a, b) => {
        const { sets: ofSets, virtualServers: servers, links: ofLinks } = splitDelta(diffStates(a, b));
        expect([...servers.removals, ...ofLinks.removals].filter(({ to }) => to)).toEqual([]);
        expect(ofSets.removals.filter((each) => (each.kind === 'set' ? each.to : each.added.length > 0))).toEqual([]);
      }),
    );
  });

  test('names each sysctl and module that differs', () => {
    fc.assert(
      fc.property(states, states, (a, b) => {
        const { sysctls, modules } = diffStates(a, b);
        const wanted = new Map(a.sysctls);
        for (const change of sysctls) {
          if (change.to !== undefined) wanted.set(change.name, change.to);
          else wanted.delete(change.name);
        }
        expect(wanted).toEqual(b.sysctls);
        const loaded = new Set(a.modules);
        for (const { change, name } of modules) {
          if (change === 'added') loaded.add(name);
          else loaded.delete(name);
        }
        expect(loaded).toEqual(new Set(b.modules));
      }),
    );
  });

  test('has nothing about what takes no part: origins, order of chains, sets and entries, sizes of hashes', () => {
    fc.assert(
      fc.property(states, (a) => {
        const shuffled: KernelState = {
          ...a,
          iptables: Object.fromEntries(Object.entries(a.iptables).map(([family, all]) => [family, reverseChains(all)])),
          sets: a.sets.toReversed().map(reverseEntries),
          virtualServers: a.virtualServers.toReversed(),
          links: a.links.toReversed().map(({ name, addresses }) => ({ name, addresses: addresses.toReversed() })),
          modules: a.modules.toReversed(),
        };
        expect(diffStates(a, shuffled)).toEqual(diffStates(a, a));
      }),
    );
  });
});

function reverseChains(all: Tables): Tables {
  return Object.fromEntries(Object.entries(all).map(([table, ofTable]) => [table, new Map([...ofTable].reverse())]));
}

/** The changes as a whole, and additions before removals: a tool ends with the same. */
function waysToMake<Change>(
  changes: readonly Change[],
  split: (changes: readonly Change[]) => Split<Change>,
): readonly (readonly (readonly Change[])[])[] {
  const { additions, removals } = split(changes);
  return [[changes], [additions, removals]];
}

describe("a delta's text does in the tool what the delta says", () => {
  test.each(families)('iptables-restore --noflush, %s', (family) => {
    fc.assert(
      fc.property(tables(family), tables(family), (a, b) => {
        const kernel = loadTables(a);
        runIptablesRestore(kernel, formatTablesDelta(diffTables(a, b)));
        expect(withoutEmpty(kernel)).toEqual(withoutEmpty(loadTables(b)));
      }),
      { numRuns: rounds(500, 8) },
    );
  });

  test('iptables-restore leaves the rules of other programs in the chains of the kernel', () => {
    fc.assert(
      fc.property(fc.array(rules('ipv4'), { maxLength: 4 }), states, states, (foreign, a, b) => {
        const other = foreign.filter((rule) => !/-[jg] KUBE-/.test(ruleMeaning(rule))).map(ruleMeaning);
        const kernel = loadTables(owned(a));
        const input = kernel.get('filter INPUT') ?? [];
        kernel.set('filter INPUT', [...other, ...input]);
        runIptablesRestore(kernel, formatTablesDelta(diffTables(owned(a), owned(b))));
        const left = kernel.get('filter INPUT') ?? [];
        expect(left.filter((rule) => !/-[jg] KUBE-/.test(rule))).toEqual(other);
        expect(left.filter((rule) => /-[jg] KUBE-/.test(rule))).toEqual(loadTables(owned(b)).get('filter INPUT') ?? []);
      }),
    );
  });

  // iptables deletes the first of two equal rules, wherever the one to delete is.
  test('equal jumps in a chain of the kernel: each side has as many as it has, in its order, before the rules of others', () => {
    const jumps = (list: readonly Rule[]): Tables => ({ filter: new Map([['INPUT', { name: 'INPUT', rules: list }]]) });
    fc.assert(
      fc.property(repeatedJumps, repeatedJumps, (a, b) => {
        const kernel = loadTables(jumps(a));
        const others = ['-s 10.0.0.0/8 -j DROP', '-j ACCEPT'];
        kernel.set('filter INPUT', [...(kernel.get('filter INPUT') ?? []), ...others]);
        runIptablesRestore(kernel, formatTablesDelta(diffTables(jumps(a), jumps(b))));
        expect(kernel.get('filter INPUT')).toEqual([...b.map(ruleMeaning), ...others]);
      }),
      { numRuns: rounds(500, 8) },
    );
  });

  test('ipset restore: a set of sets', () => {
    fc.assert(
      fc.property(setsOfSets, setsOfSets, (a, b) => {
        const wanted: Kernel = new Map();
        runIpset(wanted, formatSetsDelta(diffIpSets([], b)));
        for (const way of waysToMake(diffIpSets(a, b), splitSetsDelta)) {
          const kernel: Kernel = new Map();
          runIpset(kernel, formatSetsDelta(diffIpSets([], a)));
          for (const changes of way) runIpset(kernel, formatSetsDelta(changes));
          expect(kernel).toEqual(wanted);
        }
      }),
    );
  });

  test('ipset restore', () => {
    fc.assert(
      fc.property(sets, sets, (a, b) => {
        const wanted: Kernel = new Map();
        runIpset(wanted, formatSetsDelta(diffIpSets([], b)));
        for (const way of waysToMake(diffIpSets(a, b), splitSetsDelta)) {
          const kernel: Kernel = new Map();
          runIpset(kernel, formatSetsDelta(diffIpSets([], a)));
          for (const changes of way) runIpset(kernel, formatSetsDelta(changes));
          expect(kernel).toEqual(wanted);
        }
      }),
    );
  });

  test('ipvsadm -R', () => {
    fc.assert(
      fc.property(virtualServers, virtualServers, (a, b) => {
        const wanted = new Map(
          b.map((service) => [
            formatServiceName(service),
            {
              options: formatServiceOptions(service).trim(),
              reals: new Map(
                service.realServers.map((server) => {
                  const [, , name = '', ...rest] = formatRealServer(server).split(' ');
                  return [name, rest.join(' ')];
                }),
              ),
            },
          ]),
        );
        for (const way of waysToMake(diffVirtualServers(a, b), (changes) => partition(changes, ({ to }) => !to))) {
          const kernel = new Map<string, { options: string; reals: Map<string, string> }>();
          runIpvsadm(kernel, formatVirtualServersDelta(diffVirtualServers([], a)));
          for (const changes of way) runIpvsadm(kernel, formatVirtualServersDelta(changes));
          expect(kernel).toEqual(wanted);
        }
      }),
    );
  });

  test('ip -batch', () => {
    fc.assert(
      fc.property(links, links, (a, b) => {
        const wanted: Kernel = new Map();
        runIp(wanted, formatLinksDelta(diffLinks([], b)));
        for (const way of waysToMake(diffLinks(a, b), splitLinksDelta)) {
          const kernel: Kernel = new Map();
          runIp(kernel, formatLinksDelta(diffLinks([], a)));
          for (const changes of way) runIp(kernel, formatLinksDelta(changes));
          expect(kernel).toEqual(wanted);
        }
      }),
    );
  });

  test('an unchanged chain is not written, a changed one as a whole, a gone one emptied before it goes', () => {
    const from = chains({ A: ['-j ACCEPT'], B: ['-j B2'], B2: [], GONE: ['-j A'], INPUT: ['-j GONE', '-j B'] });
    const to = chains({
      A: ['-j ACCEPT'],
      B: ['-d 10.0.0.1 -j DROP'],
      B2: [],
      NEW: ['-j A'],
      INPUT: ['-j NEW', '-j B'],
    });
    expect(formatTablesDelta(diffTables(from, to))).toBe(
      [
        '*filter',
        ':B - [0:0]',
        ':GONE - [0:0]',
        ':NEW - [0:0]',
        '-A B -d 10.0.0.1 -j DROP',
        '-A NEW -j A',
        '-D INPUT -j GONE',
        '-I INPUT 1 -j NEW',
        '-X GONE',
        'COMMIT',
        '',
      ].join('\n'),
    );
  });

  test('a set that can be swapped is, one of another type is made anew, and deleting comes before adding', () => {
    const set = {
      name: 'S',
      type: 'hash:ip',
      family: 'inet',
      maxElements: 65536,
      entries: [parseEntry('10.0.0.1', 'hash:ip')],
    } as const;
    expect(formatSetsDelta(diffIpSets([set], [{ ...set, maxElements: 9 }]))).toBe(
      'create KPC-SWAP hash:ip family inet maxelem 9\nadd KPC-SWAP 10.0.0.1\nswap KPC-SWAP S\ndestroy KPC-SWAP\n',
    );
    expect(formatSetsDelta(diffIpSets([set], [{ ...set, type: 'hash:net' }]))).toBe(
      'destroy S\ncreate S hash:net family inet maxelem 65536\nadd S 10.0.0.1\n',
    );
    expect(formatSetsDelta(diffIpSets([set], [{ ...set, entries: [parseEntry('10.0.0.2', 'hash:ip')] }]))).toBe(
      'del S 10.0.0.1\nadd S 10.0.0.2\n',
    );
  });

  test('what an ipset that was killed left of a swap goes before anything else', () => {
    const left: IpSet = { name: temporarySetName, type: 'hash:net', entries: [] };
    const changes = splitSetsDelta(diffIpSets([left], [])).additions;
    expect(changes).toEqual([{ kind: 'set', from: left, to: undefined }]);
    const larger: IpSet = { name: 'S', type: 'hash:ip', maxElements: 9, entries: [] };
    const small: IpSet = { ...larger, maxElements: 8 };
    expect(diffIpSets([small, left], [larger])).toEqual([
      { kind: 'set', from: left, to: undefined },
      { kind: 'set', from: small, to: larger },
    ]);
  });

  test('an entry whose option changes goes before it comes back, and what only goes is left to the removals', () => {
    const set = (...lines: readonly string[]): IpSet => ({
      name: 'S',
      type: 'hash:net',
      entries: lines.map((line) => {
        const [entry = '', ...options] = line.split(' ');
        return { ...parseEntry(entry, 'hash:net'), ...(options.length > 0 && { options }) };
      }),
    });
    const changes = diffIpSets(
      [set('10.0.0.0/8 nomatch', '10.1.0.0/16', '10.2.0.0/16')],
      [set('10.0.0.0/8', '10.1.0.0/16', '10.3.0.0/16')],
    );
    const { additions, removals } = splitSetsDelta(changes);
    expect(formatSetsDelta(additions)).toBe('del S 10.0.0.0/8\nadd S 10.0.0.0/8\nadd S 10.3.0.0/16\n');
    expect(formatSetsDelta(removals)).toBe('del S 10.2.0.0/16\n');
  });

  test('entries that do not fit beside those that go come with a new set', () => {
    const set = (maxElements: number, ...entries: readonly string[]): IpSet => ({
      name: 'S',
      type: 'hash:ip',
      maxElements,
      entries: entries.map((entry) => parseEntry(entry, 'hash:ip')),
    });
    const linesOf = (maxElements: number) =>
      formatSetsDelta(
        diffIpSets([set(maxElements, '10.0.0.1', '10.0.0.2')], [set(maxElements, '10.0.0.1', '10.0.0.3')]),
      ).split('\n');
    expect(linesOf(3)).toEqual(['del S 10.0.0.2', 'add S 10.0.0.3', '']);
    expect(linesOf(2).slice(1)).toEqual([
      'add KPC-SWAP 10.0.0.1',
      'add KPC-SWAP 10.0.0.3',
      'swap KPC-SWAP S',
      'destroy KPC-SWAP',
      '',
    ]);
  });

  test('a set of sets goes before those that it holds', () => {
    const member: IpSet = { name: 'A', type: 'hash:ip', entries: [] };
    const holder: IpSet = { name: 'GROUP', type: 'list:set', entries: [parseEntry('A', 'list:set')] };
    expect(formatSetsDelta(diffIpSets([member, holder], []))).toBe('destroy GROUP\ndestroy A\n');
  });

  test('of two equal jumps the first goes, because iptables deletes that one', () => {
    const targets = { A: [], B: [] };
    const from = chains({ INPUT: ['-j A', '-j B', '-j A'], ...targets });
    const to = chains({ INPUT: ['-j A', '-j B'], ...targets });
    const lines = ['-D INPUT -j A', '-D INPUT -j B', '-I INPUT 2 -j B'];
    expect(formatTablesDelta(diffTables(from, to)).split('\n').slice(1, -2)).toEqual(lines);
    // Jumps that go without an equal one that stays are deleted one by one, in the order of the chain.
    const four = chains({ INPUT: ['-j A', '-j B', '-g A', '-g B'], ...targets });
    expect(
      formatTablesDelta(diffTables(four, chains({ INPUT: ['-g A'], ...targets })))
        .split('\n')
        .slice(1, -2),
    ).toEqual(['-D INPUT -j A', '-D INPUT -j B', '-D INPUT -g B']);
    // Nothing equal is to stay: only what goes is deleted.
    const first = chains({ INPUT: ['-j B', '-j A'], ...targets });
    expect(
      formatTablesDelta(diffTables(first, chains({ INPUT: ['-j A'], ...targets })))
        .split('\n')
        .slice(1, -2),
    ).toEqual(['-D INPUT -j B']);
  });

  test('entries that ipset prints in another form are the same', () => {
    expect(diffIpSets([setWith('10.0.0.1,tcp:80,10.0.0.5')], [setWith('10.0.0.1,tcp:80,10.0.0.5/32')])).toEqual([]);
    expect(diffIpSets([setWith('fd00::1,tcp:80,fd00::5')], [setWith('fd00::0:1,tcp:80,fd00::5/128')])).toEqual([]);
  });

  test('timeouts that are 0 stay as they are', () => {
    expect(diffStates(withTimeout(900), withTimeout(0)).ipvsTimeouts).toBeUndefined();
    expect(diffStates(withTimeout(900), withTimeout(600)).ipvsTimeouts?.to.tcp).toBe(600);
  });

  test.each(['tcp', 'tcpFin', 'udp'] as const)('the timeout %s alone is a change, unless it is 0', (name) => {
    const before = { ...emptyState, ipvsTimeouts: { tcp: 900, tcpFin: 120, udp: 300 } };
    const after = (seconds: number): KernelState => {
      return { ...before, ipvsTimeouts: { ...before.ipvsTimeouts, [name]: seconds } };
    };
    expect(diffStates(before, after(60)).ipvsTimeouts).toEqual({
      from: before.ipvsTimeouts,
      to: after(60).ipvsTimeouts,
    });
    expect(diffStates(before, after(0)).ipvsTimeouts).toBeUndefined();
  });

  test('a real server changes in place, whatever of it changes; its virtual server is left alone', () => {
    const [address] = [parseAddress('10.0.0.1')];
    if (!address) throw new Error('not an address');
    const real = { address, port: 8080, weight: 1, forwarding: 'masquerade' } as const;
    const server: VirtualServer = {
      family: 'ipv4',
      protocol: 'TCP',
      address,
      port: 80,
      scheduler: 'rr',
      schedulerFlags: [],
      realServers: [real],
    };
    const to = (change: Partial<RealServer>): string =>
      formatVirtualServersDelta(diffVirtualServers([server], [{ ...server, realServers: [{ ...real, ...change }] }]));
    expect(to({})).toBe('');
    expect(to({ weight: 0 })).toBe('-e -t 10.0.0.1:80 -r 10.0.0.1:8080 -m -w 0\n');
    expect(to({ forwarding: 'direct' })).toBe('-e -t 10.0.0.1:80 -r 10.0.0.1:8080 -g -w 1\n');
  });
});

function chains(all: Readonly<Record<string, readonly string[]>>): Tables {
  return {
    filter: new Map(Object.entries(all).map(([name, list]) => [name, { name, rules: list.map(readRule) }])),
  };
}

function readRule(text: string): Rule {
  return parseRule(text) ?? { args: [] };
}

function reverseEntries(set: IpSet): IpSet {
  return { ...set, hashSize: 4096, entries: set.entries.toReversed() };
}

function setWith(entry: string): IpSet {
  const type = 'hash:ip,port,net';
  return { name: 'S', type, entries: [parseEntry(entry, type)] };
}

function withTimeout(tcp: number): KernelState {
  return { ...emptyState, ipvsTimeouts: { tcp, tcpFin: 0, udp: 300 } };
}

const isKube = (name: string): boolean => name.startsWith('KUBE-');
const kubeOwner = {
  chain: isKube,
  set: isKube,
  virtualServer: () => true,
  link: () => true,
  address: () => true,
  sysctl: () => true,
};

function owned(state: KernelState): Tables {
  return restrictState(state, kubeOwner).iptables.ipv4 ?? {};
}
