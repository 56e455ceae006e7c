import { columnGap, cutCell, fitColumns } from '../base/fit-columns.ts';
import { formatCount } from '../base/format-count.ts';
import { printable } from '../base/printable.ts';
import type { AssignedService } from '../cluster/assign-addresses.ts';
import { chooseEndpoints, isExternallyAccessible, usesLocalEndpoints } from '../cluster/endpoint-choice.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { ServiceInfo, ServicePort } from '../cluster/model.ts';
import { families } from '../kernel/family.ts';
import type { View } from './described-node.ts';
import type { ShownPort } from './shown-port.ts';

/** The columns of the table of all Services. What kpc assumed has a star. */
const headings = {
  /** "namespace/name"; of a dump, what it is called there. */
  service: 'SERVICE',
  type: 'TYPE',
  /** Cluster IPs, then those of load balancers, then external IPs. */
  addresses: 'ADDRESSES',
  /** "80/TCP, 443/TCP". */
  ports: 'PORTS',
  nodePorts: 'NODE PORTS',
  /** Ready ones of all there are, "2/3". */
  endpoints: 'ENDPOINTS',
  /** Those that are not the default. */
  policies: 'POLICIES',
  /** What is odd. */
  notes: 'NOTES',
} as const;

type ServiceRow = { readonly [Column in keyof typeof headings]: string };

/** Columns that are left out if no Service has anything there. */
const optionalColumns: ReadonlySet<keyof ServiceRow> = new Set(['nodePorts', 'policies', 'notes']);

/** One row for each Service, in the cluster's order. */
export function serviceRows(view: Pick<View, 'services'>): readonly ServiceRow[] {
  return eachService(view).map((known) => {
    const { service, assumed } = known;
    const nodePorts = service.ports.map(({ nodePort }) => nodePort).filter((number) => number !== 0);
    const chosenPorts = new Set(Object.values(assumed?.nodePorts ?? {}));
    return {
      service: `${service.namespace}/${service.name}`,
      type: service.type,
      addresses: addressesOf(known),
      ports: service.ports.map(({ port, protocol }) => `${port}/${protocol}`).join(', '),
      nodePorts: [...new Set(nodePorts)].map((number) => star(String(number), chosenPorts.has(number))).join(', '),
      endpoints: countReady(known, view.services.assumed.pods),
      policies: policiesOf(known).join(', '),
      notes: oddities(known).join(', '),
    };
  });
}

function star(text: string, isAssumed: boolean): string {
  return isAssumed ? `${text}*` : text;
}

function addressesOf({ service, ports, assumed }: KnownService): string {
  switch (service.skipped) {
    case 'headless':
      return 'headless';
    case 'external-name':
      return service.externalName ?? '';
    case 'no-cluster-ip':
      return 'none yet';
    case undefined: {
      const chosen = new Set([...(assumed?.clusterIPs ?? []), ...(assumed?.loadBalancerIPs ?? [])]);
      const outer = [
        ...ports.flatMap(({ loadBalancerIPs }) => loadBalancerIPs),
        ...ports.flatMap(({ externalIPs }) => externalIPs),
      ];
      const all = new Set([...service.clusterIPs, ...outer.map(({ text }) => text)]);
      return [...all].map((text) => star(text, chosen.has(text))).join(', ');
    }
  }
}

/** Ready addresses of all; those of two families are those of the same Pods. */
function countReady({ service, ports, headless }: KnownService, assumed: ReadonlySet<string>): string {
  if (headless) {
    const isAssumed = service.headlessEndpoints.some(({ address }) => assumed.has(address));
    return star(`${headless.used}/${headless.total}`, isAssumed);
  }
  if (ports.length === 0) return '';
  const counts = families.map((family) => {
    const all = ports.filter((port) => port.family === family).flatMap(({ endpoints }) => endpoints);
    const distinct = (some: typeof all): number => new Set(some.map(({ address }) => address.text)).size;
    return {
      ready: distinct(all.filter(({ status }) => status.ready)),
      all: distinct(all),
      isAssumed: all.some(({ status }) => status.assumed === true),
    };
  });
  const most = counts.reduce((a, b) => (b.all > a.all ? b : a));
  return star(`${most.ready}/${most.all}`, most.isAssumed);
}

function policiesOf({ ports }: KnownService): readonly string[] {
  const has = (test: (port: ServicePort) => boolean, text: string): readonly string[] =>
    ports.some(test) ? [text] : [];
  return [
    ...has(({ internalPolicyLocal }) => internalPolicyLocal, 'internal Local'),
    ...has((port) => port.externalPolicyLocal && isExternallyAccessible(port), 'external Local'),
    ...has(({ affinitySeconds }) => affinitySeconds !== undefined, 'ClientIP'),
    ...has(({ sourceRanges }) => sourceRanges.length > 0, 'source ranges'),
  ];
}

/** What an operator would ask about. */
function oddities({ service, ports, choices, headless }: KnownService): readonly string[] {
  const isUnserved = headless ? headless.used === 0 : ports.length > 0 && choices.every(({ hasAny }) => !hasAny);
  const lacksLocal = ports.some((port, i) => {
    const choice = choices[i];
    return usesLocalEndpoints(port) && choice?.hasAny && choice.local.length === 0;
  });
  const isPending =
    service.type === 'LoadBalancer' &&
    ports.length > 0 &&
    ports.every(({ loadBalancerIPs }) => loadBalancerIPs.length === 0);
  return [
    ...(service.skipped === 'no-cluster-ip' ? ['no cluster IP'] : []),
    ...(isUnserved ? [service.endpointsGiven === false ? 'endpoints not given' : 'no endpoints'] : []),
    ...(lacksLocal ? ['none on this node'] : []),
    ...(isPending ? ['no load balancer address'] : []),
  ];
}

/** How many endpoints a node uses of all there are. */
interface EndpointCount {
  readonly used: number;
  readonly total: number;
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
  /** Absent if it cannot have any. */
  readonly endpoints?: EndpointCount;
  /** What kpc chose of all this, as the input lacks it. */
  readonly assumed?: Omit<AssignedService, 'service'>;
}

/** The rows of the table as data: numbers are numbers, and lists are lists. */
export function summarizeServices(view: Pick<View, 'services'>): readonly ServiceSummary[] {
  return eachService(view).map(({ service, ports, choices, headless, assumed }) => {
    // All ports and families together, an address and port once.
    const labels = (endpoints: ServicePort['endpoints']) => endpoints.map(({ label }) => label);
    const used = new Set(choices.flatMap(({ reachable }) => labels(reachable))).size;
    const total = new Set(ports.flatMap(({ endpoints }) => labels(endpoints))).size;
    const count = ports.length > 0 ? { used, total } : headless;
    return {
      service: `${service.namespace}/${service.name}`,
      type: service.type,
      ...(service.skipped === undefined ? {} : { skipped: service.skipped }),
      clusterIPs: service.skipped === undefined ? service.clusterIPs : [],
      ...(service.externalName === undefined ? {} : { externalName: service.externalName }),
      ports: service.ports.map(({ name, port, protocol, nodePort }) => {
        return { name, port, protocol, ...(nodePort === 0 ? {} : { nodePort }) };
      }),
      ...(count ? { endpoints: count } : {}),
      ...(assumed ? { assumed: withoutName(assumed) } : {}),
    };
  });
}

/** The values alone, for where the Service is named already. */
export function withoutName({ service: _, ...values }: AssignedService): Omit<AssignedService, 'service'> {
  return values;
}

type KnownService = ReturnType<typeof eachService>[number];

/** The Services in the cluster's order, with the endpoints that the node chooses of each port. */
function eachService({ services: { cluster, node, assumed } }: Pick<View, 'services'>) {
  const byService = groupBy(cluster.servicePorts, ({ namespace, service }) => `${namespace}/${service}`);
  const chosen = new Map(assumed.services.map((each) => [each.service, each]));
  return cluster.services.map((service) => {
    const { namespace, name, skipped, headlessEndpoints } = service;
    const ports = byService.get(`${namespace}/${name}`) ?? [];
    // Those that the name of a headless Service resolves to.
    const used = headlessEndpoints.filter(({ ready }) => ready).length;
    return {
      service,
      ports,
      choices: ports.map((port) => chooseEndpoints(port, node)),
      headless: skipped === 'headless' ? { used, total: headlessEndpoints.length } : undefined,
      assumed: chosen.get(`${namespace}/${name}`),
    };
  });
}

/** One row for each Service port that a dump shows. */
export function rowsOfDump(ports: readonly ShownPort[]): readonly ServiceRow[] {
  return ports.map((port) => ({
    service: port.name,
    type: kindsOf(port),
    addresses: shownAddresses(port),
    ports: port.port === undefined ? '' : `${port.port}/${port.protocol}`,
    nodePorts: port.nodePort === undefined ? '' : `${port.nodePort}/${port.protocol}`,
    endpoints: port.endpoints === undefined ? '?' : String(port.endpoints.length),
    policies: '',
    notes: '',
  }));
}

/** A node port of IPVS mode has no addresses of its own: it is on the node's addresses of one family. */
function shownAddresses({ addresses, family, nodePort }: ShownPort): string {
  // Of a part of a table, the chains may be all that was printed.
  if (addresses.length === 0 && nodePort === undefined) return '?';
  if (addresses.length === 0) return family === 'ipv4' ? "the node's, IPv4" : "the node's, IPv6";
  return addresses.map(({ address }) => address).join(', ');
}

/**
 * The type that the state lets one see: a Service of type LoadBalancer without an address looks like a NodePort. In nftables mode
 * an address besides the cluster IP may be a load balancer's or an external IP.
 */
function kindsOf({ addresses, nodePort }: ShownPort): string {
  const has = (which: ShownPort['addresses'][number]['kind']) => addresses.some(({ kind }) => kind === which);
  if (has('load-balancer-ip')) return 'LoadBalancer';
  const orMore = has('cluster-ip') && has('unknown') ? ' or LoadBalancer' : '';
  if (nodePort !== undefined) return `NodePort${orMore}`;
  if (has('cluster-ip')) return `ClusterIP${orMore}`;
  return has('external-ip') ? 'external IP' : '';
}

/**
 * The rows in columns, up to so many, and how many there are more; `width` is that of a terminal.
 */
export function formatRows(
  rows: readonly ServiceRow[],
  limits: { readonly rows: number; readonly width?: number | undefined },
): string {
  const shown = rows.length <= limits.rows + 1 ? rows : rows.slice(0, limits.rows);
  const columns = (Object.keys(headings) as (keyof ServiceRow)[]).filter(
    (column) => !optionalColumns.has(column) || shown.some((row) => row[column] !== ''),
  );
  const cells = [headings, ...shown].map((row) => columns.map((column) => printable(row[column])));
  const wanted = columns.map((_, i) => cells.reduce((width, row) => Math.max(width, row[i]?.length ?? 0), 0));
  const { width } = limits;
  // What is not for a terminal is not cut, but a long cell is not to move all others.
  const widths =
    width === undefined
      ? wanted.map((each) => Math.min(60, each))
      : // Names of Services keep twice as much.
        fitColumns(
          columns.map((column, i) => ({ wanted: wanted[i] ?? 0, weight: column === 'service' ? 2 : 1 })),
          width,
        );
  const cut = (cell: string, i: number): string =>
    width === undefined ? cell : cutCell(cell, widths[i] ?? 0, columns[i] === 'service' ? 'end' : 'start');
  const lines = cells.map((row) =>
    row
      .map((cell, i) => cut(cell, i).padEnd(widths[i] ?? 0))
      .join(columnGap)
      .trimEnd(),
  );
  const hidden = rows.length - shown.length;
  if (hidden > 0) lines.push(`… and ${formatCount(hidden)} more (--limit 0 shows all)`);
  const hasStars = shown.some((row) => `${row.addresses} ${row.nodePorts} ${row.endpoints}`.includes('*'));
  return [...lines, ...(hasStars ? ['* assumed'] : [])].map((text) => `${text}\n`).join('');
}
