import { addressAt, type Address } from '../../kernel/address.ts';
import { spanOf, type AddressSpan } from '../../kernel/address-range.ts';
import { families } from '../../kernel/family.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import { tableNames, type Rule, type RuleArg } from '../../kernel/iptables/iptables.ts';
import { spanOfValue } from '../../kernel/nftables/nft-meaning.ts';
import type { Field, Selector } from '../../kernel/nftables/expression.ts';
import type { NftMap, NftRule, NftSet, NftTable } from '../../kernel/nftables/table.ts';
import { parsePortRange, type PortRange } from '../../kernel/socket-address.ts';
import type { KernelState } from '../../kernel/state.ts';
import type { PacketProtocol } from '../packet.ts';

/** A protocol and port, as "tcp 80". */
export type PortKey = string;

/** The key of a port: "tcp 80". */
export function portKey(protocol: string, port: number): PortKey {
  return `${protocol.toLowerCase()} ${port}`;
}

/** The protocols that have ports. */
const transports: readonly Exclude<PacketProtocol, 'icmp'>[] = ['tcp', 'udp', 'sctp'];

/** Whether the span is one address. */
export function isSingle({ first, last }: AddressSpan): boolean {
  return first === last;
}

interface AskedDestination {
  readonly address: Address;
  readonly ports: Set<PortKey>;
  /** Whether anything asks for the address whatever the port. */
  isWhole: boolean;
}

/** What states ask of where packets go and where they come in. What they ask of sources, each packet's fate says. */
export class Questions {
  /** Addresses that are asked for as destinations, by their text. */
  readonly destinations = new Map<string, AskedDestination>();
  /** Networks and ranges that are asked for as destinations. */
  readonly spans: AddressSpan[] = [];
  /** Ports that are asked for whatever the destination, by the chain or set that asks. */
  readonly ports = new Map<unknown, PortKey[]>();
  /** Addresses that a mode gives the node for Services: they are no client's. */
  readonly held = new Set<string>();
  /** Names of the interfaces that are asked for. */
  readonly interfaces = new Set<string>();
  readonly #readSets = new Set<unknown>();

  constructor(states: readonly KernelState[]) {
    for (const state of states) {
      const sets = new Map(state.sets.map((set) => [set.name, set]));
      for (const tables of families.map((family) => state.iptables[family])) {
        for (const chain of tableNames.flatMap((name) => [...(tables?.[name]?.values() ?? [])])) {
          for (const rule of chain.rules) this.#readIptablesRule(rule, chain, sets);
        }
      }
      for (const table of state.nftables) {
        for (const chain of table.chains.values())
          for (const rule of chain.rules) this.#readNftRule(rule, chain, table);
      }
      for (const { protocol, address, port } of state.virtualServers)
        this.#askFor(undefined, spanOf(address), [portKey(protocol, port)]);
      for (const { address } of state.links.flatMap(({ addresses }) => addresses)) {
        this.held.add(address.text);
        this.#askFor(undefined, spanOf(address), []);
      }
    }
    // No packet from elsewhere comes by these.
    for (const name of ['lo', 'kube-ipvs0']) this.interfaces.delete(name);
  }

  /** One port of each protocol that nothing asks for, and a ping. */
  freePorts(): readonly PortKey[] {
    const bound = [...this.destinations.values()].flatMap(({ ports }) => [...ports]);
    const taken = new Set([...[...this.ports.values()].flat(), ...bound]);
    const free = (protocol: string): PortKey => {
      for (let port = 9; ; port++) if (!taken.has(portKey(protocol, port))) return portKey(protocol, port);
    };
    return [...transports.map(free), portKey('icmp', 0)];
  }

  /** Takes what is asked of the destination. An address that is asked for without ports is whatever they are. */
  #askFor(asker: unknown, to: AddressSpan | undefined, ports: readonly PortKey[]): void {
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

  #readIptablesRule({ args }: Rule, chain: unknown, sets: ReadonlyMap<string, IpSet>): void {
    const find = <K extends RuleArg['kind']>(kind: K) =>
      args.find((arg): arg is RuleArg & { readonly kind: K } => arg.kind === kind);
    const protocol = find('protocol')?.protocol;
    const names = protocol === undefined ? transports : [protocol];
    const to = find('destination')?.range;
    const ports = args.flatMap((arg) => (arg.kind === 'destination-port' ? edges(arg.ports, names) : []));
    this.#askFor(chain, to && spanOf(to), ports);
    for (const arg of args) {
      if (arg.kind === 'in-interface') this.interfaces.add(arg.name.replace(/\+$/, '0'));
      else if (arg.kind === 'match-set') this.#readIpSet(sets.get(arg.set), arg.directions, protocol);
      else if (arg.kind === 'other' && arg.words.includes('--dports')) {
        const texts = arg.words[arg.words.indexOf('--dports') + 1]?.split(',') ?? [];
        const ranges = texts.flatMap((text) => parsePortRange(text) ?? []);
        this.#askFor(
          chain,
          undefined,
          ranges.flatMap((range) => edges(range, names)),
        );
      }
    }
  }

  #readIpSet(set: IpSet | undefined, directions: readonly string[], protocol: string | undefined): void {
    if (!set || directions[0] === 'src' || !this.#isNew(set)) return;
    for (const entry of set.entries) {
      const place = entry.address ?? entry.network;
      const ports = entry.port === undefined ? [] : [portKey(entry.protocol ?? protocol ?? 'tcp', entry.port)];
      this.#askFor(set, place && spanOf(place), ports);
    }
  }

  #readNftRule({ expressions }: NftRule, chain: unknown, table: NftTable): void {
    for (const each of expressions) {
      if (each.kind === 'verdict-map') this.#readNftSet(each.key, table.sets.get(each.map));
      if (each.kind !== 'match') continue;
      const { left, right } = each;
      const [field] = left;
      if (right.kind === 'set') this.#readNftSet(left, table.sets.get(right.set));
      else {
        for (const value of right.kind === 'value' ? [right.value] : right.values) {
          if (isField(field, 'daddr')) this.#askFor(chain, spanOfValue(value), []);
          else if (isField(field, 'dport') && value.kind === 'number') {
            const ports = transports.map((name) => portKey(name, value.value));
            this.#askFor(chain, undefined, ports);
          } else if (field?.name.startsWith('iif') && value.kind === 'word')
            this.interfaces.add(value.text.replace(/\*$/, '0'));
        }
      }
    }
  }

  #readNftSet(key: Selector, set: NftSet | NftMap | undefined): void {
    const at = (name: string): number => key.findIndex((field) => isField(field, name));
    const [to, dport] = [at('daddr'), at('dport')];
    if (!set || (to < 0 && dport < 0) || !this.#isNew(set)) return;
    const protocol = key.findIndex(({ name }) => name === 'meta l4proto');
    for (const { key: values } of set.elements) {
      const [place, port, name] = [values[to], values[dport], values[protocol]];
      const names = name?.kind === 'word' ? [name.text] : transports;
      const ports = port?.kind === 'number' ? names.map((each) => portKey(each, port.value)) : [];
      this.#askFor(set, place && spanOfValue(place), ports);
    }
  }

  #isNew(set: unknown): boolean {
    return !this.#readSets.has(set) && Boolean(this.#readSets.add(set));
  }
}

/** A range of ports is cut at its first port and after its last. */
function edges({ first, last }: PortRange, names: readonly string[]): readonly PortKey[] {
  const ports = first === last ? [first] : [first, last, last + 1].filter((port) => port < 65536);
  return names.flatMap((name) => ports.map((port) => portKey(name, port)));
}

function isField(field: Field | undefined, name: string): boolean {
  return field?.name.endsWith(` ${name}`) === true && field.mask === undefined;
}
