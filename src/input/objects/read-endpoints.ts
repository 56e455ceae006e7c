import { printable } from '../../base/printable.ts';
import { serviceNameLabel } from '../../cluster/endpoints.ts';
import type {
  EndpointAddress,
  EndpointPort,
  Endpoints,
  EndpointSlice,
  FieldPath,
  SliceEndpoint,
} from '../../cluster/objects.ts';
import { type Address, type Family, parseAddress, unusableAs } from '../../kernel/address.ts';
import { checkHostAddress, checkName, type CommonNames, readMetadata } from './check-values.ts';
import { isName } from '../../base/names.ts';
import type { Report } from './report.ts';
import type {
  RawEndpointAddress,
  RawEndpointPort,
  RawEndpoints,
  RawEndpointSlice,
  RawSliceEndpoint,
} from './shapes/service.ts';

const none: readonly never[] = [];

const familyOf: { readonly [T in 'IPv4' | 'IPv6']: Family } = { IPv4: 'ipv4', IPv6: 'ipv6' };

export function readEndpointSlice(raw: RawEndpointSlice, report: Report, names: CommonNames): EndpointSlice {
  const metadata = readMetadata(raw.metadata, 'subdomain', report, names);
  const service = metadata.labels[serviceNameLabel];
  if (!service) {
    report.add(['metadata', 'labels'], 'slice-without-service', {});
  } else if (!isName(service, 'label')) {
    report.add(['metadata', 'labels', serviceNameLabel], 'slice-without-service', { service });
  }
  if (!raw.addressType) report.addMissing([], 'addressType');
  const addressType = raw.addressType || undefined;
  const ports = readEndpointPorts(raw.ports ?? none, ['ports'], report);
  if (raw.ports) checkPortNumbers(raw.ports, report);
  if (ports.length > 1) checkPortNames(ports, report);
  const endpoints = (raw.endpoints ?? none).map((endpoint, i) =>
    readSliceEndpoint(endpoint, addressType, i, report, names),
  );
  // Skip this check if there are other errors, which matter more.
  if (!report.hasErrors) checkSliceSize(raw, report);
  return { metadata, addressType: addressType ?? 'IPv4', ports, endpoints };
}

/** The API server's limits for a slice. kube-proxy would accept a larger slice, but no cluster has one. */
const most = { endpoints: 1000, ports: 20_000 };

function checkSliceSize(slice: RawEndpointSlice, report: Report): void {
  for (const field of ['endpoints', 'ports'] as const) {
    const [count, limit] = [slice[field]?.length ?? 0, most[field]];
    if (count > limit) report.add([field], 'too-many', { object: 'EndpointSlice', field, count, limit });
  }
}

function checkPortNumbers(ports: readonly RawEndpointPort[], report: Report): void {
  for (let i = 0; i < ports.length; i++) {
    if (ports[i]?.port === 0) report.addWrong(['ports', i, 'port'], 0, { form: 'slice-port', isWarning: true });
  }
}

/** kube-proxy identifies ports by name and protocol, but the API server wants a name to be unique across protocols. */
function checkPortNames(ports: readonly EndpointPort[], report: Report): void {
  const seen = new Map<string, number>();
  for (const [index, { name, protocol }] of ports.entries()) {
    if (report.isDoubtful(['ports', index, 'name'])) continue;
    const same = seen.get(`${name}/${protocol}`);
    const first = same ?? seen.get(name);
    if (same === undefined) seen.set(`${name}/${protocol}`, index);
    if (first === undefined) seen.set(name, index);
    else {
      const details = { field: 'name', value: name, first, isOfSlice: true } as const;
      report.add(['ports', index], 'duplicate-port', details);
    }
  }
}

function readEndpointPorts(raw: readonly RawEndpointPort[], path: FieldPath, report: Report): EndpointPort[] {
  return raw.map((port, i) => {
    const name = port.name ?? '';
    if (name !== '') checkName(name, 'label', [...path, i, 'name'], report);
    return { name, protocol: port.protocol || 'TCP', port: port.port || undefined };
  });
}

function readSliceEndpoint(
  raw: RawSliceEndpoint,
  addressType: EndpointSlice['addressType'] | undefined,
  index: number,
  report: Report,
  names: CommonNames,
): SliceEndpoint {
  const { conditions, hints } = raw;
  const addresses = raw.addresses ?? none;
  if (addresses.length === 0) {
    report.addMissing(['endpoints', index], 'addresses');
  }
  if (addresses.length > 1) {
    report.add(['endpoints', index, 'addresses'], 'extra-addresses', { index, count: addresses.length });
  }
  const address =
    addressType === 'FQDN'
      ? checkHostNames(addresses, index, report)
      : checkEndpointAddresses(addresses, addressType, index, report);
  if (raw.hostname) checkName(raw.hostname, 'label', ['endpoints', index, 'hostname'], report);
  const nodeName = raw.nodeName ? names.nodes.find(raw.nodeName) : undefined;
  if (raw.nodeName && nodeName === undefined) {
    checkName(raw.nodeName, 'subdomain', ['endpoints', index, 'nodeName'], report);
  }
  const zone = raw.zone ? names.zones.find(raw.zone) : undefined;
  if (raw.zone && zone === undefined) {
    // Only warn, because no rule depends on an endpoint's zone. Hints name zones themselves.
    report.addWrong(['endpoints', index, 'zone'], raw.zone, { form: 'zone', isWarning: true });
  }
  return {
    address,
    written: addresses.length === 1 && address?.text === addresses[0] ? undefined : addresses,
    hostname: raw.hostname || undefined,
    status: names.statuses.share({
      nodeName,
      zone,
      ready: conditions?.ready ?? true,
      serving: conditions?.serving ?? true,
      terminating: conditions?.terminating ?? false,
      zoneHints: hints ? readHints(hints.forZones, 'forZones', names.zones, index, report) : none,
      nodeHints: hints ? readHints(hints.forNodes, 'forNodes', names.nodes, index, report) : none,
    }),
  };
}

/** Checks the names although kube-proxy ignores host names. */
function checkHostNames(addresses: readonly string[], index: number, report: Report): undefined {
  for (const [i, name] of addresses.entries()) {
    checkName(name.replace(/\.$/, ''), 'subdomain', ['endpoints', index, 'addresses', i], report);
  }
}

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
    if (fits && address.text === text && unusableAs(address) === undefined) continue;
    const path = ['endpoints', index, 'addresses', i];
    if (!checkHostAddress(text, path, report) || fits || !addressType) continue;
    report.addWrong(path, text, { form: 'address-of-family', expected: addressType });
  }
  return first;
}

/** Reads hints. They are compared with the node's name and zone, so an invalid hint matches nothing. */
function readHints(
  raw: readonly { readonly name?: string | null }[] | null | undefined,
  field: 'forZones' | 'forNodes',
  known: CommonNames['nodes'],
  index: number,
  report: Report,
): readonly string[] {
  if (!raw?.length) return none;
  const path = ['endpoints', index, 'hints', field];
  return raw.map(({ name }, i) => {
    const hint = known.find(name ?? '');
    if (hint !== undefined) return hint;
    const form = field === 'forZones' ? 'label-value' : 'subdomain';
    report.addWrong([...path, i], name ?? '', { form, isWarning: true });
    // Keep the hint, which matches nothing, but make it printable for services.json.
    return printable(name ?? '');
  });
}

export function readEndpoints(raw: RawEndpoints, report: Report, names: CommonNames): Endpoints {
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report, names),
    subsets: (raw.subsets ?? []).map((subset, i) => ({
      addresses: readEndpointAddresses(subset.addresses ?? [], ['subsets', i, 'addresses'], report),
      notReadyAddresses: readEndpointAddresses(
        subset.notReadyAddresses ?? [],
        ['subsets', i, 'notReadyAddresses'],
        report,
      ),
      ports: readSubsetPorts(subset.ports ?? [], ['subsets', i, 'ports'], report),
    })),
  };
}

/** A port of Endpoints needs a number, and a name if there are several. Only a slice's port may lack a number, which means all ports. */
function readSubsetPorts(raw: readonly RawEndpointPort[], path: FieldPath, report: Report): EndpointPort[] {
  const ports = readEndpointPorts(raw, path, report);
  for (const [i, { name, port }] of ports.entries()) {
    if (port === undefined) {
      report.addMissing([...path, i], 'port');
    }
    if (name === '' && ports.length > 1) report.add([...path, i], 'unnamed-port', {});
  }
  return ports;
}

function readEndpointAddresses(raw: readonly RawEndpointAddress[], path: FieldPath, report: Report): EndpointAddress[] {
  return raw.map(({ ip, hostname, nodeName }, i) => {
    checkHostAddress(ip ?? '', [...path, i, 'ip'], report);
    if (hostname) checkName(hostname, 'label', [...path, i, 'hostname'], report);
    if (nodeName) checkName(nodeName, 'subdomain', [...path, i, 'nodeName'], report);
    return { ip: ip ?? '', hostname: hostname || undefined, nodeName: nodeName || undefined };
  });
}
