// A table of iptables or nftables, prepared for walking packets, with jumps that no listing shows.
import type { RuleTerm } from '../kernel/iptables/rule-terms.ts';
import type { Element, Expression, NftRule } from '../kernel/nftables/table.ts';
import type { Origin } from '../kernel/place.ts';
import { recallFact, type Flow } from './flow.ts';
import type { SupposedJump } from './knowledge.ts';
import { allOf, lacks, type Answer } from './reason.ts';
import { unshownPosition, type HookedChain, type RuleTable } from './run-chain.ts';
import { meets, runRule, type Indexes, type Sets } from './run-rule.ts';
import type { Action, RuleStep } from './step.ts';

interface ChainOf<Rule> {
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly origin?: Origin | undefined;
}

export interface Terms {
  readonly expressions: readonly (Expression | RuleTerm)[];
  readonly action?: Action | undefined;
  /** The rule as nft lists it, in a table of iptables. */
  readonly native?: NftRule | undefined;
}

interface TableParts<Rule extends RuleStep['rule'], Chain extends ChainOf<Rule>> {
  readonly tool: RuleStep['tool'];
  readonly name: string;
  readonly chains: ReadonlyMap<string, Chain>;
  readonly bases: readonly HookedChain[];
  readonly sets: Sets;
  /** `jumps` and the chains in `unshown` are in no listing. `chains` already contains the jumps. */
  readonly jumps: readonly SupposedJump[];
  readonly unshown: ReadonlyMap<string, Chain>;
  readonly candidates: (flow: Flow, chain: Chain) => Iterable<number>;
  readonly termsOf: (rule: Rule) => Terms | undefined;
}

/** Adds jumps that no listing shows before a chain's other rules, or after them if `isLast`. */
export function withJumps<Rule extends RuleStep['rule'], Chain extends ChainOf<Rule>>(
  chains: Map<string, Chain>,
  jumps: readonly (SupposedJump & { readonly rule: Rule })[],
): ReadonlyMap<string, Chain> {
  for (const { from: name, rule, ...jump } of jumps) {
    const made = 'chain' in jump ? { ...jump.chain, rules: [] } : { name, rules: [] };
    const chain = chains.get(name) ?? (made as ChainOf<Rule> as Chain);
    const isLast = 'isLast' in rule && rule.isLast;
    chains.set(name, { ...chain, rules: isLast ? [...chain.rules, rule] : [rule, ...chain.rules] });
  }
  return chains;
}

export function tableOf<Rule extends RuleStep['rule'], Chain extends ChainOf<Rule>>({
  sets,
  jumps,
  unshown,
  candidates,
  termsOf,
  ...shown
}: TableParts<Rule, Chain>): RuleTable {
  const { tool, name, chains } = shown;
  const jumpsOf = new Map(jumps.map((jump) => [jump.rule as unknown, jump]));
  const jumpsTo = new Set(jumps.map(({ to }) => to));
  const indexes: Indexes = new Map();
  /** Reports whether a supposed jump exists. A jump to a chain without effect counts as missing, because it makes no difference. */
  const hasJump = (flow: Flow, { from, to }: SupposedJump): Answer => {
    const isIdle = unshown.get(to)?.rules.every((rule) => {
      const asked = termsOf(rule)?.expressions ?? [];
      return allOf(asked, (each) => meets({ flow, table: shown, sets, indexes }, each)) === false;
    });
    return isIdle !== true && recallFact(flow, lacks({ kind: 'jump', tool, from, to }, `jump ${tool} ${from} ${to}`));
  };
  const table: RuleTable = {
    ...shown,
    // Chains that no listing shows and no supposed jump leads to. For other unshown chains, the jump decides whether they exist.
    supposed: new Set([...unshown.keys()].filter((to) => !jumpsTo.has(to))),
    runRules: (flow, chainName) => {
      const chain = chains.get(chainName) as Chain;
      for (const at of candidates(flow, chain)) {
        const rule = chain.rules[at] as Rule;
        const terms = termsOf(rule);
        if (!terms) continue;
        const jump = jumpsOf.get(rule);
        const isUnshown = jump !== undefined || unshown.has(chain.name);
        const { expressions, action: own, native } = terms;
        const shownAs = native ? { tool: 'nftables', rule: native } : { tool, rule };
        const stepOf = (action: Action, element?: Element) =>
          ({
            kind: 'rule',
            hook: flow.hook,
            ...shownAs,
            table: name,
            chain: chain.name,
            position: isUnshown ? unshownPosition : at + 1 - unshownBefore(chain.rules, at),
            element,
            origin: element?.origin ?? rule.origin ?? chain.origin,
            action: own ?? action,
          }) as RuleStep;
        const isThere = () => !jump || hasJump(flow, jump);
        const run = { flow, table, sets, indexes, stepOf, isThere, pending: [], last: { kind: 'continue' } as const };
        const decision = runRule(run, expressions);
        if (decision) return decision;
      }
      return undefined;
    },
  };
  const unshownBefore = (rules: readonly Rule[], at: number): number =>
    jumpsOf.size === 0 ? 0 : rules.slice(0, at).filter((rule) => jumpsOf.has(rule)).length;
  return table;
}
