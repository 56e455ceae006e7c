import { serviceNameLabel } from '../cluster/endpoints.ts';
import type { EndpointPort, EndpointSlice, FieldPath, SliceEndpoint } from '../cluster/objects.ts';
import { type Address, describeUnusable, parseAddress } from '../kernel/address.ts';
import type { Family } from '../kernel/family.ts';
import { checkUsableAddress } from './check-addresses.ts';
import { isName } from '../cluster/object-names.ts';
import { checkName, EndpointNames, readMetadata } from './check-names.ts';
import type { Report } from './report.ts';
import type { RawEndpointPort, RawEndpointSlice, RawSliceEndpoint } from './schemas/endpoint-slice.ts';
import { fieldName, quote } from './wording.ts';

const none: readonly never[] = [];

const familyOf: { readonly [T in 'IPv4' | 'IPv6']: Family } = { IPv4: 'ipv4', IPv6: 'ipv6' };

/** Checks an EndpointSlice as the API server would and fills in its defaults. `names` is one for the slices of a run. */
export function readEndpointSlice(raw: RawEndpointSlice, report: Report, names = new EndpointNames()): EndpointSlice {
  const metadata = readMetadata(raw.metadata, 'subdomain', report);
  const service = metadata.labels[serviceNameLabel];
  if (!service) {
    const text = `kube-proxy skips this EndpointSlice: it has no label ${serviceNameLabel} with the name of its Service`;
    report.warn(['metadata', 'labels'], 'slice-without-service', text);
  } else if (!isName(service, 'label')) {
    const text = `kube-proxy skips this EndpointSlice: no Service can have the name ${quote(service)}`;
    report.warn(['metadata', 'labels', serviceNameLabel], 'slice-without-service', text);
  }
  if (!raw.addressType) {
    report.error(['addressType'], 'missing-field', 'the EndpointSlice has no addressType: write IPv4, IPv6 or FQDN');
  }
  const addressType = raw.addressType || undefined;
  return {
    metadata,
    addressType: addressType ?? 'IPv4',
    ports: readEndpointPorts(raw.ports ?? none, ['ports'], report),
    endpoints: (raw.endpoints ?? none).map((endpoint, i) => readEndpoint(endpoint, addressType, i, report, names)),
  };
}

/** Reads the ports of a slice, or of a subset of v1 Endpoints. */
export function readEndpointPorts(raw: readonly RawEndpointPort[], path: FieldPath, report: Report): EndpointPort[] {
  return raw.map((port, i) => {
    const name = port.name ?? '';
    if (name !== '') checkName(name, 'label', [...path, i, 'name'], report);
    return { name, protocol: port.protocol || 'TCP', port: port.port || undefined };
  });
}

function readEndpoint(
  raw: RawSliceEndpoint,
  addressType: EndpointSlice['addressType'] | undefined,
  index: number,
  report: Report,
  names: EndpointNames,
): SliceEndpoint {
  const addresses = raw.addresses ?? none;
  if (addresses.length === 0) {
    report.error(['endpoints', index, 'addresses'], 'missing-field', `endpoints[${index}] has no addresses`);
  }
  const address = addressType === 'FQDN' ? undefined : checkEndpointAddresses(addresses, addressType, index, report);
  if (raw.hostname) checkName(raw.hostname, 'label', ['endpoints', index, 'hostname'], report);
  const nodeName = raw.nodeName ? names.nodes.find(raw.nodeName) : undefined;
  if (raw.nodeName && nodeName === undefined) {
    checkName(raw.nodeName, 'subdomain', ['endpoints', index, 'nodeName'], report);
  }
  const zone = raw.zone ? names.zones.find(raw.zone) : undefined;
  if (raw.zone && zone === undefined) reportZone(raw.zone, ['endpoints', index, 'zone'], report);
  return {
    addresses,
    address,
    hostname: raw.hostname || undefined,
    nodeName,
    zone,
    ready: raw.conditions?.ready ?? true,
    serving: raw.conditions?.serving ?? true,
    terminating: raw.conditions?.terminating ?? false,
    zoneHints: readHints(raw.hints?.forZones),
    nodeHints: readHints(raw.hints?.forNodes),
  };
}

/** Checks an endpoint's addresses, and gives the first. */
function checkEndpointAddresses(
  addresses: readonly string[],
  addressType: 'IPv4' | 'IPv6' | undefined,
  index: number,
  report: Report,
): Address | undefined {
  let first: Address | undefined;
  for (let i = 0; i < addresses.length; i++) {
    const text = addresses[i] ?? '';
    const address = parseAddress(text);
    if (i === 0) first = address;
    const fits = address && (!addressType || address.family === familyOf[addressType]);
    if (fits && address.text === text && describeUnusable(address) === undefined) continue;
    const path = ['endpoints', index, 'addresses', i];
    const usable = checkUsableAddress(text, path, report);
    if (usable && !fits && addressType) {
      report.error(
        path,
        'bad-address',
        `${fieldName(path)} ${quote(text)} is no ${addressType} address, as addressType says`,
      );
    }
  }
  return first;
}

/** No rule depends on it: the hints name zones, too. */
function reportZone(zone: string, path: FieldPath, report: Report): void {
  const shape = 'a zone is letters, digits, dashes, underscores and dots, 63 at most';
  report.warn(path, 'bad-zone', `${fieldName(path)} ${quote(zone)} is left out: ${shape}`);
}

function readHints(raw: readonly { readonly name?: string | null }[] | null | undefined): readonly string[] {
  return raw?.length ? raw.map(({ name }) => name ?? '') : none;
}
