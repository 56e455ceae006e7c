import type { EndpointAddress, EndpointPort, Endpoints, FieldPath } from '../../cluster/objects.ts';
import { checkUsableAddress, warnOfSpecial } from './check-addresses.ts';
import { checkName, readMetadata, type CommonNames } from './check-names.ts';
import { readEndpointPorts } from './read-endpoint-slice.ts';
import type { Report } from './report.ts';
import type { RawEndpointAddress, RawEndpointPort, RawEndpoints } from './schemas/endpoints.ts';

/** Checks v1 Endpoints as the API server would. */
export function readEndpoints(raw: RawEndpoints, report: Report, names: CommonNames): Endpoints {
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report, names),
    subsets: (raw.subsets ?? []).map((subset, i) => ({
      addresses: readAddresses(subset.addresses ?? [], ['subsets', i, 'addresses'], report),
      notReadyAddresses: readAddresses(subset.notReadyAddresses ?? [], ['subsets', i, 'notReadyAddresses'], report),
      ports: readSubsetPorts(subset.ports ?? [], ['subsets', i, 'ports'], report),
    })),
  };
}

/** A port of a slice may have no number, which stands for all; one of Endpoints has one, and a name beside others. */
function readSubsetPorts(raw: readonly RawEndpointPort[], path: FieldPath, report: Report): EndpointPort[] {
  const ports = readEndpointPorts(raw, path, report);
  for (const [i, { name, port }] of ports.entries()) {
    if (port === undefined) {
      report.add([...path, i, 'port'], 'missing-field', {
        owner: `ports[${i}] of Endpoints`,
        field: 'port',
        expected: 'a number from 1 to 65535',
      });
    }
    if (name === '' && ports.length > 1) report.add([...path, i], 'unnamed-port', {});
  }
  return ports;
}

function readAddresses(raw: readonly RawEndpointAddress[], path: FieldPath, report: Report): EndpointAddress[] {
  return raw.map(({ ip, hostname, nodeName }, i) => {
    const at = [...path, i, 'ip'];
    const address = checkUsableAddress(ip ?? '', at, report);
    if (address) warnOfSpecial(address, ip ?? '', 'endpoint', at, report);
    if (hostname) checkName(hostname, 'label', [...path, i, 'hostname'], report);
    if (nodeName) checkName(nodeName, 'subdomain', [...path, i, 'nodeName'], report);
    return { ip: ip ?? '', hostname: hostname || undefined, nodeName: nodeName || undefined };
  });
}
