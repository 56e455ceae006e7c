import { families, type Family } from '../../kernel/family.ts';
import type { Chain, Rule, TableName } from '../../kernel/iptables/iptables.ts';
import type { ChainChange, FamilyTablesDelta } from '../../kernel/iptables/iptables-delta.ts';
import { actingRules, ruleMeaning } from '../../kernel/iptables/iptables-meaning.ts';
import { tally, type ChangeLister } from './change-lister.ts';
import { compareRules, subtract } from './compare-rules.ts';
import type { ChangeKind, OwnedChange } from './kernel-change.ts';
import type { Owners, SideOwners } from './owners.ts';

export const tableChanges: ChangeLister<FamilyTablesDelta> = {
  list: (delta, owners) =>
    families.flatMap((family) =>
      (delta[family] ?? []).flatMap(({ table, changes }) => chainChanges(family, table, changes, owners)),
    ),
  count: (delta) =>
    tally(families.flatMap((family) => (delta[family] ?? []).flatMap(({ changes }) => kindsOf(changes)))),
};

/** Rules that come and go one by one are in one of the kernel's own chains, which stays. */
function kindsOf(changes: readonly ChainChange[]): readonly (readonly ['chain', ChangeKind])[] {
  const own = new Set<string>();
  const kinds = changes.flatMap((change): readonly ChangeKind[] => {
    switch (change.kind) {
      case 'write-chain':
        return [change.from ? 'changed' : 'added'];
      case 'delete-chain':
        return ['removed'];
      case 'insert-rule':
      case 'delete-rule':
        own.add(change.chain);
        return [];
    }
  });
  return [...kinds, ...[...own].map((): ChangeKind => 'changed')].map((kind) => ['chain', kind]);
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
  const rules = compareRules(fromRules.map(ruleMeaning), toRules.map(ruleMeaning));
  const reordered = change === 'changed' && rules.added.length + rules.removed.length === 0;
  return [{ owner, change: { kind: 'chain', change, ...place, shared: false, ...rules, reordered } }];
}

const emptyRules = { shared: true, rulesFrom: 0, rulesTo: 0, added: [], removed: [], reordered: false } as const;

/** The rules of a chain that Service ports share: what each of them gains and loses, and what belongs to none. */
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
  for (const rule of subtract(from, to, ruleMeaning)) shareOf(owners.from.ofRule(rule)).removed.push(ruleMeaning(rule));
  for (const rule of subtract(to, from, ruleMeaning)) shareOf(owners.to.ofRule(rule)).added.push(ruleMeaning(rule));
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
