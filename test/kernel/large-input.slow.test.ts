import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decompileIptables } from '../../src/snapshot/decompile-iptables.ts';
import { diffStates, emptyState } from '../../src/kernel/state.ts';
import { ruleMeaning } from '../../src/kernel/iptables/iptables-meaning.ts';
import { parseIptablesSave } from '../../src/kernel/iptables/parse-save.ts';
import { secondsOfPlainMegabyte } from '../support/cpu-time.ts';
import { parseRule } from './parse-rule.ts';
import { parseIpAddrJson } from '../../src/kernel/link/link.ts';

function nat(lines: readonly string[]) {
  return parseIptablesSave(`*nat\n${lines.join('\n')}\nCOMMIT\n`).tables;
}

function repeat(count: number, line: (i: number) => string): readonly string[] {
  return Array.from({ length: count }, (_, i) => line(i));
}

/** How many of each, and what they may cost in megabytes of ordinary YAML. */
const [many, most] = [100_000, 20];

describe('input of any length is read in time that grows with it', () => {
  // What takes time in the square of these lengths takes minutes.
  let megabyte: number;
  let before: NodeJS.CpuUsage;
  beforeEach(async () => {
    megabyte = await secondsOfPlainMegabyte();
    before = process.cpuUsage();
  });
  afterEach(() => {
    const { user, system } = process.cpuUsage(before);
    const cost = (user + system) / 1e6 / megabyte;
    if (cost > most) throw new Error(`it took as much CPU time as ${cost} megabytes of ordinary YAML`);
  });

  test('a rule with many arguments', () => {
    const rule = parseRule(repeat(many, (i) => `-s 10.0.${i % 7}.${i % 250}`).join(' '));
    const words = ` ${ruleMeaning(rule ?? { args: [] })}`.split(' -s ');
    expect(words).toEqual(words.toSorted());
  });

  test("a kernel's own chain with many jumps", () => {
    const from = { ...emptyState, iptables: { ipv4: nat(repeat(many, (i) => `-A OUTPUT -j T${i}`)) } };
    const to = { ...emptyState, iptables: { ipv4: nat(repeat(many, (i) => `-A OUTPUT -j T${many - i}`)) } };
    expect(diffStates(from, to).iptables.ipv4?.[0]?.changes.length).toBe(2 * many - 2);
  });

  test('many Services whose own chains have no comments', () => {
    const jumps = repeat(many / 5, (i) => {
      const match = `-d 10.96.${i >> 8}.${i & 255}/32 -p tcp -m comment --comment "ns/s${i} cluster IP" -m tcp --dport 80`;
      return `-A KUBE-SERVICES ${match} -j KUBE-SVC-${i}`;
    });
    const chains = repeat(many / 5, (i) => `-A KUBE-SVC-${i} -j KUBE-SEP-${i}`);
    const endpoints = repeat(many / 5, (i) => `-A KUBE-SEP-${i} -j DNAT --to-destination 10.0.0.${i % 250}:80`);
    const ports = decompileIptables({ ...emptyState, iptables: { ipv4: nat([...jumps, ...chains, ...endpoints]) } });
    expect(ports.length).toBe(many / 5);
    expect(ports.every((port) => port.endpoints?.length === 1)).toBe(true);
  });

  test('JSON of any depth', () => {
    const { unread } = parseIpAddrJson('['.repeat(many) + ']'.repeat(many));
    expect(unread.map(({ reason }) => reason)).toEqual(['no-name']);
  });
});

test('the target stays the last of many matches that remember', () => {
  const matches = ' -m recent --name DEFAULT --set'.repeat(4);
  expect(ruleMeaning(parseRule(`-j X${matches}`) ?? { args: [] })).toBe(`${matches.trimStart()} -j X`);
});
