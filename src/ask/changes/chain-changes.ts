import type { Chain, Rule, TableName } from '../../kernel/iptables/iptables.ts';
import {
  familyOfPlace,
  rulesPlaces,
  type ChainChange,
  type FamilyTablesDelta,
  type RulesPlace,
} from '../../kernel/iptables/iptables-delta.ts';
import { actingRules, ruleMeaning } from '../../kernel/iptables/iptables-meaning.ts';
import {
  changeOf,
  compareRules,
  subtract,
  type ChangeKind,
  kindOfChange,
  type CountedChange,
  ownedBy,
  type KernelChange,
  type RuleEdits,
} from './kernel-change.ts';
import type { SideOwners } from '../../kube-proxy/owners.ts';

interface PlacedTable {
  readonly rules: RulesPlace;
  readonly table: TableName;
}

export function listChainChanges(delta: FamilyTablesDelta, owners: SideOwners): readonly KernelChange[] {
  return rulesPlaces.flatMap((rules) =>
    (delta[rules] ?? []).flatMap(({ table, changes }) => changesOfTable({ rules, table }, changes, owners)),
  );
}

/** Counts the chains that change. Listing each change would mean a comparison rule by rule, which is slow if a whole mode is removed. */
export function countChainChanges(delta: FamilyTablesDelta): readonly CountedChange[] {
  const tables = rulesPlaces.flatMap((place) => delta[place] ?? []);
  return tables.flatMap(({ changes }) => {
    const edited = new Set(changes.flatMap((change) => (change.kind === 'rule' ? [change.chain] : [])));
    const whole = changes.filter((change) => change.kind === 'chain');
    return [
      ...whole.map(({ from, to }): CountedChange => ['chain', kindOfChange(from, to), 1]),
      ...[...edited].map((): CountedChange => ['chain', 'changed', 1]),
    ];
  });
}

function changesOfTable(
  place: PlacedTable,
  changes: readonly ChainChange[],
  owners: SideOwners,
): readonly KernelChange[] {
  const ofChains = changes.flatMap((change) =>
    change.kind === 'chain' ? chainChanges(place, change.from, change.to, owners) : [],
  );
  // A built-in chain is never removed, so only its jumps to kube-proxy's chains count.
  const edits = changes.filter((change) => change.kind === 'rule');
  const ofBuiltIn = [...new Set(edits.map(({ chain }) => chain))].flatMap((chain) => {
    const own = edits.filter((edit) => edit.chain === chain);
    const rulesThat = (areInserted: boolean): readonly Rule[] =>
      own.flatMap(({ position, rule }) => ((position !== undefined) === areInserted ? [rule] : []));
    return sharedChanges({ ...place, chain }, rulesThat(false), rulesThat(true), 'changed', owners);
  });
  return [...ofChains, ...ofBuiltIn];
}

function chainChanges(
  place: PlacedTable,
  from: Chain | undefined,
  to: Chain | undefined,
  owners: SideOwners,
): readonly KernelChange[] {
  const chain = (to ?? from)?.name ?? '';
  const owner = (to && owners.to.ofChain(to)) ?? (from && owners.from.ofChain(from));
  const [before, after] = [actingRules(from?.rules ?? []), actingRules(to?.rules ?? [])];
  if (owner === undefined) return sharedChanges({ ...place, chain }, before, after, kindOfChange(from, to), owners);
  const edits = compareRules(before.map(ruleMeaning), after.map(ruleMeaning));
  const edited = [...subtract(after, before, ruleMeaning), ...subtract(before, after, ruleMeaning)];
  const change = iptablesChainChange({ ...place, chain, shared: false }, edits, edited, kindOfChange(from, to));
  return [{ ...change, ...ownedBy(owner, to ?? {}) }];
}

function iptablesChainChange(
  { rules: at, ...place }: PlacedTable & { readonly chain: string; readonly shared: boolean },
  edits: RuleEdits,
  edited: readonly Rule[],
  change: ChangeKind,
): KernelChange {
  const family = familyOfPlace(at);
  const fields = { family, ...place, ...edits };
  return { ...changeOf('chain', 'chain', change, fields), family, edited, isOtherVariant: at !== family };
}

/** Returns a shared chain's changes: one for each Service port that gains or loses rules, and one for all rules without an owner. */
function sharedChanges(
  place: PlacedTable & { readonly chain: string },
  from: readonly Rule[],
  to: readonly Rule[],
  whole: ChangeKind,
  owners: SideOwners,
): readonly KernelChange[] {
  const ownerBefore = (rule: Rule) => owners.from.ofRule(rule, place.chain);
  const ownerAfter = (rule: Rule) => owners.to.ofRule(rule, place.chain);
  const shares = new Map<string | undefined, { readonly removed: Rule[]; readonly added: Rule[] }>();
  const share = (rule: Rule, owner: string | undefined, part: 'removed' | 'added'): void => {
    const known = shares.get(owner) ?? { removed: [], added: [] };
    known[part].push(rule);
    shares.set(owner, known);
  };
  for (const rule of subtract(from, to, ruleMeaning)) share(rule, ownerBefore(rule), 'removed');
  for (const rule of subtract(to, from, ruleMeaning)) share(rule, ownerAfter(rule), 'added');
  const reordered = shares.size === 0 && orderOf(from, ownerBefore) !== orderOf(to, ownerAfter);
  // A new or removed chain is reported even if all its rules belong to Service ports.
  const isSilent = shares.has(undefined) || (whole === 'changed' && !reordered);
  const own = isSilent ? [] : [[undefined, { removed: [], added: [] }] as const];
  return [...own, ...shares].map(([owner, { removed, added }]) => {
    const edits = {
      rulesFrom: removed.length,
      rulesTo: added.length,
      added: added.map(ruleMeaning),
      removed: removed.map(ruleMeaning),
      reordered,
    };
    // The chain belongs to all Service ports, and each port only has rules in it.
    const edited = [...added, ...removed];
    const change = iptablesChainChange(
      { ...place, shared: true },
      edits,
      edited,
      owner === undefined ? whole : 'changed',
    );
    return { ...change, ...ownedBy(owner, added.find(({ origin }) => origin?.place) ?? {}) };
  });
}

/**
 * Returns a text for comparing the order of rules. Two orders with the same effect give the same text. kube-proxy fills shared chains from
 * a map, in any order, so only rules that no Service port owns have a fixed place.
 */
function orderOf(rules: readonly Rule[], ownerOf: (rule: Rule) => string | undefined): string {
  const order: string[] = [];
  let run: string[] = [];
  for (const rule of rules) {
    if (ownerOf(rule) !== undefined) {
      run.push(ruleMeaning(rule));
      continue;
    }
    for (const meaning of run.sort()) order.push(meaning);
    order.push(ruleMeaning(rule));
    run = [];
  }
  return [...order, ...run.sort()].join('\n');
}
