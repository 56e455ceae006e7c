import { contains, parseAddress } from '../kernel/address.ts';
import { networkOfRange, singleAddress } from '../kernel/address-range.ts';
import { isCounter } from '../kernel/iptables/iptables-meaning.ts';
import { nameProtocol } from '../kernel/iptables/rule-args.ts';
import type { Chain, Rule, RuleArg, TableName } from '../kernel/iptables/iptables.ts';
import { parsePortRange, type PortRange } from '../kernel/socket-address.ts';
import { hasAddressType, hasState, isInterface, isSourcePortIn, type Flow } from './flow.ts';
import type { Decision, Action } from './packet.ts';
import type { IpSetTest } from './set-lookup.ts';
import { anyOf, negateIf, type Maybe, allOf } from './maybe.ts';
import { meet, type RuleTable } from './run-chain.ts';

/** Positions of a chain's rules, ascending, by what they ask of the destination. */
interface RuleIndex {
  readonly byAddress: ReadonlyMap<string, readonly number[]>;
  readonly byPort: ReadonlyMap<number, readonly number[]>;
  readonly others: readonly number[];
}

type IpSets = ReadonlyMap<string, IpSetTest>;

/** Chains of fewer rules are gone through rule by rule. */
const fewRules = 16;

/** Makes a table ready for packets. Long chains are hashed when the first packet gets to them. */
export function prepareTable(name: TableName, chains: ReadonlyMap<string, Chain>, sets: IpSets): RuleTable {
  const indexes = new Map<Chain, RuleIndex>();
  const table: RuleTable = {
    tool: 'iptables',
    name,
    chains,
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
  const byAddress = index.byAddress.get(destination.text);
  const byPort = index.byPort.get(port);
  if (!byAddress && !byPort) return index.others;
  return [...(byAddress ?? []), ...(byPort ?? []), ...index.others].sort((a, b) => a - b);
}

function indexRules(rules: readonly Rule[]): RuleIndex {
  const byAddress = new Map<string, number[]>();
  const byPort = new Map<number, number[]>();
  const others: number[] = [];
  const add = <K>(map: Map<K, number[]>, key: K, position: number): void => {
    const positions = map.get(key);
    if (positions) positions.push(position);
    else map.set(key, [position]);
  };
  rules.forEach(({ args }, position) => {
    const to = args.find((arg) => arg.kind === 'destination' && !arg.negated);
    const address = to?.kind === 'destination' ? singleAddress(to.range) : undefined;
    const ports = args.find((arg) => arg.kind === 'destination-port' && !arg.negated);
    if (address) add(byAddress, address.text, position);
    else if (ports?.kind === 'destination-port' && ports.ports.first === ports.ports.last)
      add(byPort, ports.ports.first, position);
    else others.push(position);
  });
  return { byAddress, byPort, others };
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
    case 'destination':
      return contains(networkOfRange(arg.range), flow[arg.kind]);
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
    case '-f':
      return false;
    case '-m state --state':
      return anyOf(value.split(','), (state) => hasState(flow, state));
    case '-m multiport --dports':
      return anyOf(readPorts(value), (ports) => ports && isPortIn(flow, ports));
    case '-m multiport --sports':
      return anyOf(readPorts(value), (ports) => ports && isSourcePortIn(ports.first, ports.last));
    case '-m icmp --icmp-type':
    case '-m icmp6 --icmpv6-type':
      if (['8', '128', '8/0', '128/0', 'echo-request', 'any'].includes(value)) return true;
      return /^\d+(\/\d+)?$/.test(value) ? false : undefined;
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
