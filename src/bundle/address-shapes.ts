import { textThat, wholeNumber } from '../base/shape.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';

/** An address of either family, however it is written. */
export const address = textThat('an IP address', (text) => parseAddress(text) !== undefined);
/** An address with a prefix length. */
export const network = textThat('a CIDR', (text) => parseNetwork(text) !== undefined);
/** A port that can be listened on. */
export const port = wholeNumber(1, 65_535);
