import type { EndpointAddress, Endpoints, FieldPath } from '../cluster/objects.ts';
import { checkUsableAddress } from './check-addresses.ts';
import { checkName, readMetadata } from './check-names.ts';
import { readEndpointPorts } from './read-endpoint-slice.ts';
import type { Report } from './report.ts';
import type { RawEndpointAddress, RawEndpoints } from './schemas/endpoints.ts';

/** Checks v1 Endpoints as the API server would. */
export function readEndpoints(raw: RawEndpoints, report: Report): Endpoints {
  return {
    metadata: readMetadata(raw.metadata, 'subdomain', report),
    subsets: (raw.subsets ?? []).map((subset, i) => ({
      addresses: readAddresses(subset.addresses ?? [], ['subsets', i, 'addresses'], report),
      notReadyAddresses: readAddresses(subset.notReadyAddresses ?? [], ['subsets', i, 'notReadyAddresses'], report),
      ports: readEndpointPorts(subset.ports ?? [], ['subsets', i, 'ports'], report),
    })),
  };
}

function readAddresses(raw: readonly RawEndpointAddress[], path: FieldPath, report: Report): EndpointAddress[] {
  return raw.map(({ ip, hostname, nodeName }, i) => {
    checkUsableAddress(ip ?? '', [...path, i, 'ip'], report);
    if (nodeName) checkName(nodeName, 'subdomain', [...path, i, 'nodeName'], report);
    return { ip: ip ?? '', hostname: hostname || undefined, nodeName: nodeName || undefined };
  });
}
