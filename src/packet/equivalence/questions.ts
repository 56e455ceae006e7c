import { type Address, addressAt } from '../../kernel/address.ts';
import { spanOf, type AddressSpan } from '../../kernel/address-range.ts';
import { families } from '../../kernel/family.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import { tableNames, type Rule, type RuleArg } from '../../kernel/iptables/iptables.ts';
import { spanOfValue } from '../../kernel/nftables/nft-meaning.ts';
import type { Value } from '../../kernel/nftables/element.ts';
import type { Field, Selector } from '../../kernel/nftables/expression.ts';
import type { NftMap, NftRule, NftSet, NftTable } from '../../kernel/nftables/table.ts';
import { parsePortRange, type PortRange } from '../../kernel/socket-address.ts';
import type { KernelState } from '../../kernel/state.ts';
import type { Fate, Packet, PacketProtocol } from '../packet.ts';

/** A protocol and port, as "tcp 80". */
export type PortKey = string;

/** The key of a port: "tcp 80". */
export function portKey(protocol: string, port: number): PortKey {
  return `${protocol.toLowerCase()} ${port}`;
}

/** The protocols that have ports. */
export const transports: readonly Exclude<PacketProtocol, 'icmp'>[] = ['tcp', 'udp', 'sctp'];

/** Whether the span is one address. */
export function isSingle({ first, last }: AddressSpan): boolean {
  return first === last;
}

/** Equal for equal spans. */
export function keyOfSpan({ family, first, last }: AddressSpan): string {
  return `${family} ${first} ${last}`;
}

interface AskedDestination {
  readonly address: Address;
  readonly ports: Set<PortKey>;
  /** Whether anything asks for the address whatever the port. */
  isWhole: boolean;
}

/** What a rule or an entry of a set asks of a packet. */
interface Ask {
  readonly to: AddressSpan | undefined;
  readonly from?: AddressSpan | undefined;
  readonly ports: readonly PortKey[];
}

/** What one chain asks of the source: spans, or those that a set has for a destination, with or without its port. */
interface ChainSources {
  readonly spans: AddressSpan[];
  readonly sets: ReadonlyMap<string, readonly AddressSpan[]>[];
}

function chainKey(tool: string, family: string, table: string, chain: string): string {
  return `${tool} ${family} ${table} ${chain}`;
}

/** Everything that a state asks of packets: it cannot tell apart two packets that answer all of it alike. */
export class Questions {
  /** Addresses that are asked for as destinations, by their text. */
  readonly destinations = new Map<string, AskedDestination>();
  /** Networks and ranges that are asked for as destinations. */
  readonly spans: AddressSpan[] = [];
  /** Ports that are asked for whatever the destination, by the chain or set that asks. */
  readonly ports = new Map<unknown, PortKey[]>();
  /** Names of the interfaces that are asked for. */
  readonly interfaces = new Set<string>();
  readonly #sets: ReadonlyMap<string, IpSet>;
  readonly #noClients: ReadonlySet<string>;
  /** Chains that the kernel enters. */
  readonly #entered: ChainSources[] = [];
  readonly #chains = new Map<string, ChainSources>();
  readonly #readSets = new Set<unknown>();

  constructor(state: KernelState) {
    this.#sets = new Map(state.sets.map((set) => [set.name, set]));
    const bound = state.links.flatMap(({ addresses }) => addresses.map(({ address }) => spanOf(address)));
    // An address that a mode gives the node for a Service is no client's.
    this.#noClients = new Set(bound.map(keyOfSpan));
    for (const family of families) {
      for (const table of tableNames) {
        for (const { name, policy, rules } of state.iptables[family]?.[table]?.values() ?? []) {
          const chain = this.#chain(chainKey('iptables', family, table, name), policy !== undefined);
          for (const rule of rules) this.#readIptablesRule(rule, chain);
        }
      }
    }
    for (const table of state.nftables) {
      for (const { name, base, rules } of table.chains.values()) {
        const chain = this.#chain(chainKey('nftables', table.family, table.name, name), base !== undefined);
        for (const rule of rules) this.#readNftRule(rule, chain, table);
      }
    }
    for (const { protocol, address, port } of state.virtualServers)
      this.#askFor(undefined, { to: spanOf(address), ports: [portKey(protocol, port)] });
    for (const to of bound) this.#askFor(undefined, { to, ports: [] });
    // No packet from elsewhere comes by these.
    for (const name of ['lo', 'kube-ipvs0']) this.interfaces.delete(name);
  }

  #chain(key: string, isEntered: boolean): ChainSources {
    const chain: ChainSources = { spans: [], sets: [] };
    this.#chains.set(key, chain);
    if (isEntered) this.#entered.push(chain);
    return chain;
  }

  /** Takes what is asked of the destination. An address that is asked for without ports is whatever they are. */
  #askFor(asker: unknown, { to, ports }: Ask): void {
    if (to && isSingle(to)) {
      const address = addressAt(to.family, to.first);
      let known = this.destinations.get(address.text);
      if (!known) this.destinations.set(address.text, (known = { address, ports: new Set(), isWhole: false }));
      if (ports.length === 0) known.isWhole = true;
      for (const port of ports) known.ports.add(port);
      return;
    }
    if (to) this.spans.push(to);
    const known = this.ports.get(asker);
    if (known) known.push(...ports);
    else if (ports.length > 0) this.ports.set(asker, [...ports]);
  }

  #askSource(span: AddressSpan, { spans }: ChainSources): void {
    if (!this.#noClients.has(keyOfSpan(span))) spans.push(span);
  }

  #readIptablesRule({ args }: Rule, chain: ChainSources): void {
    const find = <K extends RuleArg['kind']>(kind: K) =>
      args.find((arg): arg is RuleArg & { readonly kind: K } => arg.kind === kind);
    const protocol = find('protocol')?.protocol;
    const names = protocol === undefined ? transports : [protocol];
    const to = find('destination')?.range;
    const ports = args.flatMap((arg) => (arg.kind === 'destination-port' ? edges(arg.ports, names) : []));
    this.#askFor(chain, { to: to && spanOf(to), ports });
    for (const arg of args) {
      if (arg.kind === 'source') this.#askSource(spanOf(arg.range), chain);
      else if (arg.kind === 'in-interface') this.interfaces.add(arg.name.replace(/\+$/, '0'));
      else if (arg.kind === 'match-set') {
        const set = this.#sets.get(arg.set);
        if (set) this.#readSet(set, asksOfSet(set, arg.directions, protocol), chain);
      } else if (arg.kind === 'other' && arg.words.includes('--dports')) {
        const texts = arg.words[arg.words.indexOf('--dports') + 1]?.split(',') ?? [];
        const ranges = texts.flatMap((text) => parsePortRange(text) ?? []);
        this.#askFor(chain, { to: undefined, ports: ranges.flatMap((range) => edges(range, names)) });
      }
    }
  }

  #readNftRule({ expressions }: NftRule, chain: ChainSources, table: NftTable): void {
    for (const each of expressions) {
      if (each.kind === 'verdict-map') this.#readNftSet(each.key, table.sets.get(each.map), chain);
      if (each.kind !== 'match') continue;
      const { left, right } = each;
      if (right.kind === 'set') this.#readNftSet(left, table.sets.get(right.set), chain);
      else for (const value of right.kind === 'value' ? [right.value] : right.values) this.#read(left[0], value, chain);
    }
  }

  #read(field: Field | undefined, value: Value, chain: ChainSources): void {
    const span = spanOfValue(value);
    if (isField(field, 'saddr') && span) this.#askSource(span, chain);
    else if (isField(field, 'daddr')) this.#askFor(chain, { to: span, ports: [] });
    else if (isField(field, 'dport') && value.kind === 'number')
      this.#askFor(chain, { to: undefined, ports: transports.map((name) => portKey(name, value.value)) });
    else if (field?.name.startsWith('iif') && value.kind === 'word')
      this.interfaces.add(value.text.replace(/\*$/, '0'));
  }

  #readNftSet(key: Selector, set: NftSet | NftMap | undefined, chain: ChainSources): void {
    if (!set) return;
    const at = (name: string): number => key.findIndex((field) => isField(field, name));
    const [to, from, dport] = [at('daddr'), at('saddr'), at('dport')];
    const protocol = key.findIndex(({ name }) => name === 'meta l4proto');
    const asks = set.elements.map(({ key: values }): Ask => {
      const [port, name] = [values[dport], values[protocol]];
      const names = name?.kind === 'word' ? [name.text] : transports;
      const ports = port?.kind === 'number' ? names.map((each) => portKey(each, port.value)) : [];
      return { to: spanAt(values[to]), from: spanAt(values[from]), ports };
    });
    this.#readSet(set, asks, chain);
  }

  /** Sources are asked for where the packet goes, if the set's entries say that too. */
  #readSet(set: unknown, asks: readonly Ask[], chain: ChainSources): void {
    const sources = new Map<string, AddressSpan[]>();
    for (const { to, from, ports } of asks) {
      if (!from) continue;
      if (!to) this.#askSource(from, chain);
      else if (isSingle(to)) {
        const { text } = addressAt(to.family, to.first);
        const key = ports.length === 1 ? `${text} ${ports[0]}` : text;
        const same = sources.get(key);
        if (same) same.push(from);
        else sources.set(key, [from]);
      }
    }
    if (sources.size > 0) chain.sets.push(sources);
    if (this.#readSets.has(set) || asks.every(({ to, ports }) => !to && ports.length === 0)) return;
    this.#readSets.add(set);
    for (const ask of asks) this.#askFor(set, ask);
  }

  /** The sources that rules on a packet's ways ask for, and the endpoints that it may get to. */
  *sourcesAsked(packet: Packet, { ways, endpoints }: Fate): Generator<AddressSpan> {
    const { destination, protocol } = packet;
    const met = new Set(this.#entered);
    for (const step of ways.flatMap(({ steps }) => steps)) {
      if (step.kind !== 'rule') continue;
      const { tool, table, action } = step;
      const names = 'chains' in action ? action.chains : 'chain' in action ? [action.chain] : [];
      for (const name of names) {
        const chain = this.#chains.get(chainKey(tool, destination.family, table, name));
        if (chain) met.add(chain);
      }
    }
    const sockets = [{ address: destination, port: packet.port }, ...endpoints];
    const keys = sockets.flatMap(({ address: { text }, port }) => [text, `${text} ${portKey(protocol, port)}`]);
    // An endpoint cannot answer a packet that has its own address for source.
    for (const { address } of endpoints) yield spanOf(address);
    for (const { spans, sets } of met) {
      yield* spans;
      for (const set of sets) for (const key of keys) yield* set.get(key) ?? [];
    }
  }
}

function asksOfSet(
  { entries }: IpSet,
  directions: readonly ('src' | 'dst')[],
  protocol: string | undefined,
): readonly Ask[] {
  return entries.map((entry): Ask => {
    const place = entry.address ?? entry.network;
    const span = place && spanOf(place);
    if (directions[0] === 'src') return { to: undefined, from: span, ports: [] };
    const ports = entry.port === undefined ? [] : [portKey(entry.protocol ?? protocol ?? 'tcp', entry.port)];
    return { to: span, from: directions[2] === 'src' && entry.source ? spanOf(entry.source) : undefined, ports };
  });
}

/** A range of ports is cut at its first port and after its last. */
function edges({ first, last }: PortRange, names: readonly string[]): readonly PortKey[] {
  const ports = first === last ? [first] : [first, last, last + 1].filter((port) => port < 65536);
  return names.flatMap((name) => ports.map((port) => portKey(name, port)));
}

function spanAt(value: Value | undefined): AddressSpan | undefined {
  return value && spanOfValue(value);
}

function isField(field: Field | undefined, name: string): boolean {
  return field?.name.endsWith(` ${name}`) === true && field.mask === undefined;
}
