import type { Family } from '../kernel/family.ts';
import type { ChangedObject } from './change-lister.ts';
import type { KernelChange } from './kernel-change.ts';

/** What differs of one thing of the kernel, on one line, without saying whether it was added or removed. */
export function describeKernelChange(change: KernelChange): string {
  const text = describeSubject(change);
  switch (change.kind) {
    // The name of its set says what it is.
    case 'set-entry':
      return text;
    case 'ipvs-timeouts':
      return `${objectOf(change)}: ${text}`;
    case 'nft-element':
      return `element of ${text}`;
    case 'virtual-server':
    case 'set':
    case 'chain':
    case 'nft-table':
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
  'nft-table': 'nftables table',
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
export function objectOf({ kind }: KernelChange): ChangedObject {
  return objects[kind];
}

/** Which one it is, and what differs of it. */
export function describeSubject(change: KernelChange): string {
  switch (change.kind) {
    case 'virtual-server': {
      const at = `${change.protocol} ${change.address.includes(':') ? `[${change.address}]` : change.address}:${change.port}`;
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
      return `${change.table} (${familyWords[change.family]})`;
    case 'nft-chain':
      return `${change.chain} (${familyWords[change.family]})${describeRules({ ...change, shared: false })}`;
    case 'nft-set':
      return `${change.set} (${familyWords[change.family]})${change.elements > 0 ? ` with ${count(change.elements, 'element')}` : ''}`;
    case 'nft-element':
      return `${change.set} (${familyWords[change.family]}): ${change.element}`;
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
    ...namesOf('+', added),
    ...namesOf('−', removed),
    ...edited.map(({ server, from, to }) => `real server ${server} ${from} → ${to}`),
  ];
}

/** Few real servers by their addresses, many by their number. */
function namesOf(sign: string, servers: readonly string[]): readonly string[] {
  if (servers.length === 0) return [];
  const names = servers.length > 3 ? '' : ` ${servers.join(', ')}`;
  return [`${sign} ${count(servers.length, 'real server')}${names}`];
}

function describeTable(family: Family, table: string): string {
  return family === 'ipv4' ? table : `IPv6 ${table}`;
}

const familyWords: { readonly [F in Family]: string } = { ipv4: 'IPv4', ipv6: 'IPv6' };

function describeRules(change: Omit<KernelChange & { readonly kind: 'chain' }, 'kind' | 'table'>): string {
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

function signed(sign: string, number: number): readonly string[] {
  return number === 0 ? [] : [`${sign} ${count(number, 'rule')}`];
}

/** "1 rule", "2,300 rules". */
export function count(number: number, one: string, more = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : more}`;
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
