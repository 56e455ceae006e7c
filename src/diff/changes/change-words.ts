import { joinHostPort } from '../../kernel/address.ts';
import type { Family } from '../../kernel/family.ts';
import type { ChangedObject } from './change-lister.ts';
import { count } from '../../base/format-count.ts';
import type { KernelChange } from './kernel-change.ts';

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
      return `${change.chain} (${tableWords(change.family, change.table)})${describeRules(change)}`;
    case 'nft-table': {
      const name = `${change.table}${where(change)}`;
      if (change.change === 'changed') return `${name}: made anew ${describeStrangeParts(change)}`;
      return `${name} with ${count(change.chains, 'chain')} and ${count(change.sets, 'set')}`;
    }
    case 'nft-counter':
      return `${change.counter}${where(change)}`;
    case 'nft-chain':
      return `${change.chain}${where(change)}${describeRules(change)}`;
    case 'nft-set': {
      const name = `${change.set}${where(change)}`;
      if (change.change === 'changed') return `${name}: ${change.from ?? ''} → ${change.to ?? ''}`;
      return change.elements === 0 ? name : `${name} with ${count(change.elements, 'element')}`;
    }
    case 'nft-element': {
      const { from, to } = change;
      const name = `${change.set}${where(change)} ${change.key}`;
      if (change.change === 'changed') return `${name}: ${from ?? '(nothing)'} → ${to ?? '(nothing)'}`;
      const value = to ?? from;
      return value === undefined ? name : `${name} : ${value}`;
    }
    case 'address':
      return `${change.address} on ${change.link}`;
    case 'link':
      return `${change.link}${change.addresses > 0 ? ` with ${count(change.addresses, 'address', 'addresses')}` : ''}`;
    case 'sysctl':
      return `${change.name}: ${change.from ?? '(not set)'} → ${change.to ?? '(left as it is)'}${describeReason(change)}`;
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
    case 'setting':
      return `${change.name}: ${change.from || '(none)'} → ${change.to || '(none)'}`;
  }
}

function describeReason({ reason }: KernelChange & { readonly kind: 'sysctl' }): string {
  return reason === undefined ? '' : ` (${reason})`;
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

/** The table of a chain, or "nftables", with its family where that is IPv6. */
export function tableWords(family: Family, table: string): string {
  return family === 'ipv4' ? table : `IPv6 ${table}`;
}

function where({ family }: { readonly family: Family }): string {
  return ` (${tableWords(family, 'nftables')})`;
}

/** "without counter hits, flags dormant": what goes with the old one, and what comes with the new. */
function describeStrangeParts({
  strangeFrom,
  strangeTo,
}: KernelChange & { readonly kind: 'nft-table'; readonly change: 'changed' }): string {
  const gone = strangeFrom.filter((head) => !strangeTo.includes(head));
  const come = strangeTo.filter((head) => !strangeFrom.includes(head));
  const parts = [
    ...(gone.length === 0 ? [] : [`without ${gone.join(', ')}`]),
    ...(come.length === 0 ? [] : [`with ${come.join(', ')}`]),
  ];
  return parts.join(' and ');
}

function describeRules(change: KernelChange & { readonly kind: 'chain' | 'nft-chain' }): string {
  const number = change.change === 'removed' ? change.rulesFrom : change.rulesTo;
  if (change.change === 'changed') return `: ${describeRuleEdits(change).join(', ')}`;
  return number === 0 && change.kind === 'chain' ? '' : ` with ${count(number, 'rule')}`;
}

function describeRuleEdits(change: KernelChange & { readonly kind: 'chain' | 'nft-chain' }): readonly string[] {
  const { rulesFrom, rulesTo, added, removed, reordered } = change;
  const base = change.kind === 'nft-chain' && change.base;
  const hook = base ? [`${base.from || 'no hook'} → ${base.to || 'no hook'}`] : [];
  const endpoints =
    change.kind === 'chain'
      ? []
      : [...namesOf('+', 'endpoint', change.endpointsAdded), ...namesOf('−', 'endpoint', change.endpointsRemoved)];
  if (endpoints.length > 0) return [...hook, ...endpoints];
  if (reordered) return [...hook, 'the same rules in another order'];
  const isShared = change.kind === 'chain' && change.shared;
  if (!isShared && rulesFrom !== rulesTo) return [...hook, `${rulesFrom} → ${count(rulesTo, 'rule')}`];
  if (added.length > 0 && added.length === removed.length) return [...hook, `${count(added.length, 'rule')} changed`];
  return [...hook, ...signed('+', added.length), ...signed('−', removed.length)];
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

/** "+ 2 rules"; nothing if there are none. */
function signed(sign: string, number: number): readonly string[] {
  return number === 0 ? [] : [`${sign} ${count(number, 'rule')}`];
}

/** Few things by their names, many by their number. */
function namesOf(sign: string, what: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const text = names.length > 3 ? '' : ` ${names.join(', ')}`;
  return [`${sign} ${count(names.length, what)}${text}`];
}
