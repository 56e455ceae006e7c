import type { FieldPath, ServiceCidr } from '../../cluster/objects.ts';
import {
  describeSpecial,
  describeUnusable,
  parseAddress,
  parseNetwork,
  type Address,
  type Network,
} from '../../kernel/address.ts';
import type { AddressUse } from '../../diagnostics/fields.ts';
import { readMetadata, type CommonNames } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawServiceCidr } from './schemas/node.ts';
import { fieldName } from '../../base/printable.ts';

/** The address as kube-proxy reads it; undefined, with an error in the report, for what is none. */
export function checkAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = parseAddress(text);
  if (!address) {
    report.add(path, 'bad-address', { field: fieldName(path), value: text, expected: 'an IP address' });
  } else if (text !== address.text) {
    report.add(path, 'odd-address', { field: fieldName(path), value: text, address: address.text });
  }
  return address;
}

/** Like checkAddress, but also refuses addresses that the API server takes for no Service or endpoint. */
export function checkUsableAddress(text: string, path: FieldPath, report: Report): Address | undefined {
  const address = checkAddress(text, path, report);
  const kind = address && describeUnusable(address);
  if (kind === undefined) return address;
  const expected = `an address that Kubernetes takes here: it is ${kind}`;
  report.add(path, 'bad-address', { field: fieldName(path), value: text, expected });
  return undefined;
}

/** Warns of an address that no host on a network has, where Kubernetes takes it. */
export function warnOfSpecial(address: Address, text: string, use: AddressUse, path: FieldPath, report: Report): void {
  const kind = describeSpecial(address);
  if (kind === undefined) return;
  const isRefused = describeUnusable(address) !== undefined;
  report.add(path, 'special-address', { field: fieldName(path), value: text, use, kind, isRefused });
}

/** Like checkUsableAddress, and warns of an address that no host on a network has. */
export function checkHostAddress(text: string, use: AddressUse, path: FieldPath, report: Report): Address | undefined {
  const address = checkUsableAddress(text, path, report);
  if (address) warnOfSpecial(address, text, use, path, report);
  return address;
}

/** The network as kube-proxy reads it; undefined, with an error in the report, for what is none. */
export function checkNetwork(text: string, path: FieldPath, report: Report): Network | undefined {
  const network = parseNetwork(text);
  if (!network) {
    const only = parseAddress(text);
    const address = only && networkOfOne(only, text);
    report.add(path, 'bad-cidr', { problem: 'no-network', field: fieldName(path), value: text, address });
  } else if (text !== network.text) {
    const address = findAddressMeant(text, network);
    report.add(path, 'odd-cidr', { field: fieldName(path), value: text, network: network.text, address });
  }
  return network;
}

/** Like checkNetwork, but also refuses networks in any other form than Kubernetes itself writes. */
function checkCanonicalNetwork(text: string, path: FieldPath, report: Report): Network | undefined {
  const network = parseNetwork(text);
  if (!network || text === network.text) return checkNetwork(text, path, report);
  const details = { problem: 'not-canonical', field: fieldName(path), value: text, network: network.text } as const;
  report.add(path, 'bad-cidr', details);
  return undefined;
}

/** The network of the one address that may be meant by a network with bits beyond its prefix length. */
function findAddressMeant(text: string, network: Network): string | undefined {
  const address = parseAddress(text.slice(0, text.indexOf('/')));
  return !address || address.text === network.address.text ? undefined : networkOfOne(address, address.text);
}

function networkOfOne({ family }: Address, text: string): string {
  return `${text}/${family === 'ipv6' ? 128 : 32}`;
}

/** Checks a ServiceCIDR as the API server does (ValidateServiceCIDR in pkg/apis/networking/validation). */
export function readServiceCidr(raw: RawServiceCidr, report: Report, names: CommonNames): ServiceCidr {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const path = ['spec', 'cidrs'];
  const texts = raw.spec?.cidrs ?? [];
  const cidrs = texts.map((text, i) => checkCanonicalNetwork(text, [...path, i], report));
  const known = cidrs.filter((network) => network !== undefined);
  const families = new Set(known.map(({ family }) => family));
  if (texts.length === 0 || texts.length > 2 || (known.length === texts.length && families.size < texts.length)) {
    report.add(path, 'bad-cidr', { problem: 'families', field: 'cidrs' });
  }
  return { metadata, cidrs: known };
}
