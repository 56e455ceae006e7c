import { portAddresses, type Endpoint, type ShownPort } from '../cluster/model.ts';
import type { Address } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';

export interface KnownEndpoint {
  readonly address: Address;
  readonly port: number;
  /** Whether it is on this node; undefined if unknown. */
  readonly isLocal: boolean | undefined;
}

/** An endpoint that has an address; names may have replaced addresses before a dump was pasted. */
type Placed = Endpoint<undefined> & Pick<KnownEndpoint, 'address' | 'port'>;

/** Which Service ports have an address or a node port, and the endpoints' addresses. None of it depends on the node. */
export class AddressIndex {
  readonly endpoints = new Map<string, Placed | Placed[]>();
  readonly services = new Map<string, ShownPort[]>();
  readonly nodePorts = new Map<number, ShownPort[]>();
  /** The families of the endpoints. */
  readonly families = new Set<Family>();

  private constructor(ports: readonly ShownPort[]) {
    for (const port of ports) {
      for (const { address } of portAddresses(port)) addTo(this.services, address.text, port);
      if (port.nodePort !== undefined) addTo(this.nodePorts, port.nodePort, port);
      for (const endpoint of port.endpoints ?? []) if (isPlaced(endpoint)) this.#add(endpoint);
    }
  }

  /** Made once for all nodes of a cluster, and for all modes. */
  static of(ports: readonly ShownPort[]): AddressIndex {
    const index = indexes.get(ports) ?? new AddressIndex(ports);
    indexes.set(ports, index);
    return index;
  }

  /** Of the endpoints with one address and port, the last counts. */
  #add(endpoint: Placed): void {
    const { text, family } = endpoint.address;
    this.families.add(family);
    const known = this.endpoints.get(text);
    if (known === undefined) this.endpoints.set(text, endpoint);
    else if (known !== endpoint) {
      const all = Array.isArray(known) ? known : [known];
      const same = all.findIndex(({ port }) => port === endpoint.port);
      all[same < 0 ? all.length : same] = endpoint;
      this.endpoints.set(text, all);
    }
  }
}

function isPlaced(endpoint: Endpoint<undefined>): endpoint is Placed {
  return endpoint.address !== undefined && endpoint.port !== undefined;
}

const indexes = new WeakMap<readonly ShownPort[], AddressIndex>();

function addTo<Key>(ports: Map<Key, ShownPort[]>, key: Key, port: ShownPort): void {
  const known = ports.get(key);
  if (!known) ports.set(key, [port]);
  else if (known.at(-1) !== port) known.push(port);
}

/** The endpoints of a snapshot's Service ports, one for each address and port, and whether they are on its node. */
export class KnownEndpoints {
  readonly #index: AddressIndex;
  readonly #node: string;

  constructor(ports: readonly ShownPort[], node: string) {
    this.#index = AddressIndex.of(ports);
    this.#node = node;
  }

  has(address: string): boolean {
    return this.#index.endpoints.has(address);
  }

  /** Whether the address is a Service's own. */
  isOfService(address: string): boolean {
    return this.#index.services.has(address);
  }

  /** Whether the endpoint is on this node; undefined if unknown. */
  isLocal({ address, port }: Pick<Endpoint<undefined>, 'address' | 'port'>): boolean | undefined {
    return address && this.at(address.text).find((each) => each.port === port)?.isLocal;
  }

  at(address: string): readonly KnownEndpoint[] {
    const found = this.#index.endpoints.get(address);
    if (found === undefined) return none;
    return Array.isArray(found) ? found.map((each) => this.#known(each)) : [this.#known(found)];
  }

  *of(family: Family): Generator<KnownEndpoint, void, undefined> {
    if (!this.#index.families.has(family)) return;
    for (const address of this.#index.endpoints.keys())
      for (const endpoint of this.at(address)) if (endpoint.address.family === family) yield endpoint;
  }

  #known({ address, port, status }: Placed): KnownEndpoint {
    const isLocal = this.#node === '' || !status?.nodeName ? undefined : status.nodeName === this.#node;
    return { address, port, isLocal };
  }
}

const none: readonly never[] = [];
