import {
  servicePortLabel,
  type ServiceHealthCheck,
  type ServiceInfo,
  type Cluster,
  type ClusterObjects,
  type Endpoint,
  type ServicePort,
} from '../cluster/model.ts';
import { services as servicesCheck } from '#checks';
import type { EndpointStatus } from '../cluster/objects.ts';
import { readAddress, requireNetwork } from './manifest.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { BundleFault } from '../base/findings/bundle.ts';
import { parseFile } from '../base/json/check.ts';
import { StatusSharing } from '../cluster/endpoints.ts';
import { compareServicePorts } from '../cluster/build-cluster.ts';
import { LongText } from '../kernel/lines.ts';
import { joinHostPort, type Address, type Network } from '../kernel/address.ts';
import type { endpointSchema, servicePortSchema, ServiceRecord } from './schemas.ts';

type EndpointRecord = Shaped<typeof endpointSchema>;

type ServicePortRecord = Shaped<typeof servicePortSchema>;

/** Writes services.json, the compiled cluster, which all nodes share. Each Service, port and endpoint has a line, for short diffs. */
export function writeServices(cluster: Cluster): string {
  return writeServicePieces(cluster).join('');
}

/** Like writeServices, but returns pieces. Joining a long text would hold it in memory twice. */
export function writeServicePieces(cluster: Cluster): readonly string[] {
  const out = new LongText();
  const tailOf = rememberTails();
  const ports = cluster.servicePorts;
  out.add('{\n"services": ');
  addList(out, openRecords(cluster.services.map(serviceRecord)), (record) => {
    out.add(record);
    out.add('}');
  });
  out.add(',\n"servicePorts": ');
  addList(out, openRecords(ports.map(servicePortRecord)), (record, i) => {
    out.add(record);
    writeEndpoints(out, ports[i]?.endpoints ?? [], tailOf);
  });
  out.add(',\n"healthChecks": ');
  addList(out, openRecords(cluster.healthChecks.map(healthCheckRecord)), (record) => out.add(`${record}}`));
  out.add('\n}\n');
  return out.pieces();
}

/**
 * Returns each record as JSON without its last brace. For speed, writes all records as one text and splits this text. The split finds
 * nothing but the borders of records, because a quote inside a value has a backslash.
 */
function openRecords(records: readonly { readonly namespace: string }[]): readonly string[] {
  if (records.length === 0) return [];
  const next = '},{"namespace":';
  const all = JSON.stringify(records);
  const opened: string[] = [];
  let start = '['.length;
  for (let end = all.indexOf(next); end >= 0; end = all.indexOf(next, start)) {
    opened.push(all.slice(start, end));
    start = end + '},'.length;
  }
  opened.push(all.slice(start, -'}]'.length));
  return opened;
}

function addList<T>(out: LongText, items: readonly T[], add: (item: T, index: number) => void): void {
  let separator = '[\n';
  items.forEach((item, i) => {
    out.add(separator);
    add(item, i);
    separator = ',\n';
  });
  out.add(items.length === 0 ? '[\n]' : '\n]');
}

function writeEndpoints(out: LongText, endpoints: readonly Endpoint[], tailOf: (endpoint: Endpoint) => Tail): void {
  if (endpoints.length === 0) return out.add(',"endpoints":[]}');
  out.add(',"endpoints":[\n {"address":"');
  const last = endpoints.length - 1;
  for (let i = 0; i <= last; i++) {
    const endpoint = endpoints[i] as Endpoint;
    out.add(endpoint.address.text);
    out.add(i === last ? `${tailOf(endpoint).end}\n]}` : tailOf(endpoint).next);
  }
}

interface Tail {
  readonly end: string;
  readonly next: string;
}

function rememberTails(): (endpoint: Endpoint) => Tail {
  const known = new Map<EndpointStatus, { readonly port: number; readonly tail: Tail }>();
  return ({ port, status }) => {
    const last = known.get(status);
    if (last?.port === port) return last.tail;
    const end = endpointTail(port, status);
    const tail = { end, next: `${end},\n {"address":"` };
    known.set(status, { port, tail });
    return tail;
  };
}

function serviceRecord(service: ServiceInfo): ServiceRecord {
  const { namespace, name, type, skipped, clusterIPs, externalName, ports, headlessEndpoints } = service;
  return { namespace, name, type, skipped, clusterIPs, externalName, ports, headlessEndpoints };
}

function healthCheckRecord(check: ServiceHealthCheck): ServiceHealthCheck {
  const { namespace, service, family, port, readyEndpoints } = check;
  return { namespace, service, family, port, readyEndpoints };
}

export function servicePortRecord(port: ServicePort): Omit<ServicePortRecord, 'endpoints'> {
  const { namespace, service, protocol, family, hasIgnoredExternalIPs } = port;
  return {
    namespace,
    service,
    port: port.portName,
    protocol,
    family,
    clusterIP: port.clusterIP.text,
    number: port.port,
    nodePort: port.nodePort || undefined,
    externalIPs: textsIfAny(port.externalIPs),
    hasIgnoredExternalIPs,
    loadBalancerIPs: textsIfAny(port.loadBalancerIPs),
    sourceRanges: textsIfAny(port.sourceRanges),
    affinitySeconds: port.affinitySeconds || undefined,
    internalTrafficPolicy: port.internalPolicyLocal ? 'Local' : undefined,
    externalTrafficPolicy: port.externalPolicyLocal ? 'Local' : undefined,
    healthCheckNodePort: port.healthCheckNodePort || undefined,
    scheduler: port.scheduler || undefined,
    forwarding: port.forwarding === 'masquerade' ? undefined : port.forwarding,
  };
}

function endpointTail(port: number, status: EndpointStatus): string {
  const record: Omit<EndpointRecord, 'address'> = {
    port,
    node: status.nodeName,
    zone: status.zone,
    ready: status.ready ? undefined : false,
    serving: status.serving ? undefined : false,
    terminating: status.terminating ? true : undefined,
    zoneHints: status.zoneHints.length > 0 ? status.zoneHints : undefined,
    nodeHints: status.nodeHints.length > 0 ? status.nodeHints : undefined,
    assumed: status.assumed,
  };
  return `",${JSON.stringify(record).slice(1)}`;
}

function textsIfAny(list: readonly (Address | Network)[]): readonly string[] | undefined {
  return list.length > 0 ? list.map((each) => each.text) : undefined;
}

export function readServices(
  content: string,
): { readonly value: Omit<ClusterObjects, 'serviceCidrs'> } | { readonly problems: readonly BundleFault[] } {
  const reading = parseFile(servicesCheck, 'services.json', content);
  if ('problems' in reading) return reading;
  const { services, servicePorts, healthChecks } = reading.value;
  const statuses = new StatusSharing();
  const ports = servicePorts.map((port) => readServicePort(port, statuses)).sort(compareServicePorts);
  return { value: { services, servicePorts: ports, healthChecks } };
}

export function readServicePort(record: ServicePortRecord, statuses = new StatusSharing()): ServicePort {
  return {
    namespace: record.namespace,
    service: record.service,
    portName: record.port,
    protocol: record.protocol,
    family: record.family,
    label: servicePortLabel(record.namespace, record.service, record.port),
    clusterIP: readAddress(record.clusterIP),
    port: record.number,
    nodePort: record.nodePort ?? 0,
    externalIPs: (record.externalIPs ?? []).map(readAddress),
    hasIgnoredExternalIPs: record.hasIgnoredExternalIPs,
    loadBalancerIPs: (record.loadBalancerIPs ?? []).map(readAddress),
    sourceRanges: (record.sourceRanges ?? []).map(requireNetwork),
    affinitySeconds: record.affinitySeconds ?? 0,
    internalPolicyLocal: record.internalTrafficPolicy === 'Local',
    externalPolicyLocal: record.externalTrafficPolicy === 'Local',
    healthCheckNodePort: record.healthCheckNodePort ?? 0,
    scheduler: record.scheduler ?? '',
    forwarding: record.forwarding ?? 'masquerade',
    endpoints: record.endpoints.map((endpoint) => readEndpointRecord(endpoint, statuses)),
  };
}

function readEndpointRecord(record: EndpointRecord, statuses: StatusSharing): Endpoint {
  const address = readAddress(record.address);
  return {
    address,
    port: record.port,
    label: joinHostPort(address.text, record.port),
    status: statuses.share({
      nodeName: record.node,
      zone: record.zone,
      ready: record.ready ?? true,
      serving: record.serving ?? true,
      terminating: record.terminating ?? false,
      zoneHints: record.zoneHints ?? [],
      nodeHints: record.nodeHints ?? [],
      assumed: record.assumed,
    }),
  };
}
