import type { FieldPath } from '../cluster/objects.ts';
import { describeUnusable, parseAddress, parseNetwork } from '../kernel/address.ts';
import type { Address, Network } from '../kernel/address.ts';
import type { Report } from './report.ts';
import { fieldName, quote } from './wording.ts';

/** The address as kube-proxy reads it; undefined, with an error in the report, for what is none. */
export function checkAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = parseAddress(text);
  if (!address) {
    const hint = parseNetwork(text) ? ': write it without the prefix length' : '';
    report.error(path, 'bad-address', `${fieldName(path)} ${quote(text)} is not an IP address${hint}`);
  } else if (text !== address.text && (address.family === 'ipv4' || text.includes('.'))) {
    const means = `${fieldName(path)} ${quote(text)} is read as ${address.text}: write it that way`;
    report.warn(path, 'odd-address', `${means}, because other programs may read leading zeros as octal`);
  } else if (text !== address.text) {
    const text6 = `${fieldName(path)} ${quote(text)} is not in the form of RFC 5952: write ${address.text}`;
    report.warn(path, 'odd-address', text6);
  }
  return address;
}

/** Like checkAddress, but also refuses addresses that the API server takes for no Service or endpoint. */
export function checkUsableAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = checkAddress(text, path, report);
  const kind = address && describeUnusable(address);
  if (kind === undefined) return address;
  report.error(path, 'bad-address', `${fieldName(path)} ${quote(text)} is ${kind}: Kubernetes does not take it here`);
  return undefined;
}

/** The network as kube-proxy reads it; undefined, with an error in the report, for what is none. */
export function checkNetwork(text: string, path: FieldPath, report: Report): Network | undefined {
  const network = parseNetwork(text);
  if (!network) {
    const address = parseAddress(text);
    const length = address?.family === 'ipv6' ? 128 : 32;
    const hint = address ? `write ${text}/${length} for this one address` : 'write it like 10.0.0.0/8 or fd00::/64';
    report.error(path, 'bad-cidr', `${fieldName(path)} ${quote(text)} is not a network: ${hint}`);
  } else if (text !== network.text) {
    report.warn(path, 'odd-cidr', `${fieldName(path)} ${quote(text)} ${describeOdd(text, network)}`);
  }
  return network;
}

/** Like checkNetwork, but also refuses networks in any other form than Kubernetes itself writes. */
export function checkCanonicalNetwork(text: string, path: FieldPath, report: Report): Network | undefined {
  const network = parseNetwork(text);
  if (!network || text === network.text) return checkNetwork(text, path, report);
  report.error(path, 'bad-cidr', `${fieldName(path)} ${quote(text)} is refused by Kubernetes: write ${network.text}`);
  return undefined;
}

/** What is odd about a network that is not written as it is read. */
function describeOdd(text: string, network: Network): string {
  const address = parseAddress(text.slice(0, text.indexOf('/')));
  if (!address || address.text === network.address.text) return `is read as ${network.text}: write it that way`;
  const one = `${address.text}/${address.family === 'ipv6' ? 128 : 32}`;
  return `has bits set beyond its prefix length: write ${network.text}, which is how it is read, or ${one} for the one address`;
}
