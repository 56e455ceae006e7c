// Addresses, networks, ports and targets of rules are values; what another program put in their place stays as it is.
import { describe, expect, test } from 'vitest';
import { parseAddress } from '../../src/kernel/address.ts';
import { parseAddressRange } from '../../src/kernel/address-range.ts';
import { formatRule } from '../../src/kernel/iptables/iptables.ts';
import { ruleMeaning } from '../../src/kernel/iptables/iptables-meaning.ts';
import { parseRule } from './parse-rule.ts';

function read(text: string) {
  const rule = parseRule(text);
  if (!rule) throw new Error(`not a rule: ${text}`);
  return rule;
}

describe('a value', () => {
  test.each([
    ['-s 10.0.0.1', { kind: 'source', range: parseAddress('10.0.0.1') }],
    ['-s 10.0.0.1/32', { kind: 'source', range: parseAddressRange('10.0.0.1/32') }],
    ['! -d fd00::/8', { kind: 'destination', range: parseAddressRange('fd00::/8'), negated: true }],
    ['--dport 80', { kind: 'destination-port', ports: { first: 80, last: 80 } }],
    ['--sport 1000:2000', { kind: 'source-port', ports: { first: 1000, last: 2000 } }],
    [
      '-j DNAT --to-destination 10.0.0.1:80',
      { kind: 'jump', target: { kind: 'dnat', address: parseAddress('10.0.0.1'), port: 80 } },
    ],
    [
      '-j DNAT --to-destination [fd00::1]:80',
      { kind: 'jump', target: { kind: 'dnat', address: parseAddress('fd00::1'), port: 80 } },
    ],
    [
      '-j DNAT --to-destination fd00::1',
      { kind: 'jump', target: { kind: 'dnat', address: parseAddress('fd00::1'), port: undefined } },
    ],
    [
      '-m ipvs --vaddr fd00::1 --vproto tcp --vport 80',
      { kind: 'virtual-server', address: parseAddress('fd00::1'), protocol: 'tcp', port: 80 },
    ],
  ])('%s, which is written as it was', (text, arg) => {
    const rule = read(text);
    expect(rule.args).toEqual([arg]);
    expect(formatRule(rule)).toBe(text);
  });
});

describe('what is no value is kept word by word', () => {
  test.each([
    '-s www.example.org',
    '-s 10.0.0.1,10.0.0.2',
    '-s 10.0.0.0/255.0.255.0',
    '! -d ::ffff:10.0.0.1/128',
    '-s 10.0.0.0/33',
    '-s 1.2.3',
    '--dport http',
    '--dport 65536',
    '--dport 80,443',
    '-j DNAT --to-destination 10.0.0.1-10.0.0.9',
    '-j DNAT --to-destination 10.0.0.1:80-90',
    '-j DNAT --to-destination :8080',
    '-j DNAT --to-destination [::ffff:10.0.0.1]:80',
    '-j DNAT --to-destination [::ffff:a00:1]:80',
    '-j DNAT --to-destination ::ffff:a00:1',
    '-s ::ffff:a00:1/128',
    '-s 0:0:0:0:0:ffff:a00:1',
    '-j DNAT --to-destination [fd00::1]:80-90',
    '-j DNAT --to-destination 10.0.0.1:80 --random',
    '-m ipvs --vaddr 10.0.0.0/8 --vproto tcp --vport 80',
    '-m ipvs --vaddr 10.0.0.1 --vproto tcp --vport 80000',
    '-m ipvs --vport 80/8 --vaddr 10.0.0.1 --vproto tcp',
  ])('%s', (text) => {
    const rule = read(text);
    expect(formatRule(rule)).toBe(text);
    expect(formatRule(read(ruleMeaning(rule)))).toBe(ruleMeaning(rule));
  });
});

describe('one meaning for all ways to write a value', () => {
  test.each([
    ['-s 10.0.0.1', '-s 10.0.0.1/32'],
    ['-s 10.0.0.9/8', '-s 10.0.0.0/8'],
    ['-d FD00:0::1', '-d fd00::1/128'],
    ['-s 0.0.0.0/0 -j DROP', '-j DROP'],
    ['-d ::/0 -j DROP', '-j DROP'],
    ['--dport 80:80', '--dport 80'],
    ['--dport 1024:', '--dport 1024:65535'],
    ['--sport :1023', '--sport 0:1023'],
    ['-j DNAT --to-destination [fd00:0::1]:80', '-j DNAT --to-destination [fd00::1]:80'],
    ['-j DNAT --to-destination fd00:0::1', '-j DNAT --to-destination fd00::1'],
    ['-m ipvs --vaddr 10.0.0.1/32 --vproto 6 --vport 80', '-m ipvs --vaddr 10.0.0.1 --vproto tcp --vport 80'],
  ])('%s is %s', (one, other) => {
    expect(ruleMeaning(read(one))).toBe(ruleMeaning(read(other)));
  });

  test.each([
    ['-s 10.0.0.1', '-s 10.0.0.0/31'],
    ['! -s 0.0.0.0/0 -j DROP', '-j DROP'],
    ['--dport 80', '--dport 80:81'],
    ['-j DNAT --to-destination 10.0.0.1', '-j DNAT --to-destination 10.0.0.1:80'],
    ['-s ::ffff:10.0.0.1/128', '-s 10.0.0.1'],
  ])('%s is not %s', (one, other) => {
    expect(ruleMeaning(read(one))).not.toBe(ruleMeaning(read(other)));
  });
});
