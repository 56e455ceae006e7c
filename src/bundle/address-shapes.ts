import { textThat, wholeNumber } from '../base/shape.ts';
import { parseAddress, parseNetwork } from '../kernel/address.ts';

export const address = textThat('an IP address', (text) => parseAddress(text) !== undefined);
export const network = textThat('a CIDR', (text) => parseNetwork(text) !== undefined);
export const port = wholeNumber(1, 65_535);
