import { networkOfRange, singleAddress } from '../kernel/address-range.ts';
import { type Address, contains, type Family } from '../kernel/address.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import { formatEntry, type SetEntry } from '../kernel/ipset/set-entry.ts';
import type { FamilyTables } from '../kernel/iptables/iptables-delta.ts';
import { type Chain, iptablesPriorities, type Rule, type TableName, tableNames } from '../kernel/iptables/iptables.ts';
import { withNativeRules } from '../kernel/iptables/native-rules.ts';
import { readTerms } from '../kernel/iptables/rule-terms.ts';
import { findTable, type NftRule } from '../kernel/nftables/table.ts';
import type { KernelState } from '../kernel/state.ts';
import { type Flow, testDestination, testSource } from './flow.ts';
import type { Knowledge, SupposedJump } from './knowledge.ts';
import { isUnknownHost } from './packet.ts';
import { type Answer, circumstance, lacks, someOf, unreadRule, unreadValue } from './reason.ts';
import { tableOf, type Terms, withJumps } from './rule-table.ts';
import type { HookedChain, RuleTable } from './run-chain.ts';
import type { Sets } from './run-rule.ts';
import { hooks } from './step.ts';

type RuleIndex = ReadonlyMap<string, readonly number[]>;

const fewRules = 16;

/** Returns a family's tables. `nftables`: nft's listings of the same tables. `lacksEntries`: whether a set may have unknown entries. */
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

/** Returns the built-in chains. For a policy not shown, `lacksPolicy` returns why it is unknown, or false if the chain accepts. */
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
      // The index cannot look up an unknown host or a port that a client's kernel chose.
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

type SetDirection = 'src' | 'dst';

type IpSetTest = (flow: Flow, directions: readonly SetDirection[]) => Answer;

type IpSetTests = ReadonlyMap<string, IpSetTest>;

/** Returns a set's test, built on first use. `all`: the tests of all sets, because a list:set contains other sets. */
function indexIpSet(set: IpSet, all: IpSetTests): IpSetTest {
  let test: IpSetTest | undefined;
  return (flow, directions) => (test ??= setTestOf(set, all))(flow, directions);
}

/** Builds a set's test. Apart from kube-proxy's set types, only types with addresses and ports are read. */
function setTestOf({ name, type, family, entries, options }: IpSet, all: IpSetTests): IpSetTest {
  if (options?.some((option) => /^(?:netmask|bitmask|markmask)$/.test(option))) return () => unreadRule(`set ${name}`);
  if (type === 'bitmap:port') return portTest(entries);
  if (type === 'list:set') {
    return (flow, directions) =>
      someOf(entries, (entry) => {
        const member = formatEntry(entry);
        return all.get(member)?.(flow, directions) ?? lacks({ kind: 'set', tool: 'iptables', set: member });
      });
  }
  const [, parts] = /^(?:hash|bitmap(?=:ip$)):((?:ip|net)(?:,port(?:,(?:ip|net))?)?)$/.exec(type) ?? [];
  if (parts === undefined) return () => unreadRule(`set ${name}`);
  return addressTest(name, entries, family === 'inet6' ? 'ipv6' : 'ipv4', parts.split(',').length);
}

function portTest(entries: readonly SetEntry[]): IpSetTest {
  const ports = new Set(entries.map(({ port }) => port));
  const unread = entries.find(({ other }) => other !== undefined)?.other;
  return (flow, [direction]) => {
    // In a bitmap:port set, the kernel does not look up SCTP ports.
    if (flow.protocol !== 'tcp' && flow.protocol !== 'udp') return false;
    if (direction === 'src') return circumstance('source-port');
    return ports.has(flow.port) || (unread !== undefined && unreadValue(unread));
  };
}

function addressTest(
  name: string,
  entries: readonly SetEntry[],
  family: Address['family'],
  dimensions: number,
): IpSetTest {
  const exact = new Map<string, SetEntry[]>();
  const networks: SetEntry[] = [];
  for (const entry of entries) {
    if (!entry.address) {
      if (entry.other === undefined) networks.push(entry);
      continue;
    }
    const key = memberKey(entry.address, entry.protocol, entry.port);
    const same = exact.get(key);
    if (same) same.push(entry);
    else exact.set(key, [entry]);
  }
  const unread = entries.find(({ other }) => other !== undefined)?.other;
  const otherwise: Answer = unread !== undefined && unreadValue(unread);
  const findFirst = (flow: Flow, address: Address): readonly SetEntry[] => {
    const asked = dimensions > 1 ? memberKey(address, flow.protocol, flow.port) : address.text;
    const ofNetworks = networks.filter(({ network, protocol, port }) => {
      return network && contains(network, address) && memberKey(address, protocol, port) === asked;
    });
    return [...(exact.get(asked) ?? []), ...ofNetworks.toSorted(byLength)];
  };
  return (flow, [first, second, third]) => {
    if ([second, third].slice(0, dimensions - 1).includes(undefined)) return unreadRule(`--match-set ${name}`);
    if (flow.family !== family) return false;
    if (dimensions > 1 && second === 'src') return circumstance('source-port');
    const testFirst = (address: Address): Answer => {
      const same = findFirst(flow, address);
      if (dimensions < 3) return same.length > 0 ? !isException(same[0]) : otherwise;
      return testThird(flow, same, third === 'src') || otherwise;
    };
    const fact = `set ${name}`;
    return first === 'src' ? testSource(flow, entries, fact, testFirst) : testDestination(flow, fact, testFirst);
  };
}

/** Reports whether the packet's other address matches too. `entries` match its first address and port, the most specific first. */
function testThird(flow: Flow, entries: readonly SetEntry[], isSource: boolean): Answer {
  const ofOther = (address: Address) => {
    const held = entries.filter(({ source }) => source !== undefined && contains(networkOfRange(source), address));
    const lengthOf = ({ source }: SetEntry): number => (source ? networkOfRange(source).prefixLength : 0);
    const [nearest] = held.toSorted((a, b) => lengthOf(b) - lengthOf(a));
    return nearest !== undefined && !isException(nearest);
  };
  if (!isSource) return ofOther(flow.destination);
  for (const { source } of entries) if (source) flow.choices.sources.add(source);
  const [first] = entries;
  return first === undefined ? false : testSource(flow, first.source ?? entries, formatEntry(first), ofOther);
}

/** Sorts the most specific network first, because that network decides. A network with nomatch is an exception to wider networks. */
function byLength(a: SetEntry, b: SetEntry): number {
  return (b.network?.prefixLength ?? 0) - (a.network?.prefixLength ?? 0);
}

function isException(entry: SetEntry | undefined): boolean {
  return entry?.options?.includes('nomatch') === true;
}

function memberKey({ text }: Address, protocol: string | undefined, port: number | undefined): string {
  return protocol === undefined ? text : `${text},${protocol.toLowerCase()}:${port}`;
}
