import { addressAt, type Address } from '../../kernel/address.ts';
import { singleAddress, spanOf, type AddressRange, type AddressSpan } from '../../kernel/address-range.ts';
import { families } from '../../kernel/family.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import { passingRules, tableNames, type Rule, type RuleArg } from '../../kernel/iptables/iptables.ts';
import { spanOfValue } from '../../kernel/nftables/nft-delta.ts';
import type { Field, Selector, Element, NftRule, NftTable } from '../../kernel/nftables/table.ts';
import { parsePortRange, type PortRange } from '../../kernel/ports-and-marks.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isNamedByKubeProxy } from '../../kube-proxy/chains.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';
import { isKubeProxyTable } from '../../kube-proxy/nft-table.ts';
import type { Packet, PacketProtocol } from '../../packet/packet.ts';

/** A protocol and port, as "tcp 80". */
export type ProtocolPort = string;

export function portKey(protocol: string, port: number): ProtocolPort {
  return `${protocol.toLowerCase()} ${port}`;
}

export function readPortKey(key: ProtocolPort): Pick<Packet, 'protocol' | 'port'> {
  const [protocol, port] = key.split(' ');
  return { protocol: protocol as PacketProtocol, port: Number(port) };
}

const transports: readonly Exclude<PacketProtocol, 'icmp'>[] = ['tcp', 'udp', 'sctp'];

/** The arguments of iptables rules that look at destinations or input interfaces: most rules have none. */
const askingKinds: ReadonlySet<RuleArg['kind']> = new Set([
  'destination',
  'destination-port',
  'in-interface',
  'match-set',
  'other',
]);

export function isSingle({ first, last }: AddressSpan): boolean {
  return first === last;
}

interface AskedDestination {
  readonly address: Address;
  readonly ports: Set<ProtocolPort>;
  /** Whether anything matches the address on every port. */
  isWhole: boolean;
}

/** All destinations and input interfaces that states match. Sources come from each packet's fate. */
export class Questions {
  readonly destinations = new Map<string, AskedDestination>();
  readonly spans: AddressSpan[] = [];
  /** Ports matched on any destination, by the chain or set that matches. */
  readonly ports = new Map<unknown, ProtocolPort[]>();
  /** Ports matched by other programs' rules: they may affect any packet, not only packets to the node. */
  readonly foreignPorts = new Set<ProtocolPort>();
  /** Addresses that a mode gives the node for Services, and that no client has. */
  readonly held = new Set<string>();
  readonly interfaces = new Set<string>();
  readonly #readSets = new Set<unknown>();

  constructor(states: readonly KernelState[]) {
    for (const state of states) {
      const sets = new Map(state.sets.map((set) => [set.name, set]));
      const foreign: unknown[] = state.sets.filter(({ name }) => !parseSetName(name));
      for (const tables of families.map((family) => state.iptables[family])) {
        for (const chain of tableNames.flatMap((name) => [...(tables?.[name]?.values() ?? [])])) {
          for (const rule of passingRules(chain)) this.#readIptablesRule(rule, chain, sets);
          if (!isNamedByKubeProxy(chain.name)) foreign.push(chain);
        }
      }
      for (const table of state.nftables) {
        for (const chain of table.chains.values())
          for (const rule of chain.rules) this.#readNftRule(rule, chain, table);
        if (!isKubeProxyTable(table.name)) foreign.push(...table.chains.values(), ...table.sets.values());
      }
      for (const port of foreign.flatMap((asker) => this.ports.get(asker) ?? [])) this.foreignPorts.add(port);
      for (const { protocol, address, port } of state.virtualServers)
        this.#askFor(undefined, address, [portKey(protocol, port)]);
      for (const { address } of state.links.flatMap(({ addresses }) => addresses)) {
        this.held.add(address.text);
        this.#askFor(undefined, address, []);
      }
    }
    // Packets from elsewhere never come in by these.
    for (const name of ['lo', 'kube-ipvs0']) this.interfaces.delete(name);
  }

  /** For each protocol a port that nothing matches, and a ping. */
  freePorts(): readonly ProtocolPort[] {
    const bound = [...this.destinations.values()].flatMap(({ ports }) => [...ports]);
    const taken = new Set([...[...this.ports.values()].flat(), ...bound]);
    const free = (protocol: string): ProtocolPort => {
      for (let port = 9; ; port++) if (!taken.has(portKey(protocol, port))) return portKey(protocol, port);
    };
    return [...transports.map(free), portKey('icmp', 0)];
  }

  /** Adds a match on the destination. An address without ports matches any port. */
  #askFor(asker: unknown, place: AddressRange | AddressSpan | undefined, ports: readonly ProtocolPort[]): void {
    const address = place && addressIfSingle(place);
    if (address) {
      let known = this.destinations.get(address.text);
      if (!known) this.destinations.set(address.text, (known = { address, ports: new Set(), isWhole: false }));
      if (ports.length === 0) known.isWhole = true;
      for (const port of ports) known.ports.add(port);
      return;
    }
    if (place) this.spans.push('first' in place ? place : spanOf(place));
    const known = this.ports.get(asker);
    if (known) known.push(...ports);
    else if (ports.length > 0) this.ports.set(asker, [...ports]);
  }

  #readIptablesRule({ args }: Rule, chain: unknown, sets: ReadonlyMap<string, IpSet>): void {
    if (!args.some(({ kind }) => askingKinds.has(kind))) return;
    const find = <K extends RuleArg['kind']>(kind: K) =>
      args.find((arg): arg is RuleArg & { readonly kind: K } => arg.kind === kind);
    const protocol = find('protocol')?.protocol;
    const names = protocol === undefined ? transports : [protocol];
    const to = find('destination')?.range;
    const ports = args.flatMap((arg) => (arg.kind === 'destination-port' ? edges(arg.ports, names) : []));
    this.#askFor(chain, to, ports);
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
      this.#askFor(set, place, ports);
    }
  }

  #readNftRule(rule: NftRule, chain: unknown, table: NftTable): void {
    for (const expression of rule.expressions) {
      if (!('right' in expression)) continue;
      const { left, right } = expression;
      if ('set' in right) {
        const set = table.sets.get(right.set);
        if (set && this.#isNew(set)) this.#readElements(left, set.elements, set);
      } else this.#readElements(left, right.elements, chain);
    }
  }

  #readElements(fields: Selector, elements: readonly Element[], asker: unknown): void {
    const at = (name: string): number => fields.findIndex((field) => isField(field, name));
    const [to, dport, protocol] = [at('daddr'), at('dport'), fields.findIndex(({ name }) => name === 'meta l4proto')];
    const input = fields.findIndex(({ name }) => name.startsWith('iif'));
    for (const { key } of elements) {
      const [place, port, name, link] = [key[to], key[dport], key[protocol], key[input]];
      const names = name?.kind === 'word' ? [name.text] : transports;
      const ports =
        port?.kind === 'number'
          ? edges({ first: port.value, last: port.value }, names)
          : port?.kind === 'numbers'
            ? edges(port, names)
            : [];
      if (place || ports.length > 0)
        this.#askFor(asker, place && (place.kind === 'address' ? place.address : spanOfValue(place)), ports);
      if (link?.kind === 'word') this.interfaces.add(link.text.replace(/\*$/, '0'));
    }
  }

  #isNew(set: unknown): boolean {
    return !this.#readSets.has(set) && Boolean(this.#readSets.add(set));
  }
}

/** The address of a place that holds only one. */
function addressIfSingle(place: AddressRange | AddressSpan): Address | undefined {
  if (!('first' in place)) return singleAddress(place);
  return isSingle(place) ? addressAt(place.family, place.first) : undefined;
}

/** Cuts a range of ports at its first port and after its last. */
function edges({ first, last }: PortRange, names: readonly string[]): readonly ProtocolPort[] {
  const ports = first === last ? [first] : [first, last, last + 1].filter((port) => port < 65536);
  return names.flatMap((name) => ports.map((port) => portKey(name, port)));
}

function isField(field: Field | undefined, name: string): boolean {
  return field?.name.endsWith(` ${name}`) === true && field.mask === undefined;
}
