import { parseAddress, parseNetwork, type Address, type Network } from '../kernel/address.ts';

/** An address of a bundle's JSON, whose shape has been checked. Throws a TypeError for what is none all the same. */
export function readAddress(text: string): Address {
  const address = parseAddress(text);
  if (!address) throw new TypeError(`"${text}" is not an address`);
  return address;
}

/** A network of a bundle's JSON, likewise. */
export function readNetwork(text: string): Network {
  const network = parseNetwork(text);
  if (!network) throw new TypeError(`"${text}" is not a network`);
  return network;
}
