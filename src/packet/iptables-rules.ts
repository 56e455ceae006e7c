import type { Family } from '../kernel/family.ts';
import { contains } from '../kernel/address.ts';
import { networkOfRange, singleAddress } from '../kernel/address-range.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import { isNfacctCounter } from '../kernel/iptables/iptables-meaning.ts';
import { nameProtocol } from '../kernel/iptables/rule-args.ts';
import { type Chain, type Rule, type RuleArg, type TableName, tableNames } from '../kernel/iptables/iptables.ts';
import {
  hasAddressType,
  hasState,
  isDrawn,
  isInterface,
  isInWritten,
  isPortIn,
  isSourcePortIn,
  testSource,
  type Flow,
} from './flow.ts';
import { indexIpSet, type IpSetTest, type IpSetTests } from './ip-sets.ts';
import { iptablesPriorities, type Knowledge, type SupposedJump } from './knowledge.ts';
import type { Decision } from './packet.ts';
import { hooks, type Action } from './step.ts';
import { someOf, negateIf, allOf, lacks, unreadRule, type Answer } from './reason.ts';
import { matchesWords } from './other-matches.ts';
import { actionOfWords } from './other-targets.ts';
import { hasJump, meet, unshownPosition, type HookedChain, type RuleTable } from './run-chain.ts';

/** A chain's rule positions, ascending, by the destination address or port they match; '' for others. */
type RuleIndex = ReadonlyMap<string, readonly number[]>;

/** Chains with fewer rules are scanned without an index. */
const fewRules = 16;

/** The tables of a family, hashed when first reached. `lacksEntries`: sets may have unknown entries. */
export function iptablesOf(
  tables: FamilyTables,
  ipSets: readonly IpSet[],
  family: Family,
  {
    lacksEntries,
    lacksPolicies,
    supposed,
    supposedChains,
  }: Pick<Knowledge, 'lacksEntries' | 'lacksPolicies' | 'supposed' | 'supposedChains'>,
): readonly RuleTable[] {
  const sets = new Map<string, IpSetTest>();
  for (const set of ipSets) {
    const test = indexIpSet(set, sets);
    sets.set(
      set.name,
      lacksEntries ? (...asked) => test(...asked) || lacks({ kind: 'set', tool: 'iptables', set: set.name }) : test,
    );
  }
  return tableNames.flatMap((name) => {
    const shown = tables[family]?.[name];
    if (!shown) return [];
    const unshown = supposedChains.filter((each) => each.family === family && each.table === name);
    const own = new Map(unshown.map(({ chain }) => [chain.name, chain]));
    const lacksPolicy = (chain: string): Answer =>
      lacksPolicies(family, name) && lacks({ kind: 'policy', family, table: name, chain }, `policy ${name} ${chain}`);
    const jumps = supposed.filter(
      (jump): jump is IptablesJump => jump.tool === 'iptables' && jump.family === family && jump.table === name,
    );
    const lookups = { sets, supposed: byRule(jumps), supposedChains: own };
    return [prepareTable(name, chainsWithJumps(name, shown, [...own.values()], jumps), lookups, lacksPolicy)];
  });
}

type IptablesJump = Extract<SupposedJump, { readonly tool: 'iptables' }>;

type SupposedRules = ReadonlyMap<Rule, IptablesJump>;

function byRule(jumps: readonly IptablesJump[]): SupposedRules {
  return new Map(jumps.map((jump) => [jump.rule, jump]));
}

/**
 * The chains with those that are supposed, and those that the kernel has, shown or not. Supposed jumps go before all other rules,
 * or after them if they are marked so.
 */
function chainsWithJumps(
  table: TableName,
  given: ReadonlyMap<string, Chain>,
  own: readonly Chain[],
  jumps: readonly IptablesJump[],
): ReadonlyMap<string, Chain> {
  const chains = new Map(given);
  for (const chain of own) chains.set(chain.name, chain);
  for (const hook of hooks) {
    const name = hook.toUpperCase();
    if (iptablesPriorities[table][hook] !== undefined && !chains.has(name)) chains.set(name, { name, rules: [] });
  }
  for (const jump of jumps) {
    const { from: name, rule } = jump;
    const chain = chains.get(name) ?? { name, rules: [] };
    chains.set(name, { ...chain, rules: rule.isLast ? [...chain.rules, rule] : [rule, ...chain.rules] });
  }
  return chains;
}

interface ChainLookups {
  readonly sets: IpSetTests;
  readonly supposed: SupposedRules;
  readonly supposedChains: ReadonlyMap<string, Chain>;
}

/** `lacksPolicy`: why unshown policies are unknown; false if such chains accept. */
function prepareTable(
  name: TableName,
  chains: ReadonlyMap<string, Chain>,
  lookups: ChainLookups,
  lacksPolicy: (chain: string) => Answer,
): RuleTable {
  const indexes = new Map<Chain, RuleIndex>();
  const bases = hooks.flatMap((hook): readonly HookedChain[] => {
    const priority = iptablesPriorities[name][hook];
    const chain = hook.toUpperCase();
    if (priority === undefined) return [];
    const { policy, rules = [] } = chains.get(chain) ?? {};
    const drops = policy === undefined ? lacksPolicy(chain) : policy === 'DROP';
    const isIdle = rules.length === 0 && drops === false;
    return [{ chain, hook, priority, isNat: name === 'nat', reroutes: name === 'mangle', drops, isIdle }];
  });
  const jumpsTo = new Set([...lookups.supposed.values()].map(({ to }) => to));
  const table: RuleTable = {
    tool: 'iptables',
    name,
    chains,
    bases,
    // A supposed jump decides about its chain.
    supposed: new Set([...lookups.supposedChains.keys()].filter((to) => !jumpsTo.has(to))),
    runRules: (flow, chainName) => {
      const chain = chains.get(chainName) as Chain;
      let index = indexes.get(chain);
      if (!index && chain.rules.length >= fewRules) indexes.set(chain, (index = indexRules(chain.rules)));
      // An unknown port, chosen by a client's kernel, has no index entry.
      for (const at of index && flow.port !== undefined ? candidates(flow, index) : chain.rules.keys()) {
        const decision = runRule(flow, table, lookups, chain, at);
        if (decision) return decision;
      }
      return undefined;
    },
  };
  return table;
}

/** The rules that may match: in a chain of all Services, a few of many. */
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

/** The one destination address or port that a rule matches; '' if it matches neither. */
function placeAsked({ args }: Rule): string {
  const to = args.find((arg) => arg.kind === 'destination' && !arg.negated);
  const address = to?.kind === 'destination' ? singleAddress(to.range) : undefined;
  if (address) return address.text;
  const ports = args.find((arg) => arg.kind === 'destination-port' && !arg.negated);
  const isOne = ports?.kind === 'destination-port' && ports.ports.first === ports.ports.last;
  return isOne ? String(ports.ports.first) : '';
}

function runRule(
  flow: Flow,
  table: RuleTable,
  { sets, supposed, supposedChains }: ChainLookups,
  chain: Chain,
  at: number,
): Decision | undefined {
  const rule = chain.rules[at] as Rule;
  const unshown = supposed.get(rule);
  const jump = rule.args.find((arg) => arg.kind === 'jump');
  const action = jump && actionOfJump(jump);
  if (!action) return undefined;
  const test = (): Answer => {
    const isMatch = allOf(rule.args, (arg) => isByChance(arg) || matchesArgument(flow, sets, arg));
    if (isMatch === true && unshown) {
      const rules = supposedChains.get(unshown.to)?.rules;
      // A doubtful jump to a chain without effect makes no difference.
      const isIdle = rules?.every(({ args }) => allOf(args, (arg) => matchesArgument(flow, sets, arg)) === false);
      return isIdle !== true && hasJump(flow, unshown);
    }
    // Chance is drawn last, once the rest is known to match.
    return isMatch === true ? allOf(rule.args, (arg) => !isByChance(arg) || matchesArgument(flow, sets, arg)) : isMatch;
  };
  return meet(flow, table, test, {
    kind: 'rule',
    hook: flow.hook,
    tool: 'iptables',
    table: table.name,
    chain: chain.name,
    position:
      unshown || supposedChains.has(chain.name) ? unshownPosition : at + 1 - countBefore(chain.rules, at, supposed),
    rule,
    origin: rule.origin ?? chain.origin,
    action,
  });
}

/** How many earlier rules are in no listing. */
function countBefore(rules: readonly Rule[], at: number, supposed: SupposedRules): number {
  return supposed.size === 0 ? 0 : rules.slice(0, at).filter((rule) => supposed.has(rule)).length;
}

function isByChance(arg: RuleArg): boolean {
  return arg.kind === 'statistic' || (arg.kind === 'other' && arg.words[1] === 'statistic');
}

/** What a rule does; undefined if it does not change packets. */
function actionOfJump({ target, goto }: RuleArg & { readonly kind: 'jump' }): Action | undefined {
  switch (target.kind) {
    case 'chain':
      return { kind: goto ? 'goto' : 'jump', chain: target.chain };
    case 'accept':
    case 'return':
    case 'drop':
    case 'reject':
    case 'masquerade':
      return target;
    case 'dnat':
      return { kind: 'dnat', target };
    case 'mark':
      return { kind: 'change-mark', of: 'packet', change: { stays: ~target.mask >>> 0, flip: target.value } };
    case 'other':
      return actionOfWords(target.words);
    default:
      return target satisfies never;
  }
}

function matchesArgument(flow: Flow, sets: IpSetTests, arg: RuleArg): Answer {
  return negateIf('negated' in arg && arg.negated, isTrue(flow, sets, arg));
}

/** Whether an argument matches, ignoring its negation. */
function isTrue(flow: Flow, sets: IpSetTests, arg: RuleArg): Answer {
  switch (arg.kind) {
    case 'source': {
      const { range } = arg;
      return testSource(flow, range, range.text, (source) => contains(networkOfRange(range), source));
    }
    case 'destination':
      return contains(networkOfRange(arg.range), flow.destination);
    case 'in-interface':
      return isInterface(flow, 'input', arg.name, '+');
    case 'out-interface':
      return isInterface(flow, 'output', arg.name, '+');
    case 'protocol':
      return isProtocol(flow, arg.protocol);
    case 'destination-port':
      return isPortIn(flow, arg.ports);
    case 'source-port':
      return isSourcePortIn(flow, arg.ports.first, arg.ports.last);
    case 'mark':
      return (flow.mark & arg.mask) >>> 0 === arg.value;
    case 'conntrack-state':
      return someOf(arg.states, (state) => hasState(flow, state));
    case 'source-type':
    case 'destination-type': {
      const address = flow[arg.kind === 'source-type' ? 'source' : 'destination'];
      return someOf(arg.type.split(','), (type) => hasAddressType(flow, address, type));
    }
    case 'match-set':
      return isInWritten(
        flow,
        arg.set,
        arg.directions.join(','),
        sets.get(arg.set)?.(flow, arg.directions) ?? lacks({ kind: 'set', tool: 'iptables', set: arg.set }),
      );
    case 'physdev-is-in':
      // Assumes a routed packet: kube-proxy uses this match only between two rules with the same target.
      return false;
    case 'virtual-server': {
      const { server } = flow;
      const isThere = server?.address.text === arg.address.text && server.port === arg.port;
      return isThere && server.protocol.toLowerCase() === arg.protocol;
    }
    case 'statistic':
      return isDrawn(flow, Number(arg.probability));
    case 'recent':
      // At a client's first packet, `recent` knows no endpoint yet.
      return arg.action.kind === 'set';
    case 'module':
      return idleModules.has(arg.name) || unreadRule(`-m ${arg.name}`);
    case 'comment':
    case 'jump':
      return true;
    case 'other':
      return isNfacctCounter(arg) || matchesWords(flow, arg.words);
    default:
      return arg satisfies never;
  }
}

/** Modules that match every packet when given no option. */
const idleModules: ReadonlySet<string> = new Set(
  'addrtype comment conntrack icmp icmp6 ipvs mark multiport sctp set state statistic tcp udp'.split(' '),
);

function isProtocol({ protocol, family }: Flow, name: string): boolean {
  const own = protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol;
  const asked = nameProtocol(name);
  return asked === 'all' || asked === own;
}
