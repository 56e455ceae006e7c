import type { Address } from '../../kernel/address.ts';
import { networkOfRange, singleAddress, type AddressRange } from '../../kernel/address-range.ts';
import { spanOfAddress, spanOfNetwork, spanOfRange, type AddressSpan } from '../../kernel/address-span.ts';
import { families, type Family } from '../../kernel/family.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import { tableNames, type Rule } from '../../kernel/iptables/iptables.ts';
import type { Element, Value } from '../../kernel/nftables/element.ts';
import type { Expression, Field, Selector } from '../../kernel/nftables/expression.ts';
import type { NftMap, NftRule, NftSet, NftTable } from '../../kernel/nftables/table.ts';
import type { KernelState } from '../../kernel/state.ts';
import type { Fate, Packet, PacketProtocol, RuleStep } from '../packet.ts';
import { isSingle, keyOfSpan } from './spans.ts';

/** A protocol and port, as "tcp 80". */
export type PortKey = string;

export function portKey(protocol: string, port: number): PortKey {
  return `${protocol.toLowerCase()} ${port}`;
}

/** Everything that a state asks of packets: it cannot tell apart two packets that answer all of it alike. */
export interface Questions {
  /** Addresses that are asked for as destinations, by their text. */
  readonly destinations: ReadonlyMap<string, AskedDestination>;
  /** Networks and ranges that are asked for as destinations. */
  readonly spans: readonly AddressSpan[];
  /** Ports that are asked for whatever the destination, by the rule or set that asks. */
  readonly ports: readonly (readonly PortKey[])[];
  /** Names of the interfaces that are asked for. */
  readonly interfaces: ReadonlySet<string>;
  /** The sources that rules on a packet's ways ask for, and the endpoints that it may get to. */
  readonly sourcesAsked: (packet: Packet, fate: Fate) => Iterable<AddressSpan>;
}

interface AskedDestination {
  readonly address: Address;
  readonly ports: ReadonlySet<PortKey>;
  /** Whether anything asks for the address whatever the port. */
  readonly isWhole: boolean;
}

/** What one chain asks of the source: spans, or those that a set has for the destination. */
interface ChainQuestions {
  spans: AddressSpan[];
  readonly sets: Set<ReadonlyMap<string, readonly AddressSpan[]>>;
}

/** Reads what a state asks. */
export function readQuestions(state: KernelState): Questions {
  const reader = new Reader();
  const sets = new Map(state.sets.map((set) => [set.name, set]));
  for (const family of families) {
    for (const table of tableNames) {
      for (const chain of state.iptables[family]?.[table]?.values() ?? []) {
        const key = chainKey('iptables', family, table, chain.name);
        for (const rule of chain.rules) reader.readIptablesRule(rule, reader.chain(key), sets);
        if (chain.policy !== undefined) reader.entered.push(reader.chain(key));
      }
    }
  }
  for (const table of state.nftables) {
    for (const chain of table.chains.values()) {
      const questions = reader.chain(chainKey('nftables', table.family, table.name, chain.name));
      for (const rule of chain.rules) reader.readNftRule(rule, questions, table);
      if (chain.base) reader.entered.push(questions);
    }
  }
  for (const { protocol, address, port } of state.virtualServers)
    reader.destination(address, [portKey(protocol, port)]);
  const bound = state.links.flatMap(({ addresses }) => addresses.map(({ address }) => address));
  for (const address of bound) reader.destination(address);
  // An address that a mode gives the node for a Service is no client's.
  return reader.questions(new Set(bound.map((address) => keyOfSpan(spanOfAddress(address)))));
}

function chainKey(tool: string, family: Family, table: string, chain: string): string {
  return `${tool} ${family} ${table} ${chain}`;
}

interface MutableDestination {
  readonly address: Address;
  readonly ports: Set<PortKey>;
  isWhole: boolean;
}

class Reader {
  /** Chains that the kernel enters. */
  readonly entered: ChainQuestions[] = [];
  readonly #chains = new Map<string, ChainQuestions>();
  readonly #destinations = new Map<string, MutableDestination>();
  readonly #spans: AddressSpan[] = [];
  readonly #ports = new Map<unknown, PortKey[]>();
  readonly #interfaces = new Set<string>();
  readonly #setSources = new Map<unknown, ReadonlyMap<string, readonly AddressSpan[]>>();
  readonly #readSets = new Set<unknown>();

  chain(key: string): ChainQuestions {
    let questions = this.#chains.get(key);
    if (!questions) this.#chains.set(key, (questions = { spans: [], sets: new Set() }));
    return questions;
  }

  /** Without ports it is asked for whatever they are. */
  destination(address: Address, ports: readonly PortKey[] = []): void {
    let known = this.#destinations.get(address.text);
    if (!known) this.#destinations.set(address.text, (known = { address, ports: new Set(), isWhole: false }));
    if (ports.length === 0) known.isWhole = true;
    for (const port of ports) known.ports.add(port);
  }

  /** Ports that are asked for whatever the destination; `asker` is the chain or set that does. */
  #unbound(asker: unknown, ports: readonly PortKey[]): void {
    const known = this.#ports.get(asker);
    if (known) known.push(...ports);
    else if (ports.length > 0) this.#ports.set(asker, [...ports]);
  }

  readIptablesRule({ args }: Rule, chain: ChainQuestions, sets: ReadonlyMap<string, IpSet>): void {
    const protocol = args.flatMap((arg) => (arg.kind === 'protocol' ? [arg.protocol] : []))[0];
    const names = protocol === undefined ? transports : [protocol];
    const ports = args.flatMap((arg) => (arg.kind === 'destination-port' ? edges(arg.ports, names) : []));
    const [to] = args.flatMap((arg) => (arg.kind === 'destination' ? [arg.range] : []));
    if (to) this.#askFor(to, ports, chain);
    else this.#unbound(chain, ports);
    for (const arg of args) {
      if (arg.kind === 'source') chain.spans.push(spanOf(arg.range));
      else if (arg.kind === 'in-interface') this.#interfaces.add(arg.name.replace(/\+$/, '0'));
      else if (arg.kind === 'match-set') {
        const set = sets.get(arg.set);
        if (set) this.#readIpSet(set, arg.directions, protocol, chain);
      } else if (arg.kind === 'other') this.#readMultiport(arg.words, names, chain);
    }
  }

  #readMultiport(words: readonly string[], names: readonly string[], chain: ChainQuestions): void {
    const at = words.indexOf('--dports');
    const ports = at < 0 ? [] : (words[at + 1] ?? '').split(',').map((part) => part.split(':').map(Number));
    for (const [first = 0, last = first] of ports) this.#unbound(chain, edges({ first, last }, names));
  }

  #askFor(range: AddressRange, ports: readonly PortKey[], asker: unknown): void {
    const single = singleAddress(range);
    if (single) return this.destination(single, ports);
    this.#spans.push(spanOf(range));
    this.#unbound(asker, ports);
  }

  #readIpSet(
    set: IpSet,
    directions: readonly ('src' | 'dst')[],
    protocol: string | undefined,
    chain: ChainQuestions,
  ): void {
    if (directions.length > 2 && directions[2] === 'src') chain.sets.add(this.#sourcesOfSet(set));
    if (directions[0] === 'src') {
      for (const { address, network } of set.entries) {
        if (address) chain.spans.push(spanOfAddress(address));
        else if (network) chain.spans.push(spanOfNetwork(network));
      }
      return;
    }
    if (this.#readSets.has(set)) return;
    this.#readSets.add(set);
    for (const entry of set.entries) {
      const ports = entry.port === undefined ? [] : [portKey(entry.protocol ?? protocol ?? 'tcp', entry.port)];
      if (entry.address) this.destination(entry.address, ports);
      else if (entry.network) this.#askFor(entry.network, ports, set);
      else this.#unbound(set, ports);
    }
  }

  /** The sources of a set's entries, by their destinations. */
  #sourcesOfSet(set: IpSet): ReadonlyMap<string, readonly AddressSpan[]> {
    return this.#sources(
      set,
      set.entries.flatMap(({ address, protocol, port, source }) =>
        address && source ? [[`${address.text} ${portKey(protocol ?? '', port ?? 0)}`, spanOf(source)] as const] : [],
      ),
    );
  }

  #sources(
    of: unknown,
    pairs: readonly (readonly [key: string, span: AddressSpan])[],
  ): ReadonlyMap<string, readonly AddressSpan[]> {
    const known = this.#setSources.get(of);
    if (known) return known;
    const sources = new Map<string, AddressSpan[]>();
    for (const [key, span] of pairs) {
      const same = sources.get(key);
      if (same) same.push(span);
      else sources.set(key, [span]);
    }
    this.#setSources.set(of, sources);
    return sources;
  }

  readNftRule({ expressions }: NftRule, chain: ChainQuestions, table: NftTable): void {
    for (const expression of expressions) {
      switch (expression.kind) {
        case 'match':
          this.#readMatch(expression, chain, table);
          break;
        case 'verdict-map':
          this.#readNftSet(expression.key, table.sets.get(expression.map), chain);
          break;
        default:
      }
    }
  }

  #readMatch({ left, right }: Expression & { readonly kind: 'match' }, chain: ChainQuestions, table: NftTable): void {
    if (right.kind === 'set') return this.#readNftSet(left, table.sets.get(right.set), chain);
    const values = right.kind === 'value' ? [right.value] : right.values;
    const [field] = left;
    for (const value of values) {
      if (isField(field, 'saddr')) chain.spans.push(...spansOf(value));
      else if (isField(field, 'daddr')) this.#askForValue(value);
      else if (isField(field, 'dport') && value.kind === 'number')
        this.#unbound(
          chain,
          transports.map((name) => portKey(name, value.value)),
        );
      else if (field?.kind === 'meta' && field.key.startsWith('iif') && value.kind === 'word')
        this.#interfaces.add(value.text.replace(/\*$/, '0'));
    }
  }

  #askForValue(value: Value): void {
    for (const span of spansOf(value)) {
      if (value.kind === 'address') this.destination(value.address);
      else if (value.kind === 'network' && isSingle(span)) this.destination(value.network.address);
      else this.#spans.push(span);
    }
  }

  #readNftSet(key: Selector, set: NftSet | NftMap | undefined, chain: ChainQuestions): void {
    if (!set) return;
    const at = (name: string): number => key.findIndex((field) => isField(field, name));
    const [to, from, port] = [at('daddr'), at('saddr'), at('dport')];
    const protocol = key.findIndex((field) => field.kind === 'meta' && field.key === 'l4proto');
    const portsOf = ({ key: values }: Element): readonly PortKey[] => {
      const number = values[port];
      const name = values[protocol];
      if (number?.kind !== 'number') return [];
      return (name?.kind === 'word' ? [name.text] : transports).map((each) => portKey(each, number.value));
    };
    if (from >= 0 && to < 0) for (const { key: values } of set.elements) chain.spans.push(...spansOf(values[from]));
    if (from >= 0 && to >= 0) chain.sets.add(this.#sourcesOfNftSet(set, to, from));
    if (this.#readSets.has(set)) return;
    this.#readSets.add(set);
    for (const element of set.elements) {
      const ports = portsOf(element);
      const value = element.key[to];
      if (value?.kind === 'address') this.destination(value.address, ports);
      else {
        if (value) this.#askForValue(value);
        this.#unbound(set, ports);
      }
    }
  }

  #sourcesOfNftSet(set: NftSet | NftMap, to: number, from: number): ReadonlyMap<string, readonly AddressSpan[]> {
    return this.#sources(
      set,
      set.elements.flatMap(({ key }) => {
        const [target, source] = [key[to], key[from]];
        if (target?.kind !== 'address') return [];
        return spansOf(source).map((span) => [target.address.text, span] as const);
      }),
    );
  }

  questions(noClients: ReadonlySet<string>): Questions {
    const { entered } = this;
    const chains = this.#chains;
    for (const chain of chains.values()) chain.spans = chain.spans.filter((span) => !noClients.has(keyOfSpan(span)));
    const targets = new Map<unknown, readonly ChainQuestions[]>();
    return {
      destinations: this.#destinations,
      spans: this.#spans,
      ports: [...this.#ports.values()],
      interfaces: new Set([...this.#interfaces].filter((name) => name !== 'lo' && name !== 'kube-ipvs0')),
      sourcesAsked: function* (packet, fate) {
        const seen = new Set<ChainQuestions>(entered);
        for (const { steps } of fate.ways) {
          for (const step of steps) {
            if (step.kind !== 'rule') continue;
            const decider = (step.tool === 'nftables' ? step.element : undefined) ?? step.rule;
            let next = targets.get(decider);
            if (!next) targets.set(decider, (next = chainsAfter(step, packet.destination.family, chains)));
            for (const chain of next) seen.add(chain);
          }
        }
        const sockets = [{ address: packet.destination, port: packet.port }, ...fate.endpoints];
        const keys = sockets.flatMap(({ address, port }) => [
          address.text,
          `${address.text} ${portKey(packet.protocol, port)}`,
        ]);
        // An endpoint cannot answer a packet that has its own address for source.
        for (const { address } of fate.endpoints) yield spanOfAddress(address);
        for (const { spans, sets } of seen) {
          yield* spans;
          for (const set of sets) for (const key of keys) yield* set.get(key) ?? [];
        }
      },
    };
  }
}

/** The chains that a rule leads to. */
function chainsAfter(
  { tool, table, action }: RuleStep,
  family: Family,
  chains: ReadonlyMap<string, ChainQuestions>,
): readonly ChainQuestions[] {
  const names = 'chains' in action ? action.chains : 'chain' in action ? [action.chain] : [];
  return names.flatMap((name) => chains.get(chainKey(tool, family, table, name)) ?? []);
}

export const transports: readonly Exclude<PacketProtocol, 'icmp'>[] = ['tcp', 'udp', 'sctp'];

/** A range of ports is cut at its first port and after its last. */
function edges(
  { first, last }: { readonly first: number; readonly last: number },
  names: readonly string[],
): PortKey[] {
  const ports = first === last ? [first] : [first, last, last + 1].filter((port) => port < 65536);
  return names.flatMap((name) => ports.map((port) => portKey(name, port)));
}

function spanOf(range: AddressRange): AddressSpan {
  return spanOfNetwork(networkOfRange(range));
}

function spansOf(value: Value | undefined): readonly AddressSpan[] {
  switch (value?.kind) {
    case 'address':
      return [spanOfAddress(value.address)];
    case 'network':
      return [spanOfNetwork(value.network)];
    case 'range':
      return [spanOfRange(value.first, value.last)];
    default:
      return [];
  }
}

function isField(field: Field | undefined, name: string): boolean {
  return field?.kind === 'payload' && field.field === name;
}
