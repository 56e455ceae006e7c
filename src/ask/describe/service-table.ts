import { fitRows, joinCells, formatCount, printable } from '../../base/printable.ts';
import { assignedTexts } from '../../cluster/assign-addresses.ts';
import {
  chooseEndpoints,
  isExternallyAccessible,
  usesLocalEndpoints,
  type EndpointChoice,
} from '../../cluster/endpoint-choice.ts';
import {
  portAddresses,
  type PortAddress,
  type ServiceInfo,
  type ServicePort,
  type ShownPort,
} from '../../cluster/model.ts';
import { fullName } from '../../cluster/objects.ts';
import { faultInShort, faultsOfPort } from '../../snapshot/faults.ts';
import { families } from '../../kernel/family.ts';
import { withoutName } from './describe-services.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';

/** Columns of the table of all Services. Values that kpc assumed have a star. */
const headings = {
  /** "namespace/name", or the name in a dump. */
  service: 'SERVICE',
  type: 'TYPE',
  /** Cluster IPs, then load balancer IPs, then external IPs. */
  addresses: 'ADDRESSES',
  /** "80/TCP, 443/TCP". */
  ports: 'PORTS',
  nodePorts: 'NODE PORTS',
  /** Ready of total: "2/3". */
  endpoints: 'ENDPOINTS',
  /** Policies other than the default. */
  policies: 'POLICIES',
  /** Facts that an operator would ask about, such as missing endpoints. */
  notes: 'NOTES',
} as const;

type ServiceRow = { readonly [Column in keyof typeof headings]: string };

/** Columns omitted if no Service has a value there. */
const optionalColumns: ReadonlySet<keyof ServiceRow> = new Set(['nodePorts', 'policies', 'notes']);

/** One row for each Service, in the cluster's order. */
export function serviceRows(view: CompiledSnapshot): readonly ServiceRow[] {
  return eachService(view).map((known) => {
    const { service, assumed, endpoints } = known;
    const chosen = new Set(assumed ? assignedTexts(assumed) : []);
    const star = (text: string): string => (chosen.has(text) ? `${text}*` : text);
    const nodePorts = service.ports.flatMap(({ nodePort }) => (nodePort === 0 ? [] : [String(nodePort)]));
    return {
      service: fullName(service),
      type: service.type,
      addresses: summarizeAddresses(known).map(star).join(', '),
      ports: service.ports.map(({ port, protocol }) => `${port}/${protocol}`).join(', '),
      nodePorts: [...new Set(nodePorts)].map(star).join(', '),
      endpoints: endpoints ? `${endpoints.ready}/${endpoints.total}${hasAssumed(known, view) ? '*' : ''}` : '',
      policies: summarizePolicies(known).join(', '),
      notes: oddities(known, view).join(', '),
    };
  });
}

function summarizeAddresses({ service, ports }: KnownService): readonly string[] {
  switch (service.skipped) {
    case 'headless':
      return ['headless'];
    case 'external-name':
      return [service.externalName ?? ''];
    case 'no-cluster-ip':
      return ['none yet'];
    case undefined: {
      const balanced = ports.flatMap(({ loadBalancerIPs }) => loadBalancerIPs);
      const outer = [...balanced, ...ports.flatMap(({ externalIPs }) => externalIPs)];
      return [...new Set([...service.clusterIPs, ...outer.map(({ text }) => text)])];
    }
  }
}

function hasAssumed({ service, ports }: KnownService, { assumed: { pods } }: CompiledSnapshot): boolean {
  return (
    service.headlessEndpoints.some(({ address }) => pods.has(address)) ||
    ports.some(({ endpoints }) => endpoints.some(({ status }) => status.assumed))
  );
}

/**
 * How many addresses its endpoints have, how many of these are ready, and how many the node uses; undefined if it cannot have any.
 * Addresses of two families belong to the same Pods.
 */
function countByAddress(
  { skipped, headlessEndpoints }: ServiceInfo,
  ports: readonly ServicePort[],
  choices: readonly EndpointChoice[],
) {
  if (skipped === 'headless') {
    const ready = headlessEndpoints.filter((each) => each.ready).length;
    return { used: ready, ready, total: headlessEndpoints.length };
  }
  if (ports.length === 0) return undefined;
  const counts = families.map((family) => {
    const distinct = (some: ServicePort['endpoints']): number =>
      new Set(some.flatMap(({ address }) => (address.family === family ? address.text : []))).size;
    const all = ports.flatMap(({ endpoints }) => endpoints);
    return {
      used: distinct(choices.flatMap(({ reachable }) => reachable)),
      ready: distinct(all.filter(({ status }) => status.ready)),
      total: distinct(all),
    };
  });
  return counts.reduce((a, b) => (b.total > a.total ? b : a));
}

function summarizePolicies({ ports }: KnownService): readonly string[] {
  const policies = ports.flatMap((port) => [
    ...(port.internalPolicyLocal ? ['internal Local'] : []),
    ...(port.externalPolicyLocal && isExternallyAccessible(port) ? ['external Local'] : []),
    ...(port.affinitySeconds > 0 ? ['ClientIP'] : []),
    ...(port.sourceRanges.length > 0 ? ['source ranges'] : []),
  ]);
  return [...new Set(policies)];
}

function oddities({ service, ports, choices, endpoints }: KnownService, view: CompiledSnapshot): readonly string[] {
  const isHeadless = service.skipped === 'headless';
  const isUnserved = isHeadless ? endpoints?.used === 0 : ports.length > 0 && choices.every(({ hasAny }) => !hasAny);
  const lacksLocal = ports.some((port, i) => {
    const choice = choices[i];
    return !view.anyOf && usesLocalEndpoints(port) && choice?.hasAny && choice.local.length === 0;
  });
  const isPending =
    service.type === 'LoadBalancer' &&
    ports.length > 0 &&
    ports.every(({ loadBalancerIPs }) => loadBalancerIPs.length === 0);
  return [
    ...(service.skipped === 'no-cluster-ip' ? ['no cluster IP'] : []),
    ...(isUnserved
      ? [
          service.endpointsGiven === false
            ? 'endpoints not given'
            : `no endpoints${lackOfEndpoints(service, ports, view)}`,
        ]
      : lackedFamily(service, view)),
    ...(lacksLocal ? ['none on this node'] : []),
    ...(isPending ? ['no load balancer address'] : []),
  ];
}

function lackedFamily(service: ServiceInfo, view: CompiledSnapshot): readonly string[] {
  const faults = view.faultsOf(fullName(service)).filter(({ code }) => code === 'family-without-endpoints');
  return faults.flatMap((fault) => faultInShort(fault) ?? []);
}

/** Why no port has an endpoint, in few words. */
function lackOfEndpoints(service: ServiceInfo, ports: readonly ServicePort[], view: CompiledSnapshot): string {
  const isHeadless = service.skipped === 'headless';
  const faults = isHeadless ? view.faultsOf(fullName(service)) : ports.flatMap((port) => faultsOfPort(port, view));
  const fault = faults.find(({ code }) => code !== 'family-without-endpoints');
  const words = fault && faultInShort(fault);
  return words === undefined ? '' : `: ${words}`;
}

export type ServiceSummary = ReturnType<typeof summarizeServices>[number];

/** The table's rows as data, with real numbers and lists. */
export function summarizeServices(view: CompiledSnapshot) {
  return eachService(view).map((known) => {
    const { service, endpoints, assumed } = known;
    return {
      /** "namespace/name". */
      service: fullName(service),
      type: service.type,
      /** Why kube-proxy programs nothing for it. */
      skipped: service.skipped,
      clusterIPs: service.skipped === undefined ? service.clusterIPs : [],
      externalName: service.externalName,
      ports: service.ports.map(({ name, port, protocol, nodePort }) => {
        return { name, port, protocol, ...(nodePort === 0 ? {} : { nodePort }) };
      }),
      endpoints,
      policies: summarizePolicies(known),
      notes: oddities(known, view),
      /** The values that kpc chose because the input lacks them. */
      assumed: assumed && withoutName(assumed),
    };
  });
}

type KnownService = ReturnType<typeof eachService>[number];

/** The Services in the cluster's order, with the endpoints that the node chooses for each port. */
function eachService({ cluster, node, assumed }: CompiledSnapshot) {
  const chosen = new Map(assumed.services.map((each) => [each.service, each]));
  return cluster.services.map((service) => {
    const name = fullName(service);
    const ports = cluster.addresses.portsOf(name);
    const choices = ports.map((port) => chooseEndpoints(port, node));
    const endpoints = countByAddress(service, ports, choices);
    return { service, ports, choices, endpoints, assumed: chosen.get(name) };
  });
}

export function rowsOfDump(ports: readonly ShownPort[]): readonly ServiceRow[] {
  return ports.map((port) => ({
    service: port.label,
    type: kindsOf(port),
    addresses: shownAddresses(port),
    ports: port.port === undefined ? '' : `${port.port}/${port.protocol}`,
    nodePorts: port.nodePort ? `${port.nodePort}/${port.protocol}` : '',
    endpoints: port.endpoints === undefined ? '?' : String(port.endpoints.length),
    policies: '',
    notes: '',
  }));
}

/** A node port in IPVS mode has no addresses of its own: it is on the node's addresses of one family. */
function shownAddresses(port: ShownPort): string {
  const addresses = portAddresses(port);
  if (addresses.length > 0) return addresses.map(({ address }) => address.text).join(', ');
  // In a part of a table, the chains may be all that was printed.
  if (!port.nodePort) return '?';
  return port.family === 'ipv4' ? "the node's, IPv4" : "the node's, IPv6";
}

/**
 * The type that the state shows: a Service of type LoadBalancer without an address looks like a NodePort. In nftables mode an
 * address besides the cluster IP may be a load balancer's or an external IP.
 */
function kindsOf(port: ShownPort): string {
  const addresses = portAddresses(port);
  const has = (which: PortAddress['kind']) => addresses.some(({ kind }) => kind === which);
  // Only a LoadBalancer has a health check node port.
  if (has('load-balancer-ip') || port.healthCheckNodePort) return 'LoadBalancer';
  const orMore = has('cluster-ip') && has('unknown') ? ' or LoadBalancer' : '';
  if (port.nodePort) return `NodePort${orMore}`;
  if (has('cluster-ip')) return `ClusterIP${orMore}`;
  return has('external-ip') ? 'external IP' : '';
}

/** Formats up to `rows` rows in columns, and a count of the rest. `width` is the terminal's. */
export function formatRows(
  rows: readonly ServiceRow[],
  { rows: limit, width }: { readonly rows: number; readonly width?: number | undefined },
): string {
  const shown = rows.length <= limit + 1 ? rows : rows.slice(0, limit);
  const columns = (Object.keys(headings) as (keyof ServiceRow)[]).filter(
    (column) => !optionalColumns.has(column) || shown.some((row) => row[column] !== ''),
  );
  const table = [headings, ...shown].map((row) => columns.map((column) => printable(row[column])));
  const service = columns.indexOf('service');
  const placeOf = (some: readonly (keyof ServiceRow)[]) =>
    some.map((each) => columns.indexOf(each)).filter((i) => i >= 0);
  const lines = fitRows(table, {
    width,
    weights: { [service]: 2 },
    names: service,
    first: placeOf(['notes', 'policies']),
    lists: placeOf(['addresses', 'ports', 'nodePorts']),
  }).map(joinCells);
  const hidden = rows.length - shown.length;
  if (hidden > 0) lines.push(`… and ${formatCount(hidden)} more (--limit 0 shows all)`);
  if (shown.some((row) => `${row.addresses} ${row.nodePorts} ${row.endpoints}`.includes('*'))) lines.push('* assumed');
  return lines.map((text) => `${text}\n`).join('');
}
