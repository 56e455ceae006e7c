import type { Family } from '../kernel/address.ts';
import type { NftChain, NftRule, NftTable } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Knowledge, SupposedJump } from './knowledge.ts';
import { tableOf, withJumps } from './rule-table.ts';
import type { HookedChain, RuleTable } from './run-chain.ts';
import { hooks } from './step.ts';

export function nftTablesOf(
  state: KernelState,
  family: Family,
  { supposed }: Pick<Knowledge, 'supposed'>,
): readonly RuleTable[] {
  return state.nftables
    .filter((table) => table.family === family)
    .map((table) => {
      const isOfTable = (jump: SupposedJump): jump is NftJump =>
        jump.tool === 'nftables' && jump.family === family && jump.table === table.name;
      return prepareTable(table, supposed.filter(isOfTable));
    });
}

type NftJump = Extract<SupposedJump, { readonly tool: 'nftables' }>;

function prepareTable({ name, chains: given, sets, family }: NftTable, jumps: readonly NftJump[]): RuleTable {
  const chains = withJumps(new Map(given), jumps.toReversed());
  return tableOf<NftRule, NftChain>({
    tool: 'nftables',
    name,
    chains,
    bases: [...chains.values()].flatMap(baseOf),
    jumps,
    unshown: new Map(),
    sets: {
      nameOf: (set) => `${family} ${name} ${set}`,
      elementsOf: (set) => sets.get(set)?.elements,
      isPart: (set) => sets.get(set)?.isPart === true,
    },
    candidates: (_, chain) => chain.rules.keys(),
    termsOf: (rule) => rule,
  });
}

function baseOf({ name: chain, base, rules }: NftChain): readonly HookedChain[] {
  const isAtDevices = base?.devices !== undefined;
  const hook = isAtDevices ? 'prerouting' : hooks.find((each) => each === base?.hook);
  if (!base || !hook) return [];
  const drops = base.policy === 'drop';
  // A device chain with policy drop also decides about ARP, without which no packet arrives, so its effect stays unknown.
  if (isAtDevices && drops) return [];
  const isIdle = rules.length === 0 && !drops;
  return [
    {
      chain,
      hook,
      priority: isAtDevices ? base.priority + aheadOfHooks : base.priority,
      devices: base.devices,
      isNat: base.type === 'nat',
      reroutes: base.type === 'route',
      drops,
      isIdle,
    },
  ];
}

/** Offset that puts chains at devices before all other chains, and keeps their order among themselves. */
const aheadOfHooks = -(2 ** 33);
