import type { AddressIndex, Endpoint, PlacedEndpoint } from '../cluster/model.ts';
import type { Address, Family } from '../kernel/address.ts';

interface KnownEndpoint {
  readonly address: Address;
  readonly port: number;
  readonly isLocal: boolean | undefined;
  /** '' if the node is unknown. */
  readonly nodeName: string;
}

export type KnownEndpoints = ReturnType<typeof knownEndpoints>;

export function knownEndpoints(index: AddressIndex, claims: AddressIndex, node: string) {
  const known = ({ address, port, status }: PlacedEndpoint): KnownEndpoint => {
    const { nodeName = '' } = status ?? {};
    const isLocal = node === '' || nodeName === '' ? undefined : nodeName === node;
    return { address, port, isLocal, nodeName };
  };
  const at = (address: string) => index.endpointsAt(address).map(known);
  return {
    at,
    has: (address: string) => index.endpointsAt(address).length > 0,
    isOfService: (address: string) => claims.servicesAt(address).length > 0,
    isLocal: ({ address, port }: Pick<Endpoint<undefined>, 'address' | 'port'>) =>
      address && at(address.text).find((each) => each.port === port)?.isLocal,
    *of(family: Family) {
      for (const endpoint of index.endpointsOf(family)) yield known(endpoint);
    },
  };
}
