import { contains, parseAddress, type Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import { networkOfRange, singleAddress } from '../kernel/address-range.ts';
import type { IpSet } from '../kernel/ipset/ipset.ts';
import type { SetEntry } from '../kernel/ipset/set-entry.ts';
import { isCounter } from '../kernel/iptables/iptables-meaning.ts';
import { nameProtocol } from '../kernel/iptables/rule-args.ts';
import { type Chain, type Rule, type RuleArg, type TableName, tableNames } from '../kernel/iptables/iptables.ts';
import { parsePortRange, type PortRange } from '../kernel/socket-address.ts';
import type { KernelState } from '../kernel/state.ts';
import { hasAddressType, hasState, isInterface, isSourcePortIn, type Flow } from './flow.ts';
import { hooks, type Action, type Decision, type Hook } from './packet.ts';
import { anyOf, negateIf, type Maybe, allOf } from './maybe.ts';
import { meet, type BaseChain, type RuleTable } from './run-chain.ts';

/** Positions of a chain's rules, ascending, by the address or port that they ask for as destination; others by ''. */
type RuleIndex = ReadonlyMap<string, readonly number[]>;

type IpSets = ReadonlyMap<string, IpSetTest>;

/** Chains of fewer rules are gone through rule by rule. */
const fewRules = 16;

/** Where tables see packets: the priority at each hook (linux/netfilter_ipv4.h). */
const stations: { readonly [T in TableName]: { readonly [H in Hook]?: number } } = {
  raw: { prerouting: -300, output: -300 },
  mangle: { prerouting: -150, input: -150, forward: -150, output: -150, postrouting: -150 },
  nat: { prerouting: -100, output: -100, input: 100, postrouting: 100 },
  filter: { input: 0, forward: 0, output: 0 },
  security: { input: 50, forward: 50, output: 50 },
};

/** The tables of a family, ready for packets. Long chains are hashed when the first packet gets to them. */
export function iptablesOf(state: KernelState, family: Family): readonly RuleTable[] {
  const sets: IpSets = new Map(state.sets.map((set) => [set.name, indexIpSet(set)]));
  return tableNames.flatMap((name) => {
    const chains = state.iptables[family]?.[name];
    return chains ? [prepareTable(name, chains, sets)] : [];
  });
}

function prepareTable(name: TableName, chains: ReadonlyMap<string, Chain>, sets: IpSets): RuleTable {
  const indexes = new Map<Chain, RuleIndex>();
  const bases = hooks.flatMap((hook): readonly BaseChain[] => {
    const priority = stations[name][hook];
    const chain = chains.get(hook.toUpperCase());
    if (priority === undefined || !chain) return [];
    return [{ chain: chain.name, hook, priority, isNat: name === 'nat', drops: chain.policy === 'DROP' }];
  });
  const table: RuleTable = {
    tool: 'iptables',
    name,
    chains,
    bases,
    runRules: (flow, chainName) => {
      const chain = chains.get(chainName) as Chain;
      let index = indexes.get(chain);
      if (!index && chain.rules.length >= fewRules) indexes.set(chain, (index = indexRules(chain.rules)));
      for (const at of index ? candidates(flow, index) : chain.rules.keys()) {
        const decision = runRule(flow, table, sets, chain, at);
        if (decision) return decision;
      }
      return undefined;
    },
  };
  return table;
}

/** The rules that may match: a chain of all Services has a few for each of them. */
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

/** The one address or port that a rule asks for as destination; '' if it asks for neither. */
function placeAsked({ args }: Rule): string {
  const to = args.find((arg) => arg.kind === 'destination' && !arg.negated);
  const address = to?.kind === 'destination' ? singleAddress(to.range) : undefined;
  if (address) return address.text;
  const ports = args.find((arg) => arg.kind === 'destination-port' && !arg.negated);
  const isOne = ports?.kind === 'destination-port' && ports.ports.first === ports.ports.last;
  return isOne ? String(ports.ports.first) : '';
}

/** Undefined if the packet goes on to the next rule. */
function runRule(flow: Flow, table: RuleTable, sets: IpSets, chain: Chain, at: number): Decision | undefined {
  const rule = chain.rules[at] as Rule;
  const jump = rule.args.find((arg) => arg.kind === 'jump');
  const action = jump && actionOf(jump);
  if (!action) return undefined;
  const isMatch = allOf(rule.args, (arg) => matches(flow, sets, arg));
  if (isMatch === false) return undefined;
  return meet(flow, table, isMatch, {
    kind: 'rule',
    hook: flow.hook,
    tool: 'iptables',
    table: table.name,
    chain: chain.name,
    position: at + 1,
    rule,
    origin: rule.origin ?? chain.origin,
    action,
  });
}

/** Targets that do not change packets. */
const idleTargets: ReadonlySet<string> = new Set('AUDIT CHECKSUM LED LOG NFLOG RATEEST TCPMSS TRACE ULOG'.split(' '));

/** What a rule does; undefined if it does not change packets. */
function actionOf({ target, goto }: RuleArg & { readonly kind: 'jump' }): Action | undefined {
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
      return { ...target, kind: 'set-mark' };
    case 'other': {
      const [name = '', option, text = '', ...rest] = target.words;
      if (idleTargets.has(name)) return undefined;
      const address = name === 'SNAT' && option === '--to-source' && rest.length === 0 && parseAddress(text);
      return address ? { kind: 'snat', address } : { kind: 'unknown', text: name };
    }
    default:
      return target satisfies never;
  }
}

function matches(flow: Flow, sets: IpSets, arg: RuleArg): Maybe {
  return negateIf('negated' in arg && arg.negated, isTrue(flow, sets, arg));
}

/** Whether what an argument asks is true, without its negation. */
function isTrue(flow: Flow, sets: IpSets, arg: RuleArg): Maybe {
  switch (arg.kind) {
    case 'source':
      flow.choices.sources.add(arg.range);
      return contains(networkOfRange(arg.range), flow.source);
    case 'destination':
      return contains(networkOfRange(arg.range), flow.destination);
    case 'in-interface':
      return isInterface(flow.input, arg.name, '+');
    case 'out-interface':
      return isInterface(flow.output, arg.name, '+');
    case 'protocol':
      return isProtocol(flow, arg.protocol);
    case 'destination-port':
      return isPortIn(flow, arg.ports);
    case 'source-port':
      return isSourcePortIn(arg.ports.first, arg.ports.last);
    case 'mark':
      return (flow.mark & arg.mask) >>> 0 === arg.value;
    case 'conntrack-state':
      return anyOf(arg.states, (state) => hasState(flow, state));
    case 'source-type':
    case 'destination-type': {
      const address = flow[arg.kind === 'source-type' ? 'source' : 'destination'];
      return anyOf(arg.type.split(','), (type) => hasAddressType(flow, address, type));
    }
    case 'match-set':
      return sets.get(arg.set)?.(flow, arg.directions);
    case 'physdev-is-in':
      // Packets that are routed, not bridged. kube-proxy asks only which of two rules with one target takes a packet.
      return false;
    case 'virtual-server': {
      const { server } = flow;
      const isThere = server?.address.text === arg.address.text && server.port === arg.port;
      return isThere && server.protocol.toLowerCase() === arg.protocol;
    }
    case 'statistic':
      return isDrawn(flow, Number(arg.probability));
    case 'recent':
      // The first packet of a client: no endpoint knows it yet, and one may learn it.
      return arg.action.kind === 'set';
    case 'module':
      return idleModules.has(arg.name) ? true : undefined;
    case 'comment':
    case 'jump':
      return true;
    case 'other':
      return isCounter(arg) ? true : matchesWords(flow, arg.words);
    default:
      return arg satisfies never;
  }
}

/** Modules that ask for nothing without an option. */
const idleModules: ReadonlySet<string> = new Set(
  'addrtype comment conntrack icmp icmp6 ipvs mark multiport sctp set state statistic tcp udp'.split(' '),
);

function isDrawn({ choices }: Flow, probability: number): Maybe {
  if (!(probability >= 0 && probability <= 1)) return undefined;
  if (probability === 0 || probability === 1) return probability === 1;
  return choices.draw([probability, 1 - probability]) === 0;
}

function isProtocol({ protocol, family }: Flow, name: string): boolean {
  const own = protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol;
  const asked = nameProtocol(name);
  return asked === 'all' || asked === own;
}

/** Matches that other programs' rules often have, of those that a rule keeps as words. */
function matchesWords(flow: Flow, words: readonly string[]): Maybe {
  const plain = words.filter((word) => word !== '!');
  const names = plain[0] === '-m' ? 3 : 1;
  return negateIf(
    plain.length < words.length,
    matchesOption(flow, plain.slice(0, names).join(' '), plain.slice(names)),
  );
}

function matchesOption(flow: Flow, option: string, [value = '', ...rest]: readonly string[]): Maybe {
  const { protocol } = flow;
  // The first packet of a TCP connection has the flag SYN, and no other.
  if (option === '--tcp-flags' && rest.length === 1) {
    const isSynAsked = value === 'ALL' || value.split(',').includes('SYN');
    return protocol === 'tcp' && rest[0] === (isSynAsked ? 'SYN' : 'NONE');
  }
  if (rest.length > 0) return undefined;
  switch (option) {
    case '--syn':
      return protocol === 'tcp';
    case '-m state --state':
      return anyOf(value.split(','), (state) => hasState(flow, state));
    case '-m multiport --dports':
      return anyOf(readPorts(value), (ports) => ports && isPortIn(flow, ports));
    case '-m multiport --sports':
      return anyOf(readPorts(value), (ports) => ports && isSourcePortIn(ports.first, ports.last));
    default:
      return undefined;
  }
}

function readPorts(text: string): readonly (PortRange | undefined)[] {
  return text.split(',').map(parsePortRange);
}

function isPortIn({ port }: Flow, { first, last }: PortRange): boolean {
  return port >= first && port <= last;
}

/** Whether what a packet has in those directions is in a set. */
type IpSetTest = (flow: Flow, directions: readonly ('src' | 'dst')[]) => Maybe;

/** Hashes a set's entries. Of types that no set of kube-proxy's has, only those of addresses and ports are read. */
function indexIpSet({ type, family, entries }: IpSet): IpSetTest {
  const hasExceptions = entries.some((entry) => entry.options?.includes('nomatch'));
  if (!hasExceptions && type === 'bitmap:port') return portTest(entries);
  const [, parts] = /^(?:hash|bitmap(?=:ip$)):((?:ip|net)(?:,port(?:,(?:ip|net))?)?)$/.exec(type) ?? [];
  if (hasExceptions || parts === undefined) return () => undefined;
  return addressTest(entries, family === 'inet6' ? 'ipv6' : 'ipv4', parts.split(',').length);
}

function portTest(entries: readonly SetEntry[]): IpSetTest {
  const ports = new Set(entries.map(({ port }) => port));
  return (flow, [direction]) => {
    // The kernel reads no ports of SCTP here.
    if (flow.protocol !== 'tcp' && flow.protocol !== 'udp') return false;
    return direction === 'src' ? undefined : ports.has(flow.port);
  };
}

/** Sets of an address or network, with or without a port, with or without another address or network. */
function addressTest(entries: readonly SetEntry[], family: Address['family'], dimensions: number): IpSetTest {
  const exact = new Map<string, SetEntry[]>();
  const networks: SetEntry[] = [];
  for (const entry of entries) {
    if (!entry.address) {
      if (entry.other === undefined) networks.push(entry);
      continue;
    }
    const key = keyOf(entry.address, entry.protocol, entry.port);
    const same = exact.get(key);
    if (same) same.push(entry);
    else exact.set(key, [entry]);
  }
  // What an entry holds that kpc cannot read may be the packet's.
  const otherwise = entries.some(({ other }) => other !== undefined) ? undefined : false;
  return (flow, directions) => {
    const [first, second, third] = directions;
    if (directions.length < dimensions) return undefined;
    const address = addressIn(flow, first);
    if (address.family !== family) return false;
    if (dimensions > 1 && second === 'src') return undefined;
    const asked = dimensions > 1 ? keyOf(address, flow.protocol, flow.port) : address.text;
    const other = dimensions > 2 ? addressIn(flow, third) : undefined;
    const isHit = ({ source }: SetEntry): boolean =>
      other === undefined || (source !== undefined && contains(networkOfRange(source), other));
    const ofNetworks = networks.filter(({ network, protocol, port }) => {
      return network && contains(network, address) && keyOf(address, protocol, port) === asked;
    });
    const same = [...(exact.get(asked) ?? []), ...ofNetworks];
    if (first === 'src') flow.choices.sources.add(entries);
    else if (third === 'src') for (const { source } of same) if (source) flow.choices.sources.add(source);
    return same.some(isHit) || otherwise;
  };
}

function addressIn(flow: Flow, direction: 'src' | 'dst' | undefined): Address {
  return direction === 'src' ? flow.source : flow.destination;
}

function keyOf({ text }: Address, protocol: string | undefined, port: number | undefined): string {
  return protocol === undefined ? text : `${text},${protocol.toLowerCase()}:${port}`;
}
