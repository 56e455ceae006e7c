import type { Family } from '../kernel/family.ts';
import { families } from '../kernel/family.ts';
import type { KernelDelta } from '../kernel/delta.ts';
import type { Chain, Rule, TableName } from '../kernel/iptables.ts';
import type { ChainChange } from '../kernel/iptables-delta.ts';
import { actingRules, ruleMeaning } from '../kernel/iptables-meaning.ts';
import { formatCreate } from '../kernel/ipset.ts';
import type { SetChange } from '../kernel/ipset-delta.ts';
import type { RealServer, VirtualServer } from '../kernel/ipvs.ts';
import { formatRealServer, formatServiceOptions } from '../kernel/ipvs.ts';
import type { VirtualServerChange } from '../kernel/ipvs-delta.ts';
import { virtualServerKey } from '../kernel/ipvs-delta.ts';
import type { LinkChange } from '../kernel/link-delta.ts';
import { joinHostPort } from '../kernel/address.ts';
import type { ChangeKind, KernelChange, OwnedChange } from './kernel-change.ts';
import { nftTableChanges } from './nftables-changes.ts';
import type { Owners, SideOwners } from './owners.ts';

/** The changes of a delta one by one, each with its owner: virtual servers, addresses, sets, chains, then the rest. */
export function listKernelChanges(delta: KernelDelta, owners: SideOwners): readonly OwnedChange[] {
  return [
    ...virtualServerChanges(delta.virtualServers, owners),
    ...delta.links.flatMap((change) => linkChanges(change, owners)),
    ...delta.sets.flatMap((change) => setChanges(change, owners)),
    ...families.flatMap((family) =>
      (delta.iptables[family] ?? []).flatMap(({ table, changes }) => chainChanges(family, table, changes, owners)),
    ),
    ...delta.nftables.flatMap((change) => nftTableChanges(change, owners)),
    ...otherChanges(delta),
  ];
}

/** A virtual server with what changes of its real servers. */
interface ServerDraft {
  readonly owner: string | undefined;
  readonly server: VirtualServer;
  change: ChangeKind;
  options: { readonly optionsFrom?: string; readonly optionsTo?: string };
  readonly added: string[];
  readonly removed: string[];
  readonly edited: { readonly server: string; readonly from: string; readonly to: string }[];
}

function virtualServerChanges(changes: readonly VirtualServerChange[], owners: SideOwners): readonly OwnedChange[] {
  const drafts = new Map<string, ServerDraft>();
  for (const change of changes) {
    const key = virtualServerKey(change.service);
    let draft = drafts.get(key);
    if (!draft) {
      const { service: server } = change;
      const owner = change.kind === 'delete-service' ? owners.from.ofServer(server) : owners.to.ofServer(server);
      draft = { owner, server, change: 'changed', options: {}, added: [], removed: [], edited: [] };
      drafts.set(key, draft);
    }
    noteServerChange(draft, change);
  }
  return [...drafts.values()].map(({ owner, server, change, options, added, removed, edited }) => {
    const { protocol, address, port } = server;
    return {
      owner,
      change: { kind: 'virtual-server', change, protocol, address, port, ...options, added, removed, edited },
    };
  });
}

function noteServerChange(draft: ServerDraft, change: VirtualServerChange): void {
  switch (change.kind) {
    case 'add-service':
      draft.change = 'added';
      draft.options = { optionsTo: formatServiceOptions(change.service).trim() };
      for (const real of change.service.realServers) draft.added.push(nameOfReal(real));
      break;
    case 'delete-service':
      draft.change = 'removed';
      draft.options = { optionsFrom: formatServiceOptions(change.service).trim() };
      for (const real of change.service.realServers) draft.removed.push(nameOfReal(real));
      break;
    case 'edit-service':
      draft.options = {
        optionsFrom: formatServiceOptions(change.from).trim(),
        optionsTo: formatServiceOptions(change.service).trim(),
      };
      break;
    case 'add-real-server':
      draft.added.push(nameOfReal(change.server));
      break;
    case 'edit-real-server':
      draft.edited.push({
        server: nameOfReal(change.server),
        from: optionsOfReal(change.from),
        to: optionsOfReal(change.server),
      });
      break;
    case 'delete-real-server':
      draft.removed.push(nameOfReal(change.server));
      break;
    default:
      change satisfies never;
  }
}

function nameOfReal({ address, port }: RealServer): string {
  return joinHostPort(address, port);
}

/** "-m -w 1": all that ipvsadm is told of a real server but its name. */
function optionsOfReal(server: RealServer): string {
  return formatRealServer(server).trim().split(' ').slice(2).join(' ');
}

function linkChanges(change: LinkChange, owners: SideOwners): readonly OwnedChange[] {
  switch (change.kind) {
    case 'add-link':
    case 'delete-link': {
      const kind = change.kind === 'add-link' ? 'added' : 'removed';
      const side = change.kind === 'add-link' ? owners.to : owners.from;
      const owned = change.link.addresses.map((address): OwnedChange => ({
        owner: side.ofAddress(address),
        change: { kind: 'address', change: kind, link: change.link.name, address: address.address },
      }));
      const free = owned.filter(({ owner }) => owner === undefined).length;
      const link: OwnedChange = {
        owner: undefined,
        change: { kind: 'link', change: kind, link: change.link.name, addresses: free },
      };
      return [link, ...owned.filter(({ owner }) => owner !== undefined)];
    }
    case 'add-address':
    case 'delete-address': {
      const added = change.kind === 'add-address';
      const { address } = change.address;
      return [
        {
          owner: (added ? owners.to : owners.from).ofAddress(change.address),
          change: { kind: 'address', change: added ? 'added' : 'removed', link: change.link, address },
        },
      ];
    }
  }
}

function setChanges(change: SetChange, owners: SideOwners): readonly OwnedChange[] {
  switch (change.kind) {
    case 'create-set': {
      const entries = entryChanges(change.set, 'added', owners.to);
      const line = formatCreate(change.set);
      return [wholeSet('added', change.set.name, entries, { to: line }), ...ownedOnly(entries)];
    }
    case 'destroy-set': {
      const entries = entryChanges(change.set, 'removed', owners.from);
      const line = formatCreate(change.set);
      return [wholeSet('removed', change.set.name, entries, { from: line }), ...ownedOnly(entries)];
    }
    case 'replace-set': {
      const before = new Set(change.from.entries.map(({ value }) => value));
      const after = new Set(change.to.entries.map(({ value }) => value));
      const entries = [
        ...entryChanges(withEntries(change.from, after), 'removed', owners.from),
        ...entryChanges(withEntries(change.to, before), 'added', owners.to),
      ];
      const lines = { from: formatCreate(change.from), to: formatCreate(change.to) };
      return [wholeSet('changed', change.to.name, entries, lines), ...ownedOnly(entries)];
    }
    case 'change-entries':
      return [
        ...entryChanges({ ...change.set, entries: change.removed }, 'removed', owners.from),
        ...entryChanges({ ...change.set, entries: change.added }, 'added', owners.to),
      ];
  }
}

type ChangedSet = Extract<SetChange, { kind: 'create-set' }>['set'];

function withEntries(set: ChangedSet, except: ReadonlySet<string>): ChangedSet {
  return { ...set, entries: set.entries.filter(({ value }) => !except.has(value)) };
}

function entryChanges(set: ChangedSet, change: 'added' | 'removed', owners: Owners): readonly OwnedChange[] {
  return set.entries.map((entry) => ({
    owner: owners.ofEntry(set, entry),
    change: { kind: 'set-entry', change, set: set.name, value: entry.value },
  }));
}

function wholeSet(
  change: ChangeKind,
  set: string,
  entries: readonly OwnedChange[],
  lines: { readonly from?: string; readonly to?: string },
): OwnedChange {
  const free = entries.filter(({ owner }) => owner === undefined).length;
  return { owner: undefined, change: { kind: 'set', change, set, entries: free, ...lines } };
}

function ownedOnly(changes: readonly OwnedChange[]): readonly OwnedChange[] {
  return changes.filter(({ owner }) => owner !== undefined);
}

/** The rules of one chain that one owner gains and loses. */
interface RuleShare {
  readonly added: string[];
  readonly removed: string[];
}

function chainChanges(
  family: Family,
  table: TableName,
  changes: readonly ChainChange[],
  owners: SideOwners,
): readonly OwnedChange[] {
  const inserted = new Map<string, { readonly added: Rule[]; readonly removed: Rule[] }>();
  const result: OwnedChange[] = [];
  for (const change of changes) {
    switch (change.kind) {
      case 'write-chain':
        for (const found of chainChange(family, table, change.from, change.chain, owners)) result.push(found);
        break;
      case 'delete-chain':
        for (const found of chainChange(family, table, change.chain, undefined, owners)) result.push(found);
        break;
      case 'insert-rule':
      case 'delete-rule': {
        const draft = inserted.get(change.chain) ?? { added: [], removed: [] };
        (change.kind === 'insert-rule' ? draft.added : draft.removed).push(change.rule);
        inserted.set(change.chain, draft);
        break;
      }
      default:
        change satisfies never;
    }
  }
  // One of the kernel's own chains: only jumps to kube-proxy's chains are looked at.
  for (const [name, { added, removed }] of inserted) {
    const at = { family, table, chain: name };
    for (const found of ruleChanges(at, removed, added, undefined, owners)) result.push(found);
  }
  return result;
}

function chainChange(
  family: Family,
  table: TableName,
  from: Chain | undefined,
  to: Chain | undefined,
  owners: SideOwners,
): readonly OwnedChange[] {
  const chain = (to ?? from)?.name ?? '';
  const owner = (to && owners.to.ofChain(to)) ?? (from && owners.from.ofChain(from));
  const place = { family, table, chain };
  const change: ChangeKind = !from ? 'added' : !to ? 'removed' : 'changed';
  const fromRules = actingRules(from?.rules ?? []);
  const toRules = actingRules(to?.rules ?? []);
  if (owner === undefined) {
    const rules = ruleChanges(place, fromRules, toRules, change, owners);
    if (change === 'changed' || rules.some((each) => each.owner === undefined)) return rules;
    return [{ owner, change: { kind: 'chain', change, ...place, ...emptyRules } }, ...rules];
  }
  const { added, removed } = diffRules(fromRules, toRules);
  return [
    {
      owner,
      change: {
        kind: 'chain',
        change,
        ...place,
        shared: false,
        rulesFrom: fromRules.length,
        rulesTo: toRules.length,
        added: added.map(ruleMeaning),
        removed: removed.map(ruleMeaning),
        reordered: change === 'changed' && added.length + removed.length === 0,
      },
    },
  ];
}

const emptyRules = { shared: true, rulesFrom: 0, rulesTo: 0, added: [], removed: [], reordered: false } as const;

/** The rules of a chain that Service ports share: what each of them, and what nobody, gains and loses. */
function ruleChanges(
  place: { readonly family: Family; readonly table: TableName; readonly chain: string },
  from: readonly Rule[],
  to: readonly Rule[],
  whole: ChangeKind | undefined,
  owners: SideOwners,
): readonly OwnedChange[] {
  const shares = new Map<string | undefined, RuleShare>();
  const shareOf = (owner: string | undefined): RuleShare => {
    const share = shares.get(owner) ?? { added: [], removed: [] };
    shares.set(owner, share);
    return share;
  };
  const { added, removed } = diffRules(from, to);
  for (const rule of removed) shareOf(owners.from.ofRule(rule)).removed.push(ruleMeaning(rule));
  for (const rule of added) shareOf(owners.to.ofRule(rule)).added.push(ruleMeaning(rule));
  if (shares.size === 0) {
    if (standsInOrder(from, owners.from, to, owners.to)) return [];
    return [
      { owner: undefined, change: { kind: 'chain', change: 'changed', ...place, ...emptyRules, reordered: true } },
    ];
  }
  return [...shares].map(([owner, share]) => ({
    owner,
    change: {
      kind: 'chain',
      // The chain is there for all of them: a Service port only has rules in it.
      change: owner === undefined && whole !== undefined ? whole : 'changed',
      ...place,
      shared: true,
      rulesFrom: share.removed.length,
      rulesTo: share.added.length,
      added: share.added,
      removed: share.removed,
      reordered: false,
    },
  }));
}

/**
 * Whether the same rules stand in an order that does the same. kube-proxy fills the chains that Service ports share from
 * a map, in another order each time; only what belongs to no Service port has its place among them.
 */
function standsInOrder(from: readonly Rule[], fromOwners: Owners, to: readonly Rule[], toOwners: Owners): boolean {
  const before = orderOf(from, fromOwners);
  const after = orderOf(to, toOwners);
  return before.length === after.length && before.every((text, i) => text === after[i]);
}

/** The rules with each run of those that Service ports own in an order of its own. */
function orderOf(rules: readonly Rule[], owners: Owners): readonly string[] {
  const order: string[] = [];
  let run: string[] = [];
  for (const rule of rules) {
    if (owners.ofRule(rule) !== undefined) {
      run.push(ruleMeaning(rule));
      continue;
    }
    for (const meaning of run.sort()) order.push(meaning);
    order.push(ruleMeaning(rule));
    run = [];
  }
  return [...order, ...run.sort()];
}

/** What one list of rules has more than the other, whatever their order. */
function diffRules(
  from: readonly Rule[],
  to: readonly Rule[],
): { readonly added: readonly Rule[]; readonly removed: readonly Rule[] } {
  const left = new Map<string, number>();
  for (const rule of to) {
    const meaning = ruleMeaning(rule);
    left.set(meaning, (left.get(meaning) ?? 0) + 1);
  }
  const removed = from.filter((rule) => !take(left, ruleMeaning(rule)));
  const before = new Map<string, number>();
  for (const rule of from) {
    const meaning = ruleMeaning(rule);
    before.set(meaning, (before.get(meaning) ?? 0) + 1);
  }
  const added = to.filter((rule) => !take(before, ruleMeaning(rule)));
  return { added, removed };
}

function take(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0;
  if (count === 0) return false;
  counts.set(key, count - 1);
  return true;
}

function otherChanges(delta: KernelDelta): readonly OwnedChange[] {
  const changes: KernelChange[] = delta.sysctls.map((change) =>
    change.kind === 'drop-sysctl'
      ? { kind: 'sysctl', change: 'removed', name: change.name, from: change.from }
      : {
          kind: 'sysctl',
          change: change.from === undefined ? 'added' : 'changed',
          name: change.name,
          from: change.from,
          to: change.to,
        },
  );
  if (delta.ipvsTimeouts) {
    changes.push({
      kind: 'ipvs-timeouts',
      change: 'changed',
      from: delta.ipvsTimeouts.from,
      to: delta.ipvsTimeouts.to,
    });
  }
  for (const { kind, name } of delta.modules) {
    changes.push({ kind: 'module', change: kind === 'load-module' ? 'added' : 'removed', name });
  }
  return changes.map((change) => ({ owner: undefined, change }));
}
