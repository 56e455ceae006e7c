import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { families } from '../../src/kernel/address.ts';
import {
  formatAppends,
  writeIptablesTables,
  type Chain,
  type TableName,
  type Tables,
} from '../../src/kernel/iptables/iptables.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { formatSets, parseIpsetSave } from '../../src/kernel/ipset/ipset.ts';
import { formatVirtualServer, parseIpvsadm } from '../../src/kernel/ipvs/ipvs.ts';
import { formatLinks, parseIpAddrJson, parseIpBatch } from '../../src/kernel/link/link.ts';
import { formatModules, parseModules, formatSysctls, parseSysctls } from '../../src/kernel/sysctls-and-modules.ts';
import { rounds } from '../support/rounds.ts';
import { links, modules, sets, sysctls, tables, virtualServers } from './arbitrary-state.ts';

/** Maps compare in any order in vitest; what a chain holds, and in which order, is compared as it is. */
function plain(value: Tables): unknown {
  return Object.fromEntries(
    Object.entries(value).map(([name, chains]: [string, ReadonlyMap<string, Chain>]) => [
      name as TableName,
      [...chains],
    ]),
  );
}

/** Chains of the kernel come to stand after the declared ones, because nothing declares them. */
function sorted(value: Tables): unknown {
  return plain(
    Object.fromEntries(
      Object.entries(value).map(([name, chains]) => [name, new Map([...chains].sort(([a], [b]) => (a < b ? -1 : 1)))]),
    ),
  );
}

describe('what is written reads back as the same state', () => {
  test.each(families)('iptables.restore, %s', (family) => {
    fc.assert(
      fc.property(tables(family), (state) => {
        const read = parseIptablesSave(writeIptablesTables(state, formatAppends).join(''));
        expect(read.unread).toEqual([]);
        expect(sorted(read.tables)).toEqual(sorted(state));
      }),
      { numRuns: rounds(500, 8) },
    );
  });

  test('ipset.restore', () => {
    fc.assert(
      fc.property(sets, (state) => {
        expect(parseIpsetSave(formatSets(state))).toEqual({ sets: state, unread: [] });
      }),
    );
  });

  test('ipvsadm.restore', () => {
    fc.assert(
      fc.property(virtualServers, (state) => {
        expect(parseIpvsadm(state.map(formatVirtualServer).join(''))).toEqual({
          virtualServers: state,
          last: state.at(-1),
          unread: [],
        });
      }),
    );
  });

  test('ip.batch', () => {
    fc.assert(
      fc.property(links, (state) => {
        expect(parseIpBatch(formatLinks(state))).toEqual({ links: state, unread: [] });
      }),
    );
  });

  test('sysctl.conf', () => {
    fc.assert(
      fc.property(sysctls, (state) => {
        const read = parseSysctls(formatSysctls(state));
        expect(read.unread).toEqual([]);
        expect([...read.sysctls]).toEqual([...state]);
      }),
    );
  });

  test('modules.conf', () => {
    fc.assert(
      fc.property(modules, (state) => {
        expect(parseModules(formatModules(state))).toEqual({ modules: state, unread: [] });
      }),
    );
  });
});

describe('any text can be read', () => {
  const words = fc.constantFrom(
    ...'*nat *filter :X - [0:0] -A -I X 1 ! -s -m mark comment --comment " recent --name -j MARK COMMIT'.split(' '),
    ...'create add hash:ip family -t 10.0.0.1:80 [::1]:80 -r -w -p -b link addr dev kube-ipvs0 = \\ {} ['.split(' '),
    '__proto__',
    '\r',
    '\0',
    '\n',
    '\n\n',
  );
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.array(words, { maxLength: 30 }).map((list) => list.join(' ')),
  );

  test('without an exception, and what was read can be written and read again', () => {
    fc.assert(
      fc.property(texts, (text) => {
        // A second reading finds what the first one wrote.
        const { tables: read } = parseIptablesSave(text);
        expect(parseIptablesSave(writeIptablesTables(read, formatAppends).join('')).unread).toEqual([]);
        expect(parseIpsetSave(formatSets(parseIpsetSave(text).sets)).unread).toEqual([]);
        expect(parseIpvsadm(parseIpvsadm(text).virtualServers.map(formatVirtualServer).join('')).unread).toEqual([]);
        expect(parseIpBatch(formatLinks(parseIpBatch(text).links)).unread).toEqual([]);
        expect(parseIpBatch(formatLinks(parseIpAddrJson(text).links)).unread).toEqual([]);
        expect(parseSysctls(formatSysctls(parseSysctls(text).sysctls)).unread).toEqual([]);
        expect(parseModules(formatModules(parseModules(text).modules)).unread).toEqual([]);
      }),
      { numRuns: rounds(1000, 8) },
    );
  });

  test('and every line that is not blank or a comment is read or reported', () => {
    const read = parseIptablesSave('junk\n*nat\n-Z X\n:X\n-A X -m comment --comment "open\n*nowhere\n-A X\nCOMMIT\n');
    expect(read.unread).toEqual([
      { line: 1, text: 'junk', reason: 'no-head' },
      { line: 3, text: '-Z X', reason: 'other-line' },
      { line: 4, text: ':X', reason: 'other-line' },
      { line: 5, text: '-A X -m comment --comment "open', reason: 'open-quote' },
      { line: 6, text: '*nowhere', reason: 'other-table' },
      { line: 7, text: '-A X', reason: 'no-head' },
    ]);
  });

  test('and rules without COMMIT are told from all the rules', () => {
    expect(parseIptablesSave('').complete).toBe(true);
    expect(parseIptablesSave('*nat\n:X -\nCOMMIT\n*filter\nCOMMIT\n').complete).toBe(true);
    expect(parseIptablesSave('*nat\n:X -\nCOMMIT\n*filter\n').complete).toBe(false);
    expect(parseIptablesSave('*nat\n:X -\n*filter\nCOMMIT\n').complete).toBe(false);
  });
});
