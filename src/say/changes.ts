// Describes changes to a kernel, each on one line.
import type { SysctlReason } from '../kernel/sysctls-and-modules.ts';
import type { ChangeKind, ChangeOf, KernelChange, RuleEdits } from '../ask/changes/kernel-change.ts';
import { count } from '../base/printable.ts';
import { type Family, joinHostPort } from '../kernel/address.ts';

export function turn(from: string, to: string): string {
  return `${from || '(none)'} → ${to || '(none)'}`;
}

/** Describes the object and how it differs, on one line. Does not say whether the object was added or removed. */
export function describeKernelChange(change: KernelChange): string {
  const subject = describeKernelSubject(change);
  switch (change.kind) {
    // The words for an entry already name its set.
    case 'set-entry':
    case 'nft-element':
      return subject;
    case 'ipvs-timeouts':
      return `${change.object}: ${subject}`;
    default:
      return `${change.object} ${subject}`;
  }
}

/** Describes an object that a Service port adds to a kernel. `isTaken`: another Service port has this object, with other content. */
export function describePresent(change: KernelChange, isTaken: boolean): string {
  if (change.kind === 'virtual-server') {
    const { added, optionsTo } = change.fields;
    const server = `${change.object} ${serverName(change.fields)}`;
    return isTaken ? server : `${server} with ${count(added.length, 'real server')}, ${optionsTo}`;
  }
  const isEntry = change.kind === 'set-entry' || change.kind === 'nft-element';
  return `${isEntry ? '' : `${change.object} `}${subjectWords(change, '')}`;
}

/** Returns the rules of a chain as the tools list them. */
export function addedRules(change: KernelChange): readonly string[] | undefined {
  if (change.kind === 'chain') return change.fields.added.map((rule) => `-A ${change.fields.chain} ${rule}`);
  return change.kind === 'nft-chain' ? change.fields.added : undefined;
}

/** Returns "nat", or "IPv6 nat". */
export function tableWords(family: Family, table: string): string {
  return family === 'ipv4' ? table : `IPv6 ${table}`;
}

/** Names the object and says how it differs, without the kind of the object. */
export function describeKernelSubject(change: KernelChange): string {
  return subjectWords(change, '+ ');
}

/** `plus`: the sign in front of added parts. */
function subjectWords(change: KernelChange, plus: string): string {
  switch (change.kind) {
    case 'virtual-server':
      return serverSubject(change, plus);
    case 'set-entry':
      return `${change.fields.set} ${change.fields.value}`;
    case 'set': {
      const { set, entries, from, to } = change.fields;
      return set + (change.change === 'changed' ? `: ${from} → ${to}` : holding(entries, 'entry'));
    }
    case 'chain':
      return chainSubject(change, plus);
    case 'nft-table':
      return `${nftName(change.fields, change.fields.table)}${tableContent(change.fields)}`;
    case 'nft-chain':
      return nftChainSubject(change, plus);
    case 'nft-counter':
      return nftName(change.fields, change.fields.counter);
    case 'nft-set': {
      const { set, elements, from, to } = change.fields;
      return (
        nftName(change.fields, set) + (change.change === 'changed' ? `: ${from} → ${to}` : holding(elements, 'element'))
      );
    }
    case 'nft-element': {
      const { set, key, from, to } = change.fields;
      const value = to ?? from;
      const whole = value === undefined ? '' : ` : ${value}`;
      const what = change.change === 'changed' ? `: ${from ?? '(nothing)'} → ${to ?? '(nothing)'}` : whole;
      return `${nftName(change.fields, set)} ${key}${what}`;
    }
    case 'address':
      return `${change.fields.address} on ${change.fields.link}`;
    case 'link': {
      const { link, addresses } = change.fields;
      return link + holding(addresses, 'address');
    }
    case 'sysctl': {
      const { name, from = '(not set)', to = '(left as it is)', reason } = change.fields;
      return `${name}: ${from} → ${to}${decisionWords(reason)}`;
    }
    case 'proxy-port':
      return proxyPortSubject(change, plus);
    case 'ipvs-timeouts':
      return timeoutsSubject(change);
    case 'module':
      return change.fields.name;
    case 'setting':
      return `${change.fields.name}: ${turn(change.fields.from, change.fields.to)}`;
  }
}

/** Returns " (32768 × 4 cores, at least 131072)"; '' if the reason is unknown. */
export function decisionWords(reason: SysctlReason | undefined): string {
  switch (reason?.kind) {
    case 'configuration':
      return ' (the configuration)';
    case 'quarter':
      return ' (a quarter of nf_conntrack_max)';
    case 'old-kernel':
      return ` (kernel ${reason.release} is older than 5.9)`;
    case 'cores': {
      const { perCore, cores, bound } = reason;
      return ` (${perCore} × ${count(cores, 'core')}${bound ? `, at ${bound.join(' ')}` : ''})`;
    }
    case undefined:
      return '';
  }
}

/** Describes the content of an added or removed object; '' if the object is empty. */
function holding(number: number, one: string): string {
  return number === 0 ? '' : ` with ${count(number, one)}`;
}

function serverName({ protocol, address, port }: ChangeOf<'virtual-server'>['fields']): string {
  return `${protocol} ${joinHostPort(address, port)}`;
}

function serverSubject({ change, fields }: ChangeOf<'virtual-server'>, plus: string): string {
  const { optionsFrom, optionsTo, added, removed, edited } = fields;
  if (change !== 'changed')
    return `${serverName(fields)} with ${count(change === 'added' ? added.length : removed.length, 'real server')}`;
  const edits = [
    ...(optionsFrom !== undefined && optionsTo !== undefined ? [`${optionsFrom} → ${optionsTo}`] : []),
    ...nameChanged(plus, 'real server', added),
    ...nameChanged('− ', 'real server', removed),
    ...edited.map((real) => `real server ${real.server} ${real.from} → ${real.to}`),
  ];
  return `${serverName(fields)}: ${edits.join('; ')}`;
}

function proxyPortSubject({ change, fields }: ChangeOf<'proxy-port'>, plus: string): string {
  const { protocol, port, added, removed } = fields;
  const edits = [...nameChanged(plus, 'endpoint', added), ...nameChanged('− ', 'endpoint', removed)].join('; ');
  const whole = ` with ${count(change === 'added' ? added.length : removed.length, 'endpoint')}`;
  return `${protocol} ${port}${change === 'changed' ? `: ${edits || 'other options'}` : whole}`;
}

function timeoutsSubject({ fields: { from, to } }: ChangeOf<'ipvs-timeouts'>): string {
  const value = (seconds: number) => (seconds === 0 ? '(left as it is)' : `${seconds} s`);
  return (['tcp', 'tcpFin', 'udp'] as const)
    .filter((name) => from[name] !== to[name])
    .map((name) => `${name.toLowerCase()} ${value(from[name])} → ${value(to[name])}`)
    .join(', ');
}

function chainSubject({ change, fields, isOtherVariant }: ChangeOf<'chain'>, plus: string): string {
  const edits = () => `: ${ruleEditWords(fields, fields.shared, plus).join(', ')}`;
  const what = change === 'changed' ? edits() : holding(rulesIn(fields, change), 'rule');
  const where = isOtherVariant ? ', other variant of iptables' : '';
  return `${fields.chain} (${tableWords(fields.family, fields.table)})${where}${what}`;
}

function nftName({ family }: { readonly family: Family }, name: string): string {
  return `${name} (${tableWords(family, 'nftables')})`;
}

function tableContent(fields: ChangeOf<'nft-table'>['fields']): string {
  if ('chains' in fields) return ` with ${count(fields.chains, 'chain')} and ${count(fields.sets, 'set')}`;
  // The first line of each part that kpc keeps only as text, such as "counter hits".
  const { strangeFrom, strangeTo } = fields;
  const gone = strangeFrom.filter((head) => !strangeTo.includes(head)).join(', ');
  const come = strangeTo.filter((head) => !strangeFrom.includes(head)).join(', ');
  const parts = [...(gone === '' ? [] : [`without ${gone}`]), ...(come === '' ? [] : [`with ${come}`])];
  return `: recreated ${parts.join(' and ')}`;
}

function nftChainSubject({ change, fields }: ChangeOf<'nft-chain'>, plus: string): string {
  const { chain, base, endpointsAdded, endpointsRemoved } = fields;
  const endpoints = [
    ...nameChanged(plus, 'endpoint', endpointsAdded),
    ...nameChanged('− ', 'endpoint', endpointsRemoved),
  ];
  const differences = [
    ...(base ? [`${base.from || 'no hook'} → ${base.to || 'no hook'}`] : []),
    ...(endpoints.length > 0 ? endpoints : ruleEditWords(fields, false, plus)),
  ];
  const whole = ` with ${count(rulesIn(fields, change), 'rule')}`;
  return `${nftName(fields, chain)}${change === 'changed' ? `: ${differences.join(', ')}` : whole}`;
}

function rulesIn({ rulesFrom, rulesTo }: RuleEdits, change: ChangeKind): number {
  return change === 'removed' ? rulesFrom : rulesTo;
}

/** Names the objects if there are at most three. Otherwise only counts them. */
function nameChanged(sign: string, what: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const text = names.length > 3 ? '' : ` ${names.join(', ')}`;
  return [`${sign}${count(names.length, what)}${text}`];
}

/** Returns "2 → 3 rules". In a shared chain, counts only the rules that one owner gains and loses. */
function ruleEditWords(
  { rulesFrom, rulesTo, added, removed, reordered }: RuleEdits,
  isShared: boolean,
  plus: string,
): readonly string[] {
  if (reordered) return ['the same rules in another order'];
  if (!isShared && rulesFrom !== rulesTo) return [`${rulesFrom} → ${count(rulesTo, 'rule')}`];
  if (added.length > 0 && added.length === removed.length) return [`${count(added.length, 'rule')} changed`];
  const signed = (sign: string, { length }: readonly string[]) =>
    length === 0 ? [] : [`${sign}${count(length, 'rule')}`];
  return [...signed(plus, added), ...signed('− ', removed)];
}
