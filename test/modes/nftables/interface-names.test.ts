import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { isInterfaceName, isInterfacePrefix } from '../../../src/base/names.ts';
import { formatNftRule } from '../../../src/kernel/nftables/format.ts';
import { whyNoNetwork } from './network.ts';

function iifname(name: string): string {
  return formatNftRule({
    expressions: [
      {
        kind: 'match',
        left: [{ name: 'iifname' }],
        right: { elements: [{ key: [{ kind: 'word', text: name }] }] },
      },
    ],
    comment: undefined,
  });
}

const ordinary = ['eth0', 'cni0', 'docker0', 'br-1a2b', 'veth*', 'cali*', 'eth0.100'];
const strange = [
  'define',
  'th',
  'eq',
  'tcp',
  'sctp',
  'counter',
  'bridge',
  'include',
  'rt0',
  '10',
  '0x10',
  '010',
  '1abc',
  'a:b',
  'ééééééé',
];

test.each(ordinary)('%s stands as kube-proxy writes it', (name) => {
  expect(iifname(name)).toBe(`iifname ${name}`);
});

test.each(strange)('%s stands in quotes', (name) => {
  expect(iifname(name)).toBe(`iifname "${name}"`);
});

describe.skipIf(whyNoNetwork() !== undefined)('nft', () => {
  test.each([...ordinary, ...strange, 'tcp*', 'define*', 'abcdefghijklmn*'])('takes %s', (name) => {
    const input = `table ip t {\n chain c {\n ${iifname(name)} accept\n }\n}\n`;
    const { status, stderr } = spawnSync('unshare', ['-rn', 'nft', '-c', '-f', '-'], { input, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});

test.each(['*', 'br*', 'a*b', 'a/b', 'a b', 'é'.repeat(8), 'a'.repeat(16), ''])('"%s" is no interface', (name) => {
  expect(isInterfaceName(name)).toBe(false);
  expect(isInterfacePrefix(name)).toBe(false);
});

test('a prefix leaves a byte to the wildcard', () => {
  expect([isInterfaceName('a'.repeat(15)), isInterfacePrefix('a'.repeat(15))]).toEqual([true, false]);
  expect([isInterfacePrefix('a'.repeat(14)), isInterfacePrefix('é'.repeat(7))]).toEqual([true, true]);
});
