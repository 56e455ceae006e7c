import { type Address, addressAt, families } from '../../kernel/address.ts';
import { isSingle, singleAddress, spanOf, type AddressRange, type AddressSpan } from '../../kernel/address-range.ts';
import type { IpSet } from '../../kernel/ipset/ipset.ts';
import { passingRules, tableNames, type RuleArg } from '../../kernel/iptables/iptables.ts';
import { conditionsOf, type RuleTerm } from '../../kernel/iptables/rule-terms.ts';
import { spanOfValue } from '../../kernel/nftables/nft-delta.ts';
import type { Expression, Field, Selector, Value } from '../../kernel/nftables/table.ts';
import type { PortRange } from '../../kernel/ports-and-marks.ts';
import type { KernelState } from '../../kernel/state.ts';
import { isNamedByKubeProxy } from '../../kube-proxy/chains.ts';
import { parseSetName } from '../../kube-proxy/ipvs-objects.ts';
import { isKubeProxyTable } from '../../kube-proxy/nft-table.ts';
import type { Packet, PacketProtocol } from '../../packet/packet.ts';

/** A protocol and a port, such as "tcp 80". */
export type ProtocolPort = string;

export function portKey(protocol: string, port: number): ProtocolPort {
  return `${protocol.toLowerCase()} ${port}`;
}

export function readPortKey(key: ProtocolPort): Pick<Packet, 'protocol' | 'port'> {
  const [protocol, port] = key.split(' ');
  return { protocol: protocol as PacketProtocol, port: Number(port) };
}

const transports: readonly Exclude<PacketProtocol, 'icmp'>[] = ['tcp', 'udp', 'sctp'];

/** The kinds of arguments of iptables rules that match destinations or input interfaces. Most rules have no such argument. */
const askingKinds: ReadonlySet<RuleArg['kind']> = new Set([
  'destination',
  'destination-port',
  'in-interface',
  'match-set',
  'other',
]);

interface AskedDestination {
  readonly address: Address;
  readonly ports: Set<ProtocolPort>;
  isWhole: boolean;
}

/** Collects the destinations and input interfaces that rules match. The sources that rules match are in the fate of each packet. */
export class Questions {
  readonly destinations = new Map<string, AskedDestination>();
  readonly spans: AddressSpan[] = [];
  readonly ports = new Map<unknown, ProtocolPort[]>();
  /** Ports that other programs' rules match. Such rules may affect any packet, not only packets to the node. */
  readonly foreignPorts = new Set<ProtocolPort>();
  /** Addresses of Services that a mode gives to the node. No client has such an address. */
  readonly held = new Set<string>();
  readonly interfaces = new Set<string>();
  readonly #readSets = new Set<unknown>();

  constructor(states: readonly KernelState[]) {
    for (const state of states) {
      const sets = new Map(state.sets.map((set) => [set.name, set]));
      const foreign: unknown[] = state.sets.filter(({ name }) => !parseSetName(name));
      for (const tables of families.map((family) => state.iptables[family])) {
        for (const chain of tableNames.flatMap((name) => [...(tables?.[name]?.values() ?? [])])) {
          for (const { args } of passingRules(chain)) {
            if (!args.some(({ kind }) => askingKinds.has(kind))) continue;
            this.#readRule(conditionsOf(args), chain, (set, [end], protocol) =>
              this.#readIpSet(sets.get(set), end?.name, protocol),
            );
          }
          if (!isNamedByKubeProxy(chain.name)) foreign.push(chain);
        }
      }
      for (const table of state.nftables) {
        const readSet = (name: string, fields: Selector): void => {
          const set = table.sets.get(name);
          if (set && this.#isNew(set)) for (const { key } of set.elements) this.#ask(set, fields, key);
        };
        for (const chain of table.chains.values())
          for (const { expressions } of chain.rules) this.#readRule(expressions, chain, readSet);
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
    // Packets from other hosts never come in by these interfaces.
    for (const name of ['lo', 'kube-ipvs0']) this.interfaces.delete(name);
  }

  /** Returns, for each protocol, a port that no rule matches. For ICMP, returns a ping. */
  freePorts(): readonly ProtocolPort[] {
    const bound = [...this.destinations.values()].flatMap(({ ports }) => [...ports]);
    const taken = new Set([...[...this.ports.values()].flat(), ...bound]);
    const free = (protocol: string): ProtocolPort => {
      for (let port = 9; ; port++) if (!taken.has(portKey(protocol, port))) return portKey(protocol, port);
    };
    return [...transports.map(free), portKey('icmp', 0)];
  }

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

  /** Adds the address and ports that one rule matches. `readSet` reads a named set in which the rule looks up these fields. */
  #readRule(
    conditions: readonly (Expression | RuleTerm)[],
    asker: unknown,
    readSet: (set: string, fields: Selector, protocol: string | undefined) => void,
  ): void {
    const looks = conditions.filter((each) => 'right' in each);
    const [fields, key]: [Field[], Value[]] = [[], []];
    for (const { left, right, ...look } of looks) {
      const isJoint = left.length === 1 && !('operator' in look && look.operator === '!=');
      for (const element of 'set' in right ? [] : right.elements) {
        if (!isJoint) this.#ask(asker, left, element.key);
        else if (fields.push(...left)) key.push(...element.key);
      }
    }
    this.#ask(asker, fields, key);
    const named = key[fields.findIndex(({ name }) => name === 'meta l4proto')];
    const protocol = named?.kind === 'word' ? named.text : undefined;
    for (const { left, right } of looks) if ('set' in right) readSet(right.set, left, protocol);
  }

  #ask(asker: unknown, fields: Selector, key: readonly Value[]): void {
    const of = (name: RegExp) => key.filter((_, at) => name.test(nameOf(fields[at])));
    const named = of(/^meta l4proto$/).flatMap((value) => (value.kind === 'word' ? [value.text] : []));
    const names = named.length > 0 ? named : transports;
    const ports = of(/ dport$/).flatMap((port) => {
      if (port.kind === 'number') return edges({ first: port.value, last: port.value }, names);
      return port.kind === 'numbers' ? edges(port, names) : [];
    });
    const places = of(/ daddr$/).map((place) => (place.kind === 'address' ? place.address : spanOfValue(place)));
    for (const place of places.length > 0 ? places : [undefined]) this.#askFor(asker, place, ports);
    for (const link of of(/^iif/)) if (link.kind === 'word') this.interfaces.add(link.text.replace(/\*$/, '0'));
  }

  #readIpSet(set: IpSet | undefined, direction: string | undefined, protocol: string | undefined): void {
    if (!set || direction === 'src' || !this.#isNew(set)) return;
    for (const entry of set.entries) {
      const place = entry.address ?? entry.network;
      const named = entry.protocol ?? protocol;
      const { port } = entry;
      const ports = port === undefined ? [] : (named ? [named] : transports).map((each) => portKey(each, port));
      this.#askFor(set, place, ports);
    }
  }

  #isNew(set: unknown): boolean {
    return !this.#readSets.has(set) && Boolean(this.#readSets.add(set));
  }
}

function addressIfSingle(place: AddressRange | AddressSpan): Address | undefined {
  if (!('first' in place)) return singleAddress(place);
  return isSingle(place) ? addressAt(place.family, place.first) : undefined;
}

function edges({ first, last }: PortRange, names: readonly string[]): readonly ProtocolPort[] {
  const ports = first === last ? [first] : [first, last, last + 1].filter((port) => port < 65536);
  return names.flatMap((name) => ports.map((port) => portKey(name, port)));
}

function nameOf(field: Field | undefined): string {
  return field?.mask === undefined ? (field?.name ?? '') : '';
}
