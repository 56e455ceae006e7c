import { describe, expect, test } from 'vitest';
import { assumedLines, claim, keptBundle, manifest, ownershipRecord, snapshot } from '#checks';
import { findFaults, readChecked, type Check } from '../../src/base/json/check.ts';
import { bundleFaultWords } from '../../src/say/words/bundle.ts';
import {
  amount,
  listOf,
  mapOf,
  nullable,
  objectOf,
  oneOf,
  optional,
  text,
  variantOf,
  wholeNumber,
  type Schema,
  type Shaped,
} from '../../src/base/json/schema.ts';

function wordsOf(check: Check, value: unknown): string | undefined {
  const read = readChecked(check, value);
  return 'wrong' in read ? bundleFaultWords(read.wrong) : undefined;
}

const pod = { name: 'web-0', addresses: ['10.244.1.5'] };

test.each<[value: unknown, wrong: string | undefined]>([
  [[], undefined],
  [[{ workload: 'a', pods: [] }], undefined],
  [[{ workload: 'a', pods: [{ ...pod, node: 'worker-1', other: true }] }], undefined],
  [{}, 'it must be a list'],
  [[null], '[0] must be an object'],
  [[{ workload: 'a', pods: [pod, { name: 'b' }] }], '[0].pods[1].addresses is missing'],
  [[{ workload: 'a', pods: [{ ...pod, addresses: ['10.244.1'] }] }], '[0].pods[0].addresses[0] must be an IP address'],
  [[{ workload: 'a', pods: [{ ...pod, addresses: [5] }] }], '[0].pods[0].addresses[0] must be an IP address'],
  [[{ workload: 'a', pods: [{ ...pod, node: null }] }], '[0].pods[0].node must be a string'],
])('%j', (value, wrong) => {
  expect(wordsOf(assumedLines, value)).toBe(wrong);
});

test.each<[check: Check, value: unknown, wrong: string]>([
  [claim, 'x', 'it must be an object'],
  [claim, { pid: 0, started: '1', bootId: 'x', command: 'apply' }, 'pid must be a whole number from 1 on'],
  [claim, { pid: 2 ** 53, started: '1', bootId: 'x', command: 'apply' }, 'pid must be a whole number from 1 on'],
  [claim, { pid: 1, started: '1', bootId: 'x', command: 'apply', since: Infinity }, 'since must be a number from 0 on'],
  [keptBundle, { folder: 'x', files: { 'a b': 1 } }, 'files."a b" must be a string'],
  [keptBundle, { folder: 'x', files: [] }, 'files must be an object'],
])('%#: %j', (check, value, wrong) => {
  expect(wordsOf(check, value)).toBe(wrong);
});

test('the field of a union that names a variant is wrong if it names none, or is not there', () => {
  const local = manifest.fields?.['settings']?.fields?.['detectLocal'];
  if (local === undefined) throw new Error('detectLocal is no field');
  const modes = '"ClusterCIDR" or "NodeCIDR" or "BridgeInterface" or "InterfaceNamePrefix"';
  expect(readChecked(local, { mode: 'NodeCIDR' })).toHaveProperty('value');
  expect(wordsOf(local, { mode: 'constructor' })).toBe(`mode must be ${modes}`);
  expect(wordsOf(local, {})).toBe(`mode must be ${modes}`);
  expect(wordsOf(local, { mode: 'BridgeInterface' })).toBe('bridgeInterface is missing');
  expect(wordsOf(local, { mode: 'BridgeInterface', bridgeInterface: 'a b' })).toBe(
    'bridgeInterface must be the name of an interface',
  );
});

test('of a value of the right type, what a predicate asks is said', () => {
  const settings = snapshot.fields?.['settingsMade'];
  if (settings === undefined) throw new Error('settingsMade is no field');
  expect(wordsOf(settings, { '/etc/passwd': [] })).toBe('it must be an object with paths of network sysctls');
  expect(wordsOf(settings, { '/proc/sys/net/ipv4/ip_forward': '1' })).toBe(
    '/proc/sys/net/ipv4/ip_forward must be a list'.replace(/^\S+/, '"/proc/sys/net/ipv4/ip_forward"'),
  );
});

test('as many faults as are asked for, in the order of the value', () => {
  const draining = Array.from({ length: 100_000 }, () => ({ virtualServer: 1, realServer: 2 }));
  const value = { bootId: 'x', owned: {}, draining };
  const faults = findFaults(ownershipRecord, value, 10);
  expect(faults.map(({ problem, path }) => `${problem} ${path.join('.')}`).slice(7)).toEqual([
    'missing owned.nftTables',
    'wrong draining.0.virtualServer',
    'wrong draining.0.realServer',
  ]);
});

describe('types', () => {
  interface Port {
    readonly name: string;
    readonly number: number;
    readonly node?: number | undefined;
  }

  test('a schema is checked against the type that it stands for', () => {
    const schemas = [
      // @ts-expect-error: the name of a port is a text.
      objectOf<Port>({ name: amount, number: amount, node: optional(amount) }),
      // @ts-expect-error: each field needs a schema, those that may be missing too.
      objectOf<Port>({ name: text, number: amount }),
      // @ts-expect-error: the number may not be missing.
      objectOf<Port>({ name: text, number: optional(amount), node: optional(amount) }),
      objectOf<Port>({ name: text, number: wholeNumber(1, 65_535), node: optional(wholeNumber(0)) }),
      listOf(text),
    ];
    expect(schemas).toHaveLength(5);
  });

  test('follow from schemas', () => {
    const local = variantOf('mode', {
      off: objectOf<object>({}),
      bridge: objectOf<{ readonly name: string }>({ name: text }),
    });
    const off: Shaped<typeof local> = { mode: 'off' };
    const bridge: Shaped<typeof local> = { mode: 'bridge', name: 'cni0' };
    // @ts-expect-error: a bridge has a name.
    const nameless: Shaped<typeof local> = { mode: 'bridge' };
    const files: Schema<{ readonly [Name in 'a' | 'b']?: string }> = mapOf<string, 'a' | 'b'>(text);
    const word: Schema<'x' | 'y' | null> = nullable(oneOf('x', 'y'));
    expect([off, bridge, nameless, files, word]).toHaveLength(5);
  });
});
