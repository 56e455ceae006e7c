import { contains, parseAddress } from '../kernel/address.ts';
import { networkOfRange, singleAddress } from '../kernel/address-range.ts';
import { isCounter } from '../kernel/iptables/iptables-meaning.ts';
import { nameProtocol } from '../kernel/iptables/parse-rule.ts';
import type { Chain, Rule, RuleArg, TableName, Target } from '../kernel/iptables/iptables.ts';
import { parsePortRange, type PortRange } from '../kernel/socket-address.ts';
import {
  hasAddressType,
  hasState,
  isInterface,
  isSourcePortIn,
  masquerade,
  rewriteDestination,
  type Flow,
} from './flow.ts';
import type { Decision } from './packet.ts';
import type { IpSetTest } from './ip-sets.ts';
import { anyOf, negateIf, type Maybe, allOf } from './maybe.ts';

/** The chains of one table of iptables, ready for packets. */
export interface PreparedTable {
  readonly name: TableName;
  readonly chains: ReadonlyMap<string, Chain>;
  readonly sets: ReadonlyMap<string, IpSetTest>;
  readonly indexes: Map<Chain, RuleIndex>;
}

/** Positions of a chain's rules, ascending, by what they ask of the destination. */
interface RuleIndex {
  readonly byAddress: ReadonlyMap<string, readonly number[]>;
  readonly byPort: ReadonlyMap<number, readonly number[]>;
  readonly others: readonly number[];
}

/** Sends a packet through one of the kernel's chains. */
export function runTable(flow: Flow, table: PreparedTable, hook: string): Decision {
  const chain = table.chains.get(hook);
  if (!chain) return 'accept';
  const decision = runChain(flow, table, chain);
  if (decision !== 'return') return decision;
  if (chain.policy !== 'DROP') return 'accept';
  flow.steps.push({ kind: 'policy', hook: flow.hook, tool: 'iptables', table: table.name, chain: hook });
  return 'dropped';
}

function runChain(flow: Flow, table: PreparedTable, chain: Chain): Decision {
  return flow.choices.enter(() => {
    for (const position of candidates(flow, table, chain)) {
      const decision = runRule(flow, table, chain, position);
      if (decision) return decision;
    }
    return 'return';
  });
}

/** Chains of fewer rules are gone through rule by rule. */
const fewRules = 16;

/** The rules that may match: a chain of all Services has a few for each of them. */
function candidates(flow: Flow, table: PreparedTable, chain: Chain): Iterable<number> {
  if (chain.rules.length < fewRules) return chain.rules.keys();
  let index = table.indexes.get(chain);
  if (!index) table.indexes.set(chain, (index = indexRules(chain.rules)));
  const byAddress = index.byAddress.get(flow.destination.text);
  const byPort = index.byPort.get(flow.port);
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
function runRule(flow: Flow, table: PreparedTable, chain: Chain, position: number): Decision | undefined {
  const rule = chain.rules[position] as Rule;
  const jump = rule.args.find((arg) => arg.kind === 'jump');
  if (!jump || isIdle(jump.target)) return undefined;
  const record = (): void => {
    flow.steps.push({
      kind: 'rule',
      hook: flow.hook,
      tool: 'iptables',
      table: table.name,
      chain: chain.name,
      position: position + 1,
      rule,
      origin: rule.origin ?? chain.origin,
    });
  };
  const isMatch = allOf(rule.args, (arg) => matches(flow, table, arg, rule));
  if (isMatch === false) return undefined;
  record();
  if (isMatch === undefined && !flow.choices.doubt(() => flow.steps.slice())) {
    flow.steps.pop();
    return undefined;
  }
  return act(flow, table, jump.target, jump.goto === true);
}

/** Whether a target leaves packets as they are. */
function isIdle(target: Target): boolean {
  return target.kind === 'other' && idleTargets.has(target.words[0] ?? '');
}

const idleTargets: ReadonlySet<string> = new Set('AUDIT CHECKSUM LED LOG NFLOG RATEEST TCPMSS TRACE ULOG'.split(' '));

function act(flow: Flow, table: PreparedTable, target: Target, goto: boolean): Decision | undefined {
  switch (target.kind) {
    case 'chain': {
      const next = table.chains.get(target.chain);
      if (!next) return 'unknown';
      const decision = runChain(flow, table, next);
      return decision === 'return' && !goto ? undefined : decision;
    }
    case 'accept':
    case 'return':
      return target.kind;
    case 'drop':
      return 'dropped';
    case 'reject':
      return 'refused';
    case 'masquerade':
      masquerade(flow);
      return 'accept';
    case 'dnat':
      rewriteDestination(flow, target.address, target.port);
      return 'accept';
    case 'mark':
      flow.mark = changeMark(flow.mark, target);
      return undefined;
    case 'other':
      return rewriteSource(flow, target.words);
    default:
      return target satisfies never;
  }
}

function changeMark(mark: number, { operation, value, mask }: Target & { readonly kind: 'mark' }): number {
  switch (operation) {
    case 'or':
      return (mark | value) >>> 0;
    case 'xor':
      return (mark ^ value) >>> 0;
    case 'set':
      return ((mark & ~mask) ^ value) >>> 0;
    default:
      return operation satisfies never;
  }
}

/** `SNAT --to-source ADDRESS`, which is the only other target that kpc follows. */
function rewriteSource(flow: Flow, [name, option, text, ...rest]: readonly string[]): Decision {
  const address = text === undefined ? undefined : parseAddress(text);
  if (name !== 'SNAT' || option !== '--to-source' || !address || rest.length > 0) return 'unknown';
  flow.source = address;
  flow.connection?.rewritten.add('source');
  return 'accept';
}

function matches(flow: Flow, table: PreparedTable, arg: RuleArg, rule: Rule): Maybe {
  switch (arg.kind) {
    case 'source':
      return negateIf(arg.negated, contains(networkOfRange(arg.range), flow.source));
    case 'destination':
      return negateIf(arg.negated, contains(networkOfRange(arg.range), flow.destination));
    case 'in-interface':
      return negateIf(arg.negated, isInterface(flow.input, arg.name, '+'));
    case 'out-interface':
      return negateIf(arg.negated, isInterface(flow.output, arg.name, '+'));
    case 'protocol':
      return negateIf(arg.negated, isProtocol(flow, arg.protocol));
    case 'destination-port':
      return negateIf(arg.negated, isPortIn(flow, arg.ports));
    case 'source-port':
      return negateIf(arg.negated, isSourcePortIn(arg.ports.first, arg.ports.last));
    case 'mark':
      return negateIf(arg.negated, (flow.mark & arg.mask) >>> 0 === arg.value);
    case 'conntrack-state':
      return negateIf(
        arg.negated,
        anyOf(arg.states, (state) => hasState(flow, state)),
      );
    case 'address-type': {
      const address = arg.which === 'source' ? flow.source : flow.destination;
      return negateIf(
        arg.negated,
        anyOf(arg.type.split(','), (type) => hasAddressType(flow, address, type)),
      );
    }
    case 'match-set':
      return negateIf(arg.negated, table.sets.get(arg.set)?.(flow, arg.directions));
    case 'physdev-is-in':
      // Packets that are routed, not bridged. kube-proxy asks only which of two rules with one target takes a packet.
      return negateIf(arg.negated, false);
    case 'virtual-server': {
      const { server } = flow;
      return (
        server?.address.text === arg.address.text &&
        server.port === arg.port &&
        server.protocol.toLowerCase() === arg.protocol
      );
    }
    case 'statistic':
      return isDrawn(flow, Number(arg.probability));
    case 'recent':
      // The first packet of a client: no endpoint knows it yet, and one may come to know it.
      return arg.action.kind === 'set';
    case 'module':
      return idleModules.has(arg.name) ? true : undefined;
    case 'comment':
    case 'jump':
      return true;
    case 'other':
      return isCounter(arg) ? true : matchesWords(flow, arg.words, rule);
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
function matchesWords(flow: Flow, words: readonly string[], rule: Rule): Maybe {
  const negated = words[0] === '!';
  const rest = negated ? words.slice(1) : words;
  if (rest[0] === '-m') {
    const [, name, ...options] = rest;
    const isNegated = options[0] === '!';
    return negateIf(isNegated, matchesModule(flow, name ?? '', isNegated ? options.slice(1) : options, rule));
  }
  return negateIf(negated, matchesHeader(flow, rest));
}

function matchesModule(flow: Flow, module: string, [option, value, ...rest]: readonly string[], rule: Rule): Maybe {
  if (rest.length > 0 || value === undefined) return undefined;
  switch (`${module} ${option}`) {
    case 'state --state':
      return anyOf(value.split(','), (state) => hasState(flow, state));
    case 'multiport --dports':
      return anyOf(readPorts(value), (ports) => ports && isPortIn(flow, ports));
    case 'multiport --sports':
      return anyOf(readPorts(value), (ports) => ports && isSourcePortIn(ports.first, ports.last));
    case 'icmp --icmp-type':
    case 'icmp6 --icmpv6-type':
      return isEcho(value);
    default:
      return rule.args.some((arg) => arg.kind === 'jump') ? undefined : true;
  }
}

function readPorts(text: string): readonly (PortRange | undefined)[] {
  return text.split(',').map(parsePortRange);
}

function isPortIn({ port }: Flow, { first, last }: PortRange): boolean {
  return port >= first && port <= last;
}

function isEcho(type: string): Maybe {
  if (['8', '128', '8/0', '128/0', 'echo-request', 'any'].includes(type)) return true;
  return /^\d+(\/\d+)?$/.test(type) ? false : undefined;
}

/** The first packet of a TCP connection has the flag SYN, and no other. */
function matchesHeader({ protocol }: Flow, [option, mask, flags]: readonly string[]): Maybe {
  switch (option) {
    case '--syn':
      return protocol === 'tcp';
    case '--tcp-flags': {
      if (mask === undefined || flags === undefined) return undefined;
      const isSynAsked = mask === 'ALL' || mask.split(',').includes('SYN');
      return protocol === 'tcp' && (isSynAsked ? flags === 'SYN' : flags === 'NONE');
    }
    case '-f':
      return false;
    default:
      return undefined;
  }
}
