import { readShape } from '../base/shape.ts';
import type { Cluster, Endpoint, ServiceHealthCheck, ServiceInfo, ServicePort } from '../cluster/model.ts';
import { servicePortLabel } from '../cluster/model.ts';
import { compareServicePorts } from '../cluster/build-cluster.ts';
import { LongText } from '../base/long-text.ts';
import type { Address, Network } from '../kernel/address.ts';
import { joinHostPort } from '../kernel/address.ts';
import { servicesShape } from './services-shape.ts';
import { readAddress, readNetwork } from './stored-address.ts';

/**
 * services.json: the cluster as compiled, without file names and lines, so that it changes only with the Services. It
 * is the same for every node. One line for each Service, Service port and endpoint, to read well in a diff.
 */
export function writeServices(cluster: Cluster): string {
  const text = new LongText();
  const tailOf = rememberTails();
  text.add('{\n"services": ');
  addList(text, cluster.services, (service) => text.add(JSON.stringify(serviceRecord(service))));
  text.add(',\n"servicePorts": ');
  addList(text, cluster.servicePorts, (port) => addServicePort(text, port, tailOf));
  text.add(',\n"healthChecks": ');
  addList(text, cluster.healthChecks, (check) => text.add(JSON.stringify(check)));
  text.add('\n}\n');
  return text.toString();
}

/** A list with a line for each item, or with an item's own lines, which `add` writes. */
function addList<T>(text: LongText, items: readonly T[], add: (item: T) => void): void {
  let separator = '[\n';
  for (const item of items) {
    text.add(separator);
    add(item);
    separator = ',\n';
  }
  text.add(items.length === 0 ? '[\n]' : '\n]');
}

function addServicePort(text: LongText, port: ServicePort, tailOf: (endpoint: Endpoint) => string): void {
  text.add(JSON.stringify(servicePortRecord(port)).slice(0, -1));
  if (port.endpoints.length === 0) return text.add(',"endpoints":[]}');
  text.add(',"endpoints":[');
  let separator = '\n {"address":"';
  // Mostly all have one port number, which need not be made a text for each.
  let number: number | undefined;
  let portText = '';
  for (const endpoint of port.endpoints) {
    if (endpoint.port !== number) {
      number = endpoint.port;
      portText = `","port":${number}`;
    }
    text.add(separator);
    text.add(endpoint.address.text);
    text.add(portText);
    text.add(tailOf(endpoint));
    separator = ',\n {"address":"';
  }
  text.add('\n]}');
}

/** endpointTail, or the text that it gave last for an endpoint on the same node, where that is the same. */
function rememberTails(): (endpoint: Endpoint) => string {
  const known = new Map<string | undefined, { readonly of: Endpoint; readonly tail: string }>();
  return (endpoint) => {
    const last = known.get(endpoint.nodeName);
    if (last && haveOneTail(last.of, endpoint)) return last.tail;
    const tail = endpointTail(endpoint);
    known.set(endpoint.nodeName, { of: endpoint, tail });
    return tail;
  };
}

function haveOneTail(a: Endpoint, b: Endpoint): boolean {
  return (
    a.nodeName === b.nodeName &&
    a.zone === b.zone &&
    a.ready === b.ready &&
    a.serving === b.serving &&
    a.terminating === b.terminating &&
    a.assumed === b.assumed &&
    a.zoneHints.length + a.nodeHints.length + b.zoneHints.length + b.nodeHints.length === 0
  );
}

/** The records are the file's format: fields at their usual value are left out. */
export type ServiceRecord = Omit<ServiceInfo, 'place' | 'endpointsGiven'>;

export interface ServicePortRecord {
  readonly namespace: string;
  readonly service: string;
  readonly port: string;
  readonly protocol: ServicePort['protocol'];
  readonly family: ServicePort['family'];
  readonly clusterIP: string;
  readonly number: number;
  readonly nodePort?: number | undefined;
  readonly externalIPs?: readonly string[] | undefined;
  readonly hasIgnoredExternalIPs?: true | undefined;
  readonly loadBalancerIPs?: readonly string[] | undefined;
  readonly sourceRanges?: readonly string[] | undefined;
  readonly affinitySeconds?: number | undefined;
  readonly internalTrafficPolicy?: 'Local' | undefined;
  readonly externalTrafficPolicy?: 'Local' | undefined;
  readonly healthCheckNodePort?: number | undefined;
  readonly scheduler?: string | undefined;
  readonly forwarding?: ServicePort['forwarding'] | undefined;
  readonly endpoints: readonly EndpointRecord[];
}

/** services.json. */
export interface ServicesFile {
  readonly services: readonly ServiceRecord[];
  readonly servicePorts: readonly ServicePortRecord[];
  readonly healthChecks: readonly ServiceHealthCheck[];
}

export interface EndpointRecord {
  readonly address: string;
  readonly port: number;
  readonly node?: string | undefined;
  readonly zone?: string | undefined;
  readonly ready?: boolean | undefined;
  readonly serving?: boolean | undefined;
  readonly terminating?: boolean | undefined;
  readonly zoneHints?: readonly string[] | undefined;
  readonly nodeHints?: readonly string[] | undefined;
  readonly assumed?: true | undefined;
}

function serviceRecord(service: ServiceInfo): ServiceRecord {
  return {
    namespace: service.namespace,
    name: service.name,
    type: service.type,
    skipped: service.skipped,
    clusterIPs: service.clusterIPs,
    externalName: service.externalName,
    ports: service.ports,
    headlessEndpoints: service.headlessEndpoints,
  };
}

function servicePortRecord(port: ServicePort): Omit<ServicePortRecord, 'endpoints'> {
  return {
    namespace: port.namespace,
    service: port.service,
    port: port.portName,
    protocol: port.protocol,
    family: port.family,
    clusterIP: port.clusterIP.text,
    number: port.port,
    nodePort: port.nodePort || undefined,
    externalIPs: textsOf(port.externalIPs),
    hasIgnoredExternalIPs: port.hasIgnoredExternalIPs,
    loadBalancerIPs: textsOf(port.loadBalancerIPs),
    sourceRanges: textsOf(port.sourceRanges),
    affinitySeconds: port.affinitySeconds,
    internalTrafficPolicy: port.internalPolicyLocal ? 'Local' : undefined,
    externalTrafficPolicy: port.externalPolicyLocal ? 'Local' : undefined,
    healthCheckNodePort: port.healthCheckNodePort || undefined,
    scheduler: port.scheduler,
    forwarding: port.forwarding === 'masquerade' ? undefined : port.forwarding,
  };
}

/** What follows an endpoint's address and port in its line. */
function endpointTail(endpoint: Endpoint): string {
  const record: Omit<EndpointRecord, 'address' | 'port'> = {
    node: endpoint.nodeName,
    zone: endpoint.zone,
    ready: endpoint.ready ? undefined : false,
    serving: endpoint.serving ? undefined : false,
    terminating: endpoint.terminating ? true : undefined,
    zoneHints: endpoint.zoneHints.length > 0 ? endpoint.zoneHints : undefined,
    nodeHints: endpoint.nodeHints.length > 0 ? endpoint.nodeHints : undefined,
    assumed: endpoint.assumed,
  };
  const text = JSON.stringify(record);
  return text === '{}' ? '}' : `,${text.slice(1)}`;
}

/** Undefined for none. */
function textsOf(list: readonly (Address | Network)[]): readonly string[] | undefined {
  return list.length > 0 ? list.map(({ text }) => text) : undefined;
}

/** What services.json says of a cluster. */
export type StoredServices = Omit<Cluster, 'serviceCidrs'>;

/**
 * Reads services.json back. A text is what is wrong with it: it quotes nothing of a file that is not JSON, which may be
 * another file altogether.
 */
export function readServices(content: string): StoredServices | string {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    return 'it is not JSON';
  }
  const reading = readShape(servicesShape, value);
  if ('wrong' in reading) return reading.wrong;
  const { services, servicePorts, healthChecks } = reading.value;
  return {
    services,
    servicePorts: servicePorts.map(readServicePort).sort(compareServicePorts),
    healthChecks,
  };
}

function readServicePort(record: ServicePortRecord): ServicePort {
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
    sourceRanges: (record.sourceRanges ?? []).map(readNetwork),
    affinitySeconds: record.affinitySeconds,
    internalPolicyLocal: record.internalTrafficPolicy === 'Local',
    externalPolicyLocal: record.externalTrafficPolicy === 'Local',
    healthCheckNodePort: record.healthCheckNodePort ?? 0,
    scheduler: record.scheduler,
    forwarding: record.forwarding ?? 'masquerade',
    endpoints: record.endpoints.map(readEndpoint),
  };
}

function readEndpoint(record: EndpointRecord): Endpoint {
  const address = readAddress(record.address);
  return {
    address,
    port: record.port,
    label: joinHostPort(address.text, record.port),
    nodeName: record.node,
    zone: record.zone,
    ready: record.ready ?? true,
    serving: record.serving ?? true,
    terminating: record.terminating ?? false,
    zoneHints: record.zoneHints ?? [],
    nodeHints: record.nodeHints ?? [],
    assumed: record.assumed,
  };
}
