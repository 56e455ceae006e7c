import type { FieldPath } from '../cluster/objects.ts';
import { type Address, type Network, parseAddress, parseNetwork } from '../kernel/address.ts';
import type { Report } from './report.ts';
import { fieldName, quote } from './wording.ts';

/** The address as kube-proxy reads it; undefined, with an error in the report, for what is none. */
export function checkAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = parseAddress(text);
  if (!address) {
    const hint = text.includes('/') && parseNetwork(text) ? ': write it without the prefix length' : '';
    report.error(path, 'bad-address', `${fieldName(path)} ${quote(text)} is not an IP address${hint}`);
  }
  return address;
}

/** The network as kube-proxy reads it; undefined, with an error in the report, for what is none. */
export function checkNetwork(text: string, path: FieldPath, report: Report): Network | undefined {
  const network = parseNetwork(text);
  if (!network) {
    const address = parseAddress(text);
    const length = address?.family === 'ipv6' ? 128 : 32;
    const hint = address ? `write ${text}/${length} for this one address` : 'write it like 10.0.0.0/8 or fd00::/64';
    report.error(path, 'bad-cidr', `${fieldName(path)} ${quote(text)} is not a network: ${hint}`);
  }
  return network;
}
