import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { contains, parseAddress, type Network } from '../kernel/address.ts';
import type { PortRange } from '../kernel/socket-address.ts';
import type { AssignmentRanges } from './assign-addresses.ts';
import type { FieldPath, Service, Sourced } from './objects.ts';

/** A value of a Service that is in none of the ranges. */
interface Outsider {
  readonly service: Sourced<Service>;
  readonly path: FieldPath;
  readonly value: string | number;
}

/**
 * Warns of cluster IPs and node ports that the API server would not give to a Service, nor take from a manifest: one
 * warning for each kind, because many are the sign of a wrong range. kube-proxy itself does not ask for the range. Only the
 * ranges count that are named: where the cluster's own ServiceCIDRs are given, its API server has seen its Services.
 */
export function findOutsiders(
  services: readonly Sourced<Service>[],
  { clusterIPs, nodePorts }: AssignmentRanges,
): readonly Diagnostic[] {
  const addresses = clusterIPs.length === 0 ? [] : services.flatMap((each) => listAddresses(each, clusterIPs));
  const ports = nodePorts === undefined ? [] : services.flatMap((each) => listPorts(each, nodePorts));
  return [
    ...describe('clusterIP', addresses, clusterIPs.map(({ text }) => text).join(', ')),
    ...describe('nodePort', ports, nodePorts ? `${nodePorts.first}-${nodePorts.last}` : ''),
  ];
}

function listAddresses(service: Sourced<Service>, networks: readonly Network[]): readonly Outsider[] {
  const { type, clusterIPs } = service.object.spec;
  if (type === 'ExternalName') return [];
  return clusterIPs.flatMap((value, i): readonly Outsider[] => {
    const address = parseAddress(value);
    const own = address ? networks.filter(({ family }) => family === address.family) : [];
    if (!address || own.length === 0 || own.some((network) => contains(network, address))) return [];
    return [{ service, path: ['spec', ...(i === 0 ? ['clusterIP'] : ['clusterIPs', i])], value }];
  });
}

function listPorts(service: Sourced<Service>, { first, last }: PortRange): readonly Outsider[] {
  const { ports, healthCheckNodePort } = service.object.spec;
  const all = [
    ...ports.map(({ nodePort }, i) => ({ value: nodePort, path: ['spec', 'ports', i, 'nodePort'] })),
    { value: healthCheckNodePort, path: ['spec', 'healthCheckNodePort'] },
  ];
  return all
    .filter(({ value }) => value !== 0 && (value < first || value > last))
    .map((each) => ({ service, ...each }));
}

function describe(
  field: 'clusterIP' | 'nodePort',
  outsiders: readonly Outsider[],
  range: string,
): readonly Diagnostic[] {
  const [first] = outsiders;
  if (!first) return [];
  const values = outsiders.map(({ service, value }) => {
    const { namespace, name } = service.object.metadata;
    return { service: `${namespace}/${name}`, value };
  });
  return [diagnose('outside-range', { field, range, values }, first.service.source.place(first.path))];
}
