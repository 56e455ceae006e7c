import type { AddressIndex, Endpoint, PlacedEndpoint } from '../cluster/model.ts';
import type { Address, Family } from '../kernel/address.ts';

interface KnownEndpoint {
  readonly address: Address;
  readonly port: number;
  readonly isLocal: boolean | undefined;
}

export class KnownEndpoints {
  readonly #index: AddressIndex;
  readonly #claims: AddressIndex;
  readonly #node: string;

  constructor(index: AddressIndex, claims: AddressIndex, node: string) {
    this.#index = index;
    this.#claims = claims;
    this.#node = node;
  }

  has(address: string): boolean {
    return this.#index.endpointsAt(address).length > 0;
  }

  isOfService(address: string): boolean {
    return this.#claims.servicesAt(address).length > 0;
  }

  isLocal({ address, port }: Pick<Endpoint<undefined>, 'address' | 'port'>): boolean | undefined {
    return address && this.at(address.text).find((each) => each.port === port)?.isLocal;
  }

  at(address: string): readonly KnownEndpoint[] {
    return this.#index.endpointsAt(address).map((each) => this.#known(each));
  }

  *of(family: Family): Generator<KnownEndpoint, void, undefined> {
    for (const endpoint of this.#index.endpointsOf(family)) yield this.#known(endpoint);
  }

  #known({ address, port, status }: PlacedEndpoint): KnownEndpoint {
    const isLocal = this.#node === '' || !status?.nodeName ? undefined : status.nodeName === this.#node;
    return { address, port, isLocal };
  }
}
