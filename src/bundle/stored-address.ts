import { textThat, wholeNumber } from '../base/json-shape.ts';
import { parseAddress, parseNetwork, type Address, type Network } from '../kernel/address.ts';

/** An address of either family, however it is written. */
export const addressShape = textThat('an IP address', (text) => parseAddress(text) !== undefined);
/** An address with a prefix length. */
export const networkShape = textThat('a CIDR', (text) => parseNetwork(text) !== undefined);
/** A port that can be listened on. */
export const portShape = wholeNumber(1, 65_535);

/** An address of a bundle's JSON, whose shape has been checked. Throws a TypeError for what is none all the same. */
export function readAddress(text: string): Address {
  const parsed = parseAddress(text);
  if (!parsed) throw new TypeError(`"${text}" is not an address`);
  return parsed;
}

/** A network of a bundle's JSON, likewise. */
export function readNetwork(text: string): Network {
  const parsed = parseNetwork(text);
  if (!parsed) throw new TypeError(`"${text}" is not a network`);
  return parsed;
}
