import { joinHostPort } from '../../kernel/address.ts';
import type { Family } from '../../kernel/family.ts';
import type { ChangedObject } from './change-lister.ts';
import { count, namesOf, signed } from './counts.ts';
import type { KernelChange } from './kernel-change.ts';
import { describeNftChange } from './nft-words.ts';

/** What differs of one thing of the kernel, on one line, without saying whether it was added or removed. */
export function describeKernelChange(change: KernelChange): string {
  const text = describeSubject(change);
  switch (change.kind) {
    // The name of its set says what it is.
    case 'set-entry':
    case 'nft-element':
      return text;
    case 'ipvs-timeouts':
      return `${objectOf(change)}: ${text}`;
    case 'virtual-server':
    case 'set':
    case 'chain':
    case 'nft-table':
    case 'nft-counter':
    case 'nft-chain':
    case 'nft-set':
    case 'address':
    case 'link':
    case 'sysctl':
    case 'module':
    case 'setting':
      return `${objectOf(change)} ${text}`;
  }
}

const objects: { readonly [K in KernelChange['kind']]: ChangedObject } = {
  'virtual-server': 'virtual server',
  'set-entry': 'set entry',
  set: 'set',
  chain: 'chain',
  'nft-table': 'table',
  'nft-counter': 'counter',
  'nft-chain': 'chain',
  'nft-set': 'set',
  'nft-element': 'set element',
  address: 'address',
  link: 'link',
  sysctl: 'sysctl',
  'ipvs-timeouts': 'IPVS timeouts',
  module: 'kernel module',
  setting: 'setting',
};

/** What the thing is called that changes. */
export function objectOf(change: KernelChange): ChangedObject {
  return change.kind === 'nft-set' && change.isMap ? 'map' : objects[change.kind];
}

/** Which one it is, and what differs of it. */
export function describeSubject(change: KernelChange): string {
  switch (change.kind) {
    case 'virtual-server': {
      const at = `${change.protocol} ${joinHostPort(change.address, change.port)}`;
      return change.change === 'changed'
        ? `${at}: ${describeServerEdits(change).join('; ')}`
        : `${at} with ${count(change.added.length + change.removed.length, 'real server')}`;
    }
    case 'set-entry':
      return `${change.set} ${change.value}`;
    case 'set':
      return change.change === 'changed'
        ? `${change.set}: ${change.from ?? ''} → ${change.to ?? ''}`
        : `${change.set}${change.entries > 0 ? ` with ${count(change.entries, 'entry', 'entries')}` : ''}`;
    case 'chain':
      return `${change.chain} (${describeTable(change.family, change.table)})${describeRules(change)}`;
    case 'nft-table':
    case 'nft-counter':
    case 'nft-chain':
    case 'nft-set':
    case 'nft-element':
      return describeNftChange(change);
    case 'address':
      return `${change.address} on ${change.link}`;
    case 'link':
      return `${change.link}${change.addresses > 0 ? ` with ${count(change.addresses, 'address', 'addresses')}` : ''}`;
    case 'sysctl':
      return `${change.name}: ${change.from ?? '(not set)'} → ${change.to ?? '(left as it is)'}`;
    case 'ipvs-timeouts': {
      const { from, to } = change;
      const names = [
        ['tcp', from.tcp, to.tcp],
        ['tcpfin', from.tcpFin, to.tcpFin],
        ['udp', from.udp, to.udp],
      ] as const;
      const value = (seconds: number) => (seconds === 0 ? '(left as it is)' : `${seconds} s`);
      return names
        .filter(([, a, b]) => a !== b)
        .map(([name, a, b]) => `${name} ${value(a)} → ${value(b)}`)
        .join(', ');
    }
    case 'module':
      return change.name;
    case 'setting': {
      const reason = change.reason === undefined ? '' : ` (${change.reason})`;
      return `${change.name}: ${change.from || '(none)'} → ${change.to || '(none)'}${reason}`;
    }
  }
}

function describeServerEdits(change: KernelChange & { readonly kind: 'virtual-server' }): readonly string[] {
  const { optionsFrom, optionsTo, added, removed, edited } = change;
  return [
    ...(optionsFrom === undefined || optionsTo === undefined ? [] : [`${optionsFrom} → ${optionsTo}`]),
    ...namesOf('+', 'real server', added),
    ...namesOf('−', 'real server', removed),
    ...edited.map(({ server, from, to }) => `real server ${server} ${from} → ${to}`),
  ];
}

function describeTable(family: Family, table: string): string {
  return family === 'ipv4' ? table : `IPv6 ${table}`;
}

function describeRules(change: KernelChange & { readonly kind: 'chain' }): string {
  const { rulesFrom, rulesTo, added, removed } = change;
  switch (change.change) {
    case 'added':
      return rulesTo > 0 ? ` with ${count(rulesTo, 'rule')}` : '';
    case 'removed':
      return rulesFrom > 0 ? ` with ${count(rulesFrom, 'rule')}` : '';
    case 'changed':
      if (change.reordered) return ': the same rules in another order';
      if (!change.shared && rulesFrom !== rulesTo) return `: ${rulesFrom} → ${count(rulesTo, 'rule')}`;
      if (added.length === removed.length) return `: ${count(added.length, 'rule')} changed`;
      return `: ${[...signed('+', added.length), ...signed('−', removed.length)].join(', ')}`;
  }
}

/** "1 chain", "1,200 set entries". */
export function countObjects(number: number, object: ChangedObject): string {
  return count(number, object, plurals[object]);
}

const plurals: { readonly [O in ChangedObject]?: string } = {
  'set entry': 'set entries',
  address: 'addresses',
  'IPVS timeouts': 'IPVS timeouts',
};
