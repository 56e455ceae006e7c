import { portAddresses, type Endpoint, type ShownPort } from '../cluster/model.ts';
import type { Address } from '../kernel/address.ts';

export interface KnownEndpoint {
  readonly address: Address;
  readonly port: number;
  /** Whether it is on this node; undefined if unknown. */
  readonly isLocal: boolean | undefined;
}

/** An endpoint that has an address; names may have replaced addresses before a dump was pasted. */
type Placed = Endpoint<undefined> & Pick<KnownEndpoint, 'address' | 'port'>;

/** The addresses of Service ports, which do not depend on the node. */
class AddressIndex {
  readonly endpoints = new Map<string, Placed | Placed[]>();
  readonly services = new Set<string>();

  constructor(ports: readonly ShownPort[]) {
    for (const port of ports) {
      for (const { address } of portAddresses(port)) this.services.add(address.text);
      for (const endpoint of port.endpoints ?? []) if (isPlaced(endpoint)) this.#add(endpoint);
    }
  }

  /** Of the endpoints with one address and port, the last counts. */
  #add(endpoint: Placed): void {
    const { text } = endpoint.address;
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

/** One for all nodes of a cluster, and for all modes. */
const indexes = new WeakMap<readonly ShownPort[], AddressIndex>();

function indexOf(ports: readonly ShownPort[]): AddressIndex {
  let index = indexes.get(ports);
  if (!index) indexes.set(ports, (index = new AddressIndex(ports)));
  return index;
}

/** The endpoints of a snapshot's Service ports, one for each address and port, and whether they are on its node. */
export class KnownEndpoints implements Iterable<KnownEndpoint> {
  readonly #index: AddressIndex;
  readonly #node: string;

  constructor(ports: readonly ShownPort[], node: string) {
    this.#index = indexOf(ports);
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

  *[Symbol.iterator](): Generator<KnownEndpoint, void, undefined> {
    for (const address of this.#index.endpoints.keys()) yield* this.at(address);
  }

  #known({ address, port, status }: Placed): KnownEndpoint {
    const isLocal = this.#node === '' || !status?.nodeName ? undefined : status.nodeName === this.#node;
    return { address, port, isLocal };
  }
}

const none: readonly never[] = [];
