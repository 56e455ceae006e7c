import { families, type Family } from '../kernel/family.ts';
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
import { isServiceChainName, listJumps } from './chains.ts';
import type { ProxyMode } from './modes.ts';
import { hookedChains, isKubeProxyTable, isNftServiceName, nftChains, nftSets } from './nft-table.ts';

/** A jump of kube-proxy's that the state lacks, although it has the rules that the jump leads to. */
export type MissingJump = {
  readonly family: Family;
  readonly from: string;
  readonly to: string;
  /** Whether the state has the rules of chain `to`, or only those of chains behind it. */
  readonly hasTarget: boolean;
} & (
  | { readonly tool: 'iptables'; readonly table: TableName; readonly rule: Rule }
  /** `chain`: where kube-proxy puts it. `hasChain`: whether the state has that chain. */
  | {
      readonly tool: 'nftables';
      readonly table: string;
      readonly chain: NftChain;
      readonly rule: NftRule;
      readonly hasChain: boolean;
    }
);

/** An administrator's own jump counts as present. */
export function findMissingJumps(state: KernelState, mode: ProxyMode, family: Family): readonly MissingJump[] {
  const own = state.nftables.filter((table) => table.family === family && isKubeProxyTable(table.name));
  return [...missingOfTables(state.iptables[family] ?? {}, mode, family), ...own.flatMap(missingOfTable)];
}

function missingOfTables(tables: Tables, mode: ProxyMode, family: Family): readonly MissingJump[] {
  const jumps = listJumps(mode);
  return jumps.flatMap((jump): readonly MissingJump[] => {
    const { table, from, to } = jump;
    const chains = tables[table];
    if (!chains || !leadsSomewhere(chains, jumps, table, to)) return [];
    const isMade = [...chains.values()].some((chain) => {
      return (chain.name === from || !isBuiltInChain(table, chain.name)) && hasJumpTo(chain, to);
    });
    return isMade ? [] : [{ ...jump, tool: 'iptables', family, hasTarget: hasRulesIn(chains, to) }];
  });
}

function hasJumpTo({ rules }: Chain, to: string): boolean {
  return rules.some((rule) => jumpChain(rule) === to);
}

function hasRulesIn(chains: ReadonlyMap<string, Pick<Chain, 'rules'> | NftChain>, name: string): boolean {
  return (chains.get(name)?.rules ?? []).length > 0;
}

/** Whether a chain, or one that only it leads to, has rules. */
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
  const rulesOfOthers = [...chains.values()].filter(({ base }) => !base).flatMap(({ rules }) => rules);
  return hookedChains.flatMap((chain) =>
    chain.rules.flatMap((rule): readonly MissingJump[] => {
      const [to = ''] = verdictChains(rule);
      const hasTarget = hasRulesIn(chains, to);
      if (!hasTarget && !(to === nftChains.services && hasServices)) return [];
      const own = chains.get(chain.name);
      if ([...(own?.rules ?? []), ...rulesOfOthers].some((each) => verdictChains(each).includes(to))) return [];
      return [{ tool: 'nftables', family, table, from: chain.name, to, chain, rule, hasTarget, hasChain: !!own }];
    }),
  );
}

function verdictChains({ expressions }: NftRule): readonly string[] {
  return expressions.flatMap(chainsOf);
}

/** Facts that hold only for packets that come to the chain or map that shows them, where nothing leads there. */
export interface Unreached {
  readonly family: Family;
  readonly facts: 'nodePorts' | 'sourceRanges';
  readonly from: string;
  readonly to: string;
}

type LeadingRule = readonly [facts: Unreached['facts'], table: TableName, from: string, to: string];

const builtIn = 'INPUT or FORWARD';
const dropped = 'DROP';
const noChains: ReadonlyMap<string, Chain> = new Map();
const toFirewall: LeadingRule = ['sourceRanges', 'filter', builtIn, baseChains.proxyFirewall];

/** The rules that lead to such chains, in each mode that has some. */
const waysOfMode: { readonly [M in ProxyMode]?: readonly LeadingRule[] } = {
  iptables: [['nodePorts', 'nat', baseChains.services, baseChains.nodePorts], toFirewall],
  ipvs: [
    toFirewall,
    ['sourceRanges', 'filter', baseChains.proxyFirewall, baseChains.sourceRangesFirewall],
    ['sourceRanges', 'filter', baseChains.sourceRangesFirewall, dropped],
  ],
};

const waysOfTable = [
  ['nodePorts', nftChains.services, nftSets.serviceNodePorts],
  ['sourceRanges', nftChains.firewallCheck, nftSets.firewallIPs],
  ['sourceRanges', nftChains.filterPreroutingPreDnat, nftChains.firewallCheck],
] as const;

/** Node ports are served at these addresses alone. */
const toNodePorts = { facts: 'nodePorts', from: nftSets.nodePortIPs, to: nftSets.serviceNodePorts } as const;

/** `shown`: the tables that are whole. kube-proxy makes each of these rules, so something removed those that are missing. */
export function findUnreached(
  state: KernelState,
  mode: ProxyMode | undefined,
  shown: { readonly iptables: Readonly<Record<Family, readonly TableName[]>>; readonly nftables: readonly Family[] },
): readonly Unreached[] {
  const ofChains = families.flatMap((family) =>
    ((mode && waysOfMode[mode]) ?? []).flatMap(([facts, table, from, to]): readonly Unreached[] => {
      const chains = shown.iptables[family].includes(table) ? (state.iptables[family]?.[table] ?? noChains) : noChains;
      // Without chains of the kernel, only some rules were pasted.
      const isWhole = [...chains.keys()].some((name) => isBuiltInChain(table, name));
      const isThere = isWhole && hasRulesIn(chains, to === dropped ? from : to);
      const isMade = !isThere || rulesFrom(chains, from).some((rule) => isJumpTo(rule, to));
      return isMade ? [] : [{ family, facts, from, to }];
    }),
  );
  const own = state.nftables.filter(({ family, name }) => isKubeProxyTable(name) && shown.nftables.includes(family));
  const ofTables = own.flatMap((table) => {
    const { family } = table;
    const led = new Set(expressionsIn(table).flatMap((each) => [setOf(each), ...chainsOf(each)]));
    const isEmpty = table.sets.get(nftSets.nodePortIPs)?.elements.length === 0;
    return [
      ...waysOfTable.flatMap(([facts, from, to]) => (led.has(to) ? [] : [{ family, facts, from, to }])),
      ...(isEmpty ? [{ family, ...toNodePorts }] : []),
    ];
  });
  return [...ofChains, ...ofTables];
}

/** An administrator's own chain may jump there, too. */
function rulesFrom(chains: ReadonlyMap<string, Chain>, from: string): readonly Rule[] {
  return chains.get(from)?.rules ?? [...chains.values()].flatMap(({ rules }) => rules);
}

function isJumpTo(rule: Rule, to: string): boolean {
  const isDrop = rule.args.some((arg) => arg.kind === 'jump' && arg.target.kind === 'drop');
  return jumpChain(rule) === to || (to === dropped && isDrop);
}
