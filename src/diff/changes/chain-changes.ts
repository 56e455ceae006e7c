import { count } from '../../base/format-count.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { Chain, Rule, TableName } from '../../kernel/iptables/iptables.ts';
import type { ChainChange, FamilyTablesDelta } from '../../kernel/iptables/iptables-delta.ts';
import { actingRules, ruleMeaning } from '../../kernel/iptables/iptables-meaning.ts';
import {
  compareRules,
  subtract,
  type ChangeKind,
  changeOf,
  describeRuleEdits,
  tableWords,
  type KernelChange,
  type RuleEdits,
  type Step,
} from './kernel-change.ts';
import type { SideOwners } from './owners.ts';

/** The steps of the chains of iptables. */
export function chainSteps(delta: FamilyTablesDelta): readonly Step[] {
  return families.flatMap((family) =>
    (delta[family] ?? []).flatMap(({ table, changes }) => stepsOfTable({ family, table }, changes)),
  );
}

interface Place {
  readonly family: Family;
  readonly table: TableName;
}

function stepsOfTable(place: Place, changes: readonly ChainChange[]): readonly Step[] {
  const steps: Step[] = [];
  const builtIn = new Map<string, { readonly added: Rule[]; readonly removed: Rule[] }>();
  const write = (from: Chain | undefined, to: Chain | undefined): void => {
    const list = (owners: SideOwners) => chainChanges(place, from, to, owners);
    steps.push({ counts: [['chain', changeOf(from, to)]], list });
  };
  for (const change of changes) {
    switch (change.kind) {
      case 'write-chain':
        write(change.from, change.chain);
        break;
      case 'delete-chain':
        write(change.chain, undefined);
        break;
      case 'insert-rule':
      case 'delete-rule': {
        const edits = builtIn.get(change.chain) ?? { added: [], removed: [] };
        (change.kind === 'insert-rule' ? edits.added : edits.removed).push(change.rule);
        builtIn.set(change.chain, edits);
        break;
      }
      default:
        change satisfies never;
    }
  }
  // One of the kernel's own chains, which stays: only jumps to kube-proxy's chains are looked at.
  for (const [chain, { added, removed }] of builtIn) {
    const list = (owners: SideOwners) => sharedChanges({ ...place, chain }, removed, added, 'changed', owners);
    steps.push({ counts: [['chain', 'changed']], list });
  }
  return steps;
}

function chainChanges(
  place: Place,
  from: Chain | undefined,
  to: Chain | undefined,
  owners: SideOwners,
): readonly KernelChange[] {
  const chain = (to ?? from)?.name ?? '';
  const owner = (to && owners.to.ofChain(to)) ?? (from && owners.from.ofChain(from));
  const [before, after] = [actingRules(from?.rules ?? []), actingRules(to?.rules ?? [])];
  if (owner === undefined) return sharedChanges({ ...place, chain }, before, after, changeOf(from, to), owners);
  const edits = compareRules(before.map(ruleMeaning), after.map(ruleMeaning));
  return [chainChange({ ...place, chain, shared: false }, edits, changeOf(from, to), owner)];
}

function chainChange(
  { family, ...place }: Place & { readonly chain: string; readonly shared: boolean },
  edits: RuleEdits,
  change: ChangeKind,
  owner: string | undefined,
): KernelChange {
  const rules = { ...place, ...edits };
  const number = change === 'removed' ? edits.rulesFrom : edits.rulesTo;
  const what =
    change === 'changed'
      ? `: ${describeRuleEdits(edits, place.shared).join(', ')}`
      : number === 0
        ? ''
        : ` with ${count(number, 'rule')}`;
  const subject = `${place.chain} (${tableWords(family, place.table)})${what}`;
  return { owner, object: 'chain', change, subject, family, rules, kind: 'chain', fields: { family, ...rules } };
}

/** The rules of a chain that Service ports share: what each of them gains and loses, and what belongs to none. */
function sharedChanges(
  place: Place & { readonly chain: string },
  from: readonly Rule[],
  to: readonly Rule[],
  whole: ChangeKind,
  owners: SideOwners,
): readonly KernelChange[] {
  const shares = new Map<string | undefined, { readonly added: string[]; readonly removed: string[] }>();
  const shareOf = (owner: string | undefined) => {
    const share = shares.get(owner) ?? { added: [], removed: [] };
    shares.set(owner, share);
    return share;
  };
  const ownerBefore = (rule: Rule) => owners.from.ofRule(rule, place.chain);
  const ownerAfter = (rule: Rule) => owners.to.ofRule(rule, place.chain);
  for (const rule of subtract(from, to, ruleMeaning)) shareOf(ownerBefore(rule)).removed.push(ruleMeaning(rule));
  for (const rule of subtract(to, from, ruleMeaning)) shareOf(ownerAfter(rule)).added.push(ruleMeaning(rule));
  const reordered = shares.size === 0 && orderOf(from, ownerBefore) !== orderOf(to, ownerAfter);
  // A chain that is new or gone is reported even if all its rules are Service ports'.
  const isSilent = shares.has(undefined) || (whole === 'changed' && !reordered);
  const own = isSilent ? [] : [[undefined, { added: [], removed: [] }] as const];
  return [...own, ...shares].map(([owner, { added, removed }]) => {
    const edits = { rulesFrom: removed.length, rulesTo: added.length, added, removed, reordered };
    // The chain is there for all of them: a Service port only has rules in it.
    return chainChange({ ...place, shared: true }, edits, owner === undefined ? whole : 'changed', owner);
  });
}

/**
 * The rules in an order that does the same, whatever order kube-proxy gave them: it fills the chains that Service ports share
 * from a map. Only what belongs to no Service port has its place among them.
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
