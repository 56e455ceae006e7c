import { formatCount } from '../base/format-count.ts';
import { chooseEndpoints } from '../cluster/endpoint-choice.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { ServiceInfo, ServicePort } from '../cluster/model.ts';
import { oneLine } from '../diff/one-line.ts';
import type { Decompiled, DecompiledPort } from './decompile.ts';
import type { View } from './view.ts';

/** A row of the table of all Services. */
export interface ServiceRow {
  /** "namespace/name"; of a dump, what it is called there. */
  readonly service: string;
  readonly type: string;
  readonly address: string;
  /** "80/TCP, 443/TCP:30443". */
  readonly ports: string;
  /** Endpoints used on the node, of all there are: "2 of 3". */
  readonly endpoints: string;
}

const headings: ServiceRow = {
  service: 'SERVICE',
  type: 'TYPE',
  address: 'ADDRESS',
  ports: 'PORTS',
  endpoints: 'ENDPOINTS',
};

/** One row for each Service, in the cluster's order. */
export function serviceRows(view: View): readonly ServiceRow[] {
  return eachService(view).map(({ service, count }) => ({
    service: `${service.namespace}/${service.name}`,
    type: service.type,
    address: addressOf(service),
    ports: service.ports.map(portText).join(', '),
    endpoints: countText(count),
  }));
}

function addressOf(service: ServiceInfo): string {
  switch (service.skipped) {
    case 'headless':
      return 'headless';
    case 'external-name':
      return service.externalName ?? '';
    case 'no-cluster-ip':
      return 'none yet';
    case undefined:
      return service.clusterIPs.join(', ');
  }
}

function portText({ port, protocol, nodePort }: ServiceInfo['ports'][number]): string {
  return nodePort === 0 ? `${port}/${protocol}` : `${port}/${protocol}:${nodePort}`;
}

/** How many endpoints a node uses of all there are. */
interface EndpointCount {
  readonly used: number;
  readonly total: number;
}

function countText(count: EndpointCount | undefined): string {
  return count ? `${count.used} of ${count.total}` : '';
}

/** All ports and families together, an address and port once. */
function countUsed(ports: readonly ServicePort[], node: View['services']['node']): EndpointCount {
  const all = new Set(ports.flatMap((port) => port.endpoints.map(({ label }) => label)));
  const used = new Set(ports.flatMap((port) => chooseEndpoints(port, node).reachable.map(({ label }) => label)));
  return { used: used.size, total: all.size };
}

/** Of a headless Service: those that its name stands for. */
function countHeadless({ skipped, headlessEndpoints }: ServiceInfo): EndpointCount | undefined {
  if (skipped !== 'headless') return undefined;
  return { used: headlessEndpoints.filter(({ ready }) => ready).length, total: headlessEndpoints.length };
}

/** A Service in the table, for programs. */
export interface ServiceSummary {
  /** "namespace/name". */
  readonly service: string;
  readonly type: ServiceInfo['type'];
  /** Why kube-proxy programs nothing for it. */
  readonly skipped?: NonNullable<ServiceInfo['skipped']>;
  readonly clusterIPs: readonly string[];
  readonly externalName?: string;
  readonly ports: readonly {
    readonly name: string;
    readonly port: number;
    readonly protocol: ServicePort['protocol'];
    readonly nodePort?: number;
  }[];
  /** Absent where it cannot have any. */
  readonly endpoints?: EndpointCount;
}

/** The rows of the table as data: numbers are numbers, and lists are lists. */
export function summarizeServices(view: View): readonly ServiceSummary[] {
  return eachService(view).map(({ service, count }) => ({
    service: `${service.namespace}/${service.name}`,
    type: service.type,
    ...(service.skipped === undefined ? {} : { skipped: service.skipped }),
    clusterIPs: service.skipped === undefined ? service.clusterIPs : [],
    ...(service.externalName === undefined ? {} : { externalName: service.externalName }),
    ports: service.ports.map(({ name, port, protocol, nodePort }) => {
      return { name, port, protocol, ...(nodePort === 0 ? {} : { nodePort }) };
    }),
    ...(count ? { endpoints: count } : {}),
  }));
}

/** The Services in the cluster's order, with how many of their endpoints the node uses. */
function eachService({ services: { cluster, node } }: View): readonly {
  readonly service: ServiceInfo;
  readonly count: EndpointCount | undefined;
}[] {
  const ports = groupBy(cluster.servicePorts, ({ namespace, service }) => `${namespace}/${service}`);
  return cluster.services.map((service) => {
    const own = ports.get(`${service.namespace}/${service.name}`) ?? [];
    return { service, count: own.length > 0 ? countUsed(own, node) : countHeadless(service) };
  });
}

/** One row for each Service port that a dump shows. */
export function decompiledRows({ ports }: Decompiled): readonly ServiceRow[] {
  return ports.map((port) => ({
    service: port.name,
    type: kindsOf(port),
    address: addressesOf(port),
    ports: [
      ...(port.port === undefined ? [] : [`${port.port}/${port.protocol}`]),
      ...(port.nodePort === undefined ? [] : [`node port ${port.nodePort}`]),
    ].join(', '),
    endpoints: port.endpoints === undefined ? '?' : String(port.endpoints.length),
  }));
}

/** A node port of IPVS mode stands for itself, on the node's addresses of one family. */
function addressesOf({ addresses, family, nodePort }: DecompiledPort): string {
  // Of a part of a table, the chains may be all that was printed.
  if (addresses.length === 0 && nodePort === undefined) return '?';
  if (addresses.length === 0) return family === 'ipv4' ? "the node's, IPv4" : "the node's, IPv6";
  return addresses.map(({ address }) => address).join(', ');
}

/**
 * The type that the state lets one see: a Service of type LoadBalancer without an address looks like a NodePort. In nftables mode
 * an address besides the cluster IP may be a load balancer's or an external IP.
 */
function kindsOf({ addresses, nodePort }: DecompiledPort): string {
  const has = (which: DecompiledPort['addresses'][number]['kind']) => addresses.some(({ kind }) => kind === which);
  if (has('load-balancer-ip')) return 'LoadBalancer';
  const orMore = has('cluster-ip') && has('unknown') ? ' or LoadBalancer' : '';
  if (nodePort !== undefined) return `NodePort${orMore}`;
  if (has('cluster-ip')) return `ClusterIP${orMore}`;
  return has('external-ip') ? 'external IP' : '';
}

/** The rows in columns, up to a limit, and how many there are more. */
export function formatRows(rows: readonly ServiceRow[], limit: number): string {
  const shown = rows.length <= limit + 1 ? rows : rows.slice(0, limit);
  const columns = ['service', 'type', 'address', 'ports', 'endpoints'] as const;
  const widths = columns.map((column) =>
    Math.min(
      60,
      shown.reduce((width, row) => Math.max(width, row[column].length), headings[column].length),
    ),
  );
  const lines = [headings, ...shown].map((row) =>
    columns
      .map((column, i) => row[column].padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const hidden = rows.length - shown.length;
  if (hidden > 0) lines.push(`… and ${formatCount(hidden)} more (--limit 0 shows all)`);
  return lines.map((text) => `${oneLine(text)}\n`).join('');
}
