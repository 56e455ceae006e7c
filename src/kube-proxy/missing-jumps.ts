import { families, type Family } from '../kernel/address.ts';
import { isBuiltInChain, type Chain, type Rule, type TableName, type Tables } from '../kernel/iptables/iptables.ts';
import {
  chainsOf,
  chainsOfElement,
  setOf,
  type NftChain,
  type NftRule,
  type NftTable,
  expressionsIn,
} from '../kernel/nftables/table.ts';
import { jumpChain, type KernelState } from '../kernel/state.ts';
import { baseChains } from './chain-names.ts';
import { isServiceChainName, listJumps, sharedChain } from './chains.ts';
import type { ProxyMode } from './modes.ts';
import { hookedChains, isKubeProxyTable, isNftServiceName, nftChains, nftSets } from './nft-table.ts';

export type MissingJump = {
  readonly family: Family;
  readonly from: string;
  readonly to: string;
  /** True if the node has chain `to`, perhaps emptied by a program; false if the state shows only chains behind it. */
  readonly hasTarget: boolean;
} & (
  | { readonly tool: 'iptables'; readonly table: TableName; readonly rule: Rule }
  /** `chain` is where kube-proxy puts the jump. `hasChain` tells whether the state has this chain. */
  | {
      readonly tool: 'nftables';
      readonly table: string;
      readonly chain: NftChain;
      readonly rule: NftRule;
      readonly hasChain: boolean;
    }
);

/** Finds missing jumps. An administrator's own jump counts as present. */
export function findMissingJumps(state: KernelState, mode: ProxyMode, family: Family): readonly MissingJump[] {
  const own = state.nftables.filter((table) => table.family === family && isKubeProxyTable(table.name));
  return [...missingOfTables(state.iptables[family] ?? {}, mode, family), ...own.flatMap(missingOfTable)];
}

function missingOfTables(tables: Tables, mode: ProxyMode, family: Family): readonly MissingJump[] {
  const jumps = listJumps(mode);
  const { filter } = tables;
  // Releases older than those that kpc follows lack some of these chains, and also jumps to the others. The shared chain may be kubelet's.
  const isFollowed = jumps.every(
    ({ table, to }) => table !== 'filter' || to === sharedChain || filter?.has(to) === true,
  );
  return jumps.flatMap((jump): readonly MissingJump[] => {
    const { table, from, to } = jump;
    const chains = tables[table];
    if (!chains || (table === 'filter' && !isFollowed)) return [];
    // Every release makes both chains of table nat, but not all those of table filter.
    const hasTarget = chains.has(to) || (table === 'nat' && chains.has(from) && isBuiltInChain(table, from));
    if (!hasTarget && !leadsSomewhere(chains, jumps, table, to)) return [];
    const isMade = isRuleMade(chains, { table, from: [from], to: { kind: 'chain', name: to } });
    return isMade ? [] : [{ ...jump, tool: 'iptables', family, hasTarget }];
  });
}

function isRuleMade(
  chains: ReadonlyMap<string, Chain>,
  { table, from, to }: Pick<LeadingRule, 'table' | 'from' | 'to'>,
) {
  return [...chains.values()].some(({ name, rules }) => {
    const isAsked = from.includes(name) || (to.kind === 'chain' && !isBuiltInChain(table, name));
    return isAsked && rules.some((rule) => (to.kind === 'chain' ? jumpChain(rule) === to.name : isDrop(rule)));
  });
}

/** Reports whether rules jump to chains that the table lacks. No kernel has such rules, so the listing lacks chains and perhaps jumps. */
export function lacksChains(chains: ReadonlyMap<string, Chain>): boolean {
  const led = [...chains.values()].flatMap(({ rules }) => rules.map(jumpChain));
  return led.some((name) => name !== undefined && !chains.has(name));
}

function isDrop({ args }: Rule): boolean {
  return args.some((arg) => arg.kind === 'jump' && arg.target.kind === 'drop');
}

function hasRulesIn(chains: ReadonlyMap<string, Pick<Chain, 'rules'> | NftChain>, name: string): boolean {
  return (chains.get(name)?.rules ?? []).length > 0;
}

/** Reports whether a chain has rules, or leads to a chain with rules. */
function leadsSomewhere(
  chains: ReadonlyMap<string, Chain>,
  jumps: ReturnType<typeof listJumps>,
  table: TableName,
  name: string,
): boolean {
  if (hasRulesIn(chains, name)) return true;
  if (jumps.some((jump) => jump.table === table && jump.from === name && hasRulesIn(chains, jump.to))) return true;
  return table === 'nat' && name === baseChains.services && [...chains.keys()].some(isServiceChainName);
}

function missingOfTable({ family, name: table, chains, sets }: NftTable): readonly MissingJump[] {
  const led = [...sets.values()].flatMap(({ elements }) => elements.flatMap(chainsOfElement));
  const hasServices = [...chains.keys(), ...led].some(isNftServiceName);
  return hookedChains.flatMap((chain) =>
    chain.rules.flatMap((rule): readonly MissingJump[] => {
      const [to = ''] = verdictChains(rule);
      const hasTarget = chains.has(to);
      if (!hasTarget && !(to === nftChains.services && hasServices)) return [];
      // Before 1.33, kube-proxy's base chains at a hook had other names and divided the jumps otherwise.
      const there = [...chains.values()].filter(({ base }) => !base || base.hook === chain.base?.hook);
      if (there.some(({ rules }) => rules.some((each) => verdictChains(each).includes(to)))) return [];
      const hasChain = chains.has(chain.name);
      return [{ tool: 'nftables', family, table, from: chain.name, to, chain, rule, hasTarget, hasChain }];
    }),
  );
}

function verdictChains({ expressions }: NftRule): readonly string[] {
  return expressions.flatMap(chainsOf);
}

/** A fact in a chain or map that no packet reaches, because no rule in chain `from` leads there. */
export interface Unreached {
  readonly family: Family;
  readonly facts: 'addresses' | 'nodePorts' | 'sourceRanges';
  readonly from: string;
  readonly to: Target;
}

type Target = { readonly kind: 'chain' | 'map'; readonly name: string } | { readonly kind: 'drop' };

/** A rule that leads to a chain. Any of the chains in `from` may have the rule. */
interface LeadingRule extends Pick<Unreached, 'facts' | 'to'> {
  readonly table: TableName;
  readonly from: readonly string[];
}

const toNodePorts: LeadingRule = {
  facts: 'nodePorts',
  table: 'nat',
  from: [baseChains.services],
  to: { kind: 'chain', name: baseChains.nodePorts },
};

function guards(from: readonly string[], to: Target): LeadingRule {
  return { facts: 'sourceRanges', table: 'filter', from, to };
}

const firewall: Target = { kind: 'chain', name: baseChains.proxyFirewall };

/** For each mode, the rules that lead to chains with such facts. */
const rulesOfMode: { readonly [M in ProxyMode]?: readonly LeadingRule[] } = {
  iptables: [toNodePorts, guards(['INPUT', 'FORWARD'], firewall)],
  ipvs: [
    guards(['INPUT'], firewall),
    guards([baseChains.proxyFirewall], { kind: 'chain', name: baseChains.sourceRangesFirewall }),
    guards([baseChains.sourceRangesFirewall], { kind: 'drop' }),
  ],
};

const rulesOfTable = [
  { facts: 'addresses', from: nftChains.services, to: { kind: 'map', name: nftSets.serviceIPs } },
  { facts: 'nodePorts', from: nftChains.services, to: { kind: 'map', name: nftSets.serviceNodePorts } },
  { facts: 'sourceRanges', from: nftChains.firewallCheck, to: { kind: 'map', name: nftSets.firewallIPs } },
  {
    facts: 'sourceRanges',
    from: nftChains.filterPreroutingPreDnat,
    to: { kind: 'chain', name: nftChains.firewallCheck },
  },
] as const;

const ofNodePortIPs = { ...rulesOfTable[1], from: nftSets.nodePortIPs };

/**
 * Finds missing rules. kube-proxy makes all these rules, so another program or a person removed the missing ones. `shown` has the tables
 * that the dump shows completely.
 */
export function findUnreached(
  state: KernelState,
  mode: ProxyMode | undefined,
  shown: { readonly iptables: Readonly<Record<Family, readonly TableName[]>>; readonly nftables: readonly Family[] },
): readonly Unreached[] {
  const ofChains = families.flatMap((family) =>
    ((mode && rulesOfMode[mode]) ?? []).flatMap((each): readonly Unreached[] => {
      const { table, facts, from, to } = each;
      const chains = (shown.iptables[family].includes(table) && state.iptables[family]?.[table]) || undefined;
      // If the built-in chains are missing, only some rules were pasted.
      if (!chains || ![...chains.keys()].some((name) => isBuiltInChain(table, name))) return [];
      const isThere = (to.kind === 'drop' ? from : [to.name]).some((name) => hasRulesIn(chains, name));
      return isThere && !isRuleMade(chains, each) && !lacksChains(chains)
        ? from.map((name) => ({ family, facts, from: name, to }))
        : [];
    }),
  );
  const own = state.nftables.filter(({ family, name }) => isKubeProxyTable(name) && shown.nftables.includes(family));
  const ofTables = own.flatMap((table) => {
    const ledFrom = (from: string): readonly unknown[] => {
      // The chain may be missing, because other releases have other names for chains.
      const rules = table.chains.get(from)?.rules;
      const expressions = rules ? rules.flatMap((rule) => rule.expressions) : expressionsIn(table);
      return expressions.flatMap((each) => [setOf(each), ...chainsOf(each)]);
    };
    const isEmpty = table.sets.get(nftSets.nodePortIPs)?.elements.length === 0;
    const missing = rulesOfTable.filter(({ from, to }) => !ledFrom(from).includes(to.name));
    return [...missing, ...(isEmpty ? [ofNodePortIPs] : [])].map((each) => ({ family: table.family, ...each }));
  });
  return [...ofChains, ...ofTables];
}
