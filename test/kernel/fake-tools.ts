import assert from 'node:assert/strict';
import { isBuiltInChain, type TableName, type Tables } from '../../src/kernel/iptables/iptables.ts';
import { ruleMeaning } from '../../src/kernel/iptables/iptables-meaning.ts';
import { parseRule } from './parse-rule.ts';

// Small stand-ins for the tools, which refuse what the tools refuse.

/** What a tool holds: for iptables "table chain" → meanings of rules; for ipset set → its line and entries; and so on. */
export type Kernel = Map<string, readonly string[]>;

export function loadTables(all: Tables): Kernel {
  const kernel: Kernel = new Map();
  for (const [table, list] of Object.entries(all)) {
    for (const chain of list.values()) kernel.set(`${table} ${chain.name}`, chain.rules.map(ruleMeaning));
  }
  return kernel;
}

/** The chains of the kernel are always there. */
export function withoutEmpty(kernel: Kernel): Kernel {
  return new Map(
    [...kernel].filter(([key, list]) => {
      const [table, chain] = key.split(' ') as [TableName, string];
      return list.length > 0 || !isBuiltInChain(table, chain);
    }),
  );
}

/** iptables-restore --noflush, as far as a delta uses it. */
export function runIptablesRestore(kernel: Kernel, text: string): void {
  let table = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1);
    const [, command, chain, rest = ''] = /^(:|-[AIDX] )(\S+) ?(.*)$/.exec(line) ?? [];
    if (command === undefined || chain === undefined) continue;
    const key = `${table} ${chain}`;
    const list = [...(kernel.get(key) ?? [])];
    const [, position, args = rest] = command === '-I ' ? (/^(\d+) ?(.*)$/.exec(rest) ?? []) : [];
    const meaning = ruleMeaning(parseRule(args) ?? { args: [] });
    if (command === ':') kernel.set(key, []);
    else if (command === '-X ') {
      assert.deepEqual(list, [], line);
      const target = new RegExp(`-[jg] ${chain}$`);
      for (const [name, others] of kernel) {
        if (name.startsWith(`${table} `)) assert.ok(!others.some((rule) => target.test(rule)), line);
      }
      kernel.delete(key);
    } else if (command === '-A ') kernel.set(key, [...list, meaning]);
    else if (command === '-I ') kernel.set(key, list.toSpliced(Number(position) - 1, 0, meaning));
    else {
      assert.ok(list.includes(meaning), line);
      kernel.set(key, list.toSpliced(list.indexOf(meaning), 1));
    }
  }
}

/** ipset restore: the first item of a set is how it was made. An entry is found by its first word, whatever its options. */
export function runIpset(kernel: Kernel, text: string): void {
  for (const line of text.split('\n').filter(Boolean)) {
    const [command, name = '', ...rest] = line.split(' ');
    const [made = '', ...entries] = kernel.get(name) ?? [];
    const value = rest.join(' ');
    const [key = ''] = rest;
    const others = entries.filter((entry) => entry.split(' ')[0] !== key);
    if (command === 'create') {
      assert.ok(!kernel.has(name), line);
      kernel.set(name, [value]);
    } else if (command === 'destroy') {
      for (const [holder = '', ...members] of kernel.values())
        assert.ok(!(holder.startsWith('list:set') && members.includes(name)), `${line}: in use`);
      assert.ok(kernel.delete(name), line);
    } else if (command === 'add') {
      assert.equal(others.length, entries.length, `${line}: already added`);
      assert.ok(entries.length < Number(/ maxelem (\d+)/.exec(made)?.[1] ?? Infinity), `${line}: full`);
      if (made.startsWith('list:set')) assert.ok(kernel.has(key), `${line}: no such set`);
      kernel.set(name, [made, ...[...entries, value].sort()]);
    } else if (command === 'del') {
      assert.equal(others.length, entries.length - 1, line);
      kernel.set(name, [made, ...others]);
    } else {
      assert.equal(command, 'swap');
      const other = kernel.get(value) ?? [];
      assert.equal(kindOf(made), kindOf(other[0] ?? ''), line);
      kernel.set(value, [made, ...entries]);
      kernel.set(name, other);
    }
  }
}

/** What two sets must share to be swapped: "hash:ip inet". */
function kindOf(made: string): string {
  return `${made.split(' ')[0]} ${/ family (\S+)/.exec(made)?.[1]}`;
}

export function runIpvsadm(kernel: Map<string, { options: string; reals: Map<string, string> }>, text: string): void {
  for (const line of text.split('\n').filter(Boolean)) {
    const [command, flag, at, ...rest] = line.split(' ');
    const name = `${flag} ${at}`;
    const service = kernel.get(name);
    const [, real = '', ...options] = rest;
    assert.equal(service !== undefined, command !== '-A', line);
    if (command === '-A') kernel.set(name, { options: rest.join(' '), reals: new Map() });
    else if (command === '-E' && service) service.options = rest.join(' ');
    else if (command === '-D') kernel.delete(name);
    else {
      assert.equal(service?.reals.has(real), command !== '-a', line);
      if (command === '-d') service?.reals.delete(real);
      else service?.reals.set(real, options.join(' '));
    }
  }
}

export function runIp(kernel: Kernel, text: string): void {
  for (const line of text.split('\n').filter(Boolean)) {
    const [object, command, first = '', , name = '', ...rest] = line.split(' ');
    if (object === 'link') {
      assert.equal(kernel.has(first), command === 'del', line);
      if (command === 'del') kernel.delete(first);
      else kernel.set(first, [name]);
      continue;
    }
    const [kind = '', ...addresses] = kernel.get(name) ?? [];
    const others = addresses.filter((address) => address.split(' ')[0] !== first);
    assert.equal(others.length < addresses.length, command === 'del', line);
    kernel.set(name, [kind, ...(command === 'del' ? others : [...others, [first, ...rest].join(' ')].sort())]);
  }
}
