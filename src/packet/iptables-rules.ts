import type { Family } from '../kernel/family.ts';
import { singleAddress } from '../kernel/address-range.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import { iptablesPriorities, type Chain, type Rule, type TableName, tableNames } from '../kernel/iptables/iptables.ts';
import { readTerms } from '../kernel/iptables/rule-terms.ts';
import { withNativeRules } from '../kernel/iptables/native-rules.ts';
import { findTable, type NftRule } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import type { Flow } from './flow.ts';
import { indexIpSet, type IpSetTest, type SetDirection } from './ip-sets.ts';
import type { Knowledge, SupposedJump } from './knowledge.ts';
import { isUnknownHost } from './packet.ts';
import { lacks, type Answer } from './reason.ts';
import { tableOf, withJumps, type Terms } from './rule-table.ts';
import type { HookedChain, RuleTable } from './run-chain.ts';
import type { Sets } from './run-rule.ts';
import { hooks } from './step.ts';

type RuleIndex = ReadonlyMap<string, readonly number[]>;

const fewRules = 16;

/** Returns a family's tables. `nftables`: nft's listings of them. `lacksEntries`: whether a set may have unknown entries. */
export function iptablesOf(
  tables: FamilyTables,
  { sets: ipSets, nftables }: Pick<KernelState, 'sets' | 'nftables'>,
  family: Family,
  {
    lacksEntries,
    lacksPolicies,
    supposed,
    supposedChains,
  }: Pick<Knowledge, 'lacksEntries' | 'lacksPolicies' | 'supposed' | 'supposedChains'>,
): readonly RuleTable[] {
  const tests = new Map<string, IpSetTest>();
  for (const set of ipSets) tests.set(set.name, indexIpSet(set, tests));
  const sets: Sets = {
    nameOf: (set) => set,
    elementsOf: () => undefined,
    holds: (flow, set, fields) =>
      tests.get(set)?.(
        flow,
        fields.map(({ name }) => name as SetDirection),
      ),
    isPart: lacksEntries,
  };
  return tableNames.flatMap((name) => {
    const saved = tables[family]?.[name];
    if (!saved) return [];
    const listed = findTable(nftables, family, name);
    const { chains: shown, natives } = listed ? withNativeRules(saved, listed) : { chains: saved, natives: noNatives };
    const own: Sets = {
      ...sets,
      elementsOf: (set) => listed?.sets.get(set)?.elements,
      isPart: (set) => listed?.sets.get(set)?.isPart ?? lacksEntries(set),
    };
    const ofTable = supposedChains.filter((each) => each.family === family && each.table === name);
    const unshown = new Map(ofTable.map(({ chain }) => [chain.name, chain]));
    const lacksPolicy = (chain: string): Answer =>
      lacksPolicies(family, name) && lacks({ kind: 'policy', family, table: name, chain }, `policy ${name} ${chain}`);
    const jumps = supposed.filter(
      (jump): jump is IptablesJump => jump.tool === 'iptables' && jump.family === family && jump.table === name,
    );
    const chains = withJumps(withBuiltIn(name, new Map([...shown, ...unshown])), jumps);
    const bases = basesOf(name, chains, lacksPolicy);
    return [
      tableOf({ tool: 'iptables', name, chains, bases, sets: own, jumps, unshown, ...readEachRule(family, natives) }),
    ];
  });
}

type IptablesJump = Extract<SupposedJump, { readonly tool: 'iptables' }>;

function withBuiltIn(table: TableName, chains: Map<string, Chain>): Map<string, Chain> {
  for (const hook of hooks) {
    const name = hook.toUpperCase();
    if (iptablesPriorities[table][hook] !== undefined && !chains.has(name)) chains.set(name, { name, rules: [] });
  }
  return chains;
}

/** Returns the built-in chains. `lacksPolicy` says why a policy that is not shown is unknown; false if such a chain accepts. */
function basesOf(
  name: TableName,
  chains: ReadonlyMap<string, Chain>,
  lacksPolicy: (chain: string) => Answer,
): readonly HookedChain[] {
  return hooks.flatMap((hook): readonly HookedChain[] => {
    const priority = iptablesPriorities[name][hook];
    const chain = hook.toUpperCase();
    if (priority === undefined) return [];
    const { policy, rules = [] } = chains.get(chain) ?? {};
    const drops = policy === undefined ? lacksPolicy(chain) : policy === 'DROP';
    const isIdle = rules.length === 0 && drops === false;
    return [{ chain, hook, priority, isNat: name === 'nat', reroutes: name === 'mangle', drops, isIdle }];
  });
}

type NativeRules = ReadonlyMap<Rule, NftRule>;

const noNatives: NativeRules = new Map();

function readEachRule(family: Family, natives: NativeRules) {
  const indexes = new Map<Chain, RuleIndex>();
  const read = new Map<Rule, Terms | undefined>();
  return {
    candidates: (flow: Flow, chain: Chain): Iterable<number> => {
      let index = indexes.get(chain);
      if (!index && chain.rules.length >= fewRules) indexes.set(chain, (index = indexRules(chain.rules)));
      // A port that a client's kernel chose has no index entry, and neither has an unknown host.
      return index && flow.port !== undefined && !isUnknownHost(flow.destination)
        ? candidates(flow, index)
        : chain.rules.keys();
    },
    termsOf: (rule: Rule): Terms | undefined => {
      if (read.has(rule)) return read.get(rule);
      const native = natives.get(rule);
      const terms = native ? { expressions: native.expressions, native } : readTerms(rule, family);
      read.set(rule, terms);
      return terms;
    },
  };
}

function candidates({ destination, port }: Flow, index: RuleIndex): Iterable<number> {
  const others = index.get('') ?? [];
  const [byAddress, byPort] = [index.get(destination.text), index.get(String(port))];
  if (!byAddress && !byPort) return others;
  return [...(byAddress ?? []), ...(byPort ?? []), ...others].sort((a, b) => a - b);
}

function indexRules(rules: readonly Rule[]): RuleIndex {
  const index = new Map<string, number[]>();
  rules.forEach((rule, position) => {
    const place = placeAsked(rule);
    const same = index.get(place);
    if (same) same.push(position);
    else index.set(place, [position]);
  });
  return index;
}

function placeAsked({ args }: Rule): string {
  const to = args.find((arg) => arg.kind === 'destination' && !arg.negated);
  const address = to?.kind === 'destination' ? singleAddress(to.range) : undefined;
  if (address) return address.text;
  const ports = args.find((arg) => arg.kind === 'destination-port' && !arg.negated);
  const isOne = ports?.kind === 'destination-port' && ports.ports.first === ports.ports.last;
  return isOne ? String(ports.ports.first) : '';
}
