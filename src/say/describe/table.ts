import { fitRows, joinCells, formatCount, printable } from '../../base/printable.ts';
import { lines, type Block } from '../lines.ts';
import { withoutName } from '../../ask/describe/describe-services.ts';
import {
  listKnownServices,
  type ListedService,
  type Oddity,
  type UnusualPolicy,
} from '../../ask/describe/list-services.ts';
import { assignedTexts } from '../../cluster/assign-addresses.ts';
import { portAddresses, type Cluster, type PortAddress, type ShownPort } from '../../cluster/model.ts';
import { fullName } from '../../cluster/objects.ts';
import type { CompiledSnapshot } from '../../snapshot/snapshot.ts';
import { assumedNote } from '../port-facts.ts';
import { faultInShort } from '../way/lack.ts';

/** The columns of the table of all Services. A star marks a value that kpc assumed. */
const headings = {
  /** "namespace/name". For a dump, the name that the dump shows. */
  service: 'SERVICE',
  type: 'TYPE',
  /** The cluster IPs, then the load balancer IPs, then the external IPs. */
  addresses: 'ADDRESSES',
  /** The Service's ports, such as "80/TCP, 443/TCP". */
  ports: 'PORTS',
  nodePorts: 'NODE PORTS',
  /** The number of ready endpoints and of all endpoints, such as "2/3". "?" if the input does not give the endpoints. */
  endpoints: 'ENDPOINTS',
  /** The policies that differ from the default. */
  policies: 'POLICIES',
  /** Unusual facts, such as that the Service has no endpoints. */
  notes: 'NOTES',
} as const;

type ServiceRow = { readonly [Column in keyof typeof headings]: string };

/** The columns that are left out if no Service has a value for them. */
const optionalColumns: ReadonlySet<keyof ServiceRow> = new Set(['nodePorts', 'policies', 'notes']);

const policyWords: { readonly [P in UnusualPolicy]: string } = {
  'internal-local': 'internal Local',
  'external-local': 'external Local',
  'client-ip': 'ClientIP',
  'source-ranges': 'source ranges',
};

function oddityWords(oddity: Oddity): string {
  switch (oddity.kind) {
    case 'no-cluster-ip':
      return 'no cluster IP';
    case 'other-proxy':
      return 'left to another proxy';
    case 'headless-label':
      return 'ignored, labelled as headless';
    case 'endpoints-not-given':
      return 'endpoints not given';
    case 'no-endpoints': {
      const why = oddity.fault && faultInShort(oddity.fault);
      return `no endpoints${why === undefined ? '' : `: ${why}`}`;
    }
    case 'family-without-endpoints':
      return faultInShort(oddity.fault) ?? '';
    case 'none-on-node':
      return 'none on this node';
    case 'no-load-balancer-address':
      return 'no load balancer address';
  }
}

/** Returns one row for each Service, in the cluster's order. */
export function serviceRows(view: CompiledSnapshot): readonly ServiceRow[] {
  return listKnownServices(view).map((known) => {
    const { service, assumed, endpoints, policies, oddities } = known;
    const chosen = new Set(assumed ? assignedTexts(assumed) : []);
    const star = (text: string): string => (chosen.has(text) ? `${text}*` : text);
    const nodePorts = service.ports.flatMap(({ name, nodePort }) => {
      const mark = assumed && assignedTexts(assumed, name).includes(String(nodePort)) ? '*' : '';
      return nodePort === 0 ? [] : [`${nodePort}${mark}`];
    });
    return {
      service: fullName(service),
      type: service.type,
      addresses: summarizeAddresses(known).map(star).join(', '),
      ports: service.ports.map(({ port, protocol }) => `${port}/${protocol}`).join(', '),
      nodePorts: [...new Set(nodePorts)].join(', '),
      endpoints: endpointsWords(endpoints),
      policies: policies.map((policy) => policyWords[policy]).join(', '),
      notes: oddities.map(oddityWords).join(', '),
    };
  });
}

function endpointsWords(endpoints: ListedService['endpoints']): string {
  if (endpoints === 'not-given') return '?';
  return endpoints ? `${endpoints.ready}/${endpoints.total}${endpoints.assumed === undefined ? '' : '*'}` : '';
}

function summarizeAddresses({ service, clusterIPs, loadBalancerIPs, externalIPs }: ListedService): readonly string[] {
  switch (service.skipped) {
    case 'headless':
      return ['headless'];
    case 'external-name':
      return [service.externalName ?? ''];
    case 'no-cluster-ip':
      return ['none yet'];
    case 'other-proxy':
    case 'headless-label':
    case undefined:
      return [...new Set([...clusterIPs, ...loadBalancerIPs, ...externalIPs])];
  }
}

export type ServiceSummary = ReturnType<typeof summarizeServices>[number];

/** Returns the table's rows as data. Numbers and lists replace the texts. */
export function summarizeServices(view: CompiledSnapshot) {
  return listKnownServices(view).map((known) => {
    const { service, clusterIPs, loadBalancerIPs, externalIPs, endpoints, policies, oddities, assumed } = known;
    return {
      /** "namespace/name". */
      service: fullName(service),
      type: service.type,
      /** Why kube-proxy programs nothing for the Service. */
      skipped: service.skipped,
      clusterIPs,
      loadBalancerIPs,
      externalIPs,
      externalName: service.externalName,
      ports: service.ports.map(({ name, port, protocol, nodePort }) => {
        return { name, port, protocol, ...(nodePort === 0 ? {} : { nodePort }) };
      }),
      /** Undefined if the Service cannot have endpoints. */
      endpoints,
      policies: policies.map((policy) => policyWords[policy]),
      notes: oddities.map(oddityWords),
      /** Values that kpc chose because the input lacks them. */
      assumed: assumed && withoutName(assumed),
    };
  });
}

/** `named`: the Services in the manifests. These show the types of Services, which rules may not show. */
export function rowsOfDump(ports: readonly ShownPort[], named: Cluster | undefined): readonly ServiceRow[] {
  const types = new Map(named?.services.map((service) => [fullName(service), service.type]));
  return ports.map((port) => ({
    service: port.label,
    type: types.get(`${port.namespace}/${port.service}`) ?? kindsOf(port),
    addresses: shownAddresses(port),
    ports: port.port === undefined ? '' : `${port.port}/${port.protocol}`,
    nodePorts: port.nodePort ? `${port.nodePort}/${port.protocol}` : '',
    endpoints: port.endpoints === undefined ? '?' : String(port.endpoints.length),
    policies: '',
    notes: '',
  }));
}

/** Returns the addresses of a port. A node port in IPVS mode has none of its own: it listens at the node's addresses in one family. */
function shownAddresses(port: ShownPort): string {
  const addresses = portAddresses(port);
  if (addresses.length > 0) return addresses.map(({ address }) => address.text).join(', ');
  // If only part of a table was printed, the rules that name the addresses may be missing.
  if (!port.nodePort) return '?';
  return port.family === 'ipv4' ? "the node's, IPv4" : "the node's, IPv6";
}

/**
 * Returns the Service type that the state shows. A LoadBalancer without an address looks like a NodePort. In nftables mode, an address that
 * is not the cluster IP may be a load balancer IP or an external IP.
 */
function kindsOf(port: ShownPort): string {
  const addresses = portAddresses(port);
  const has = (which: PortAddress['kind']) => addresses.some(({ kind }) => kind === which);
  // Only a Service of type LoadBalancer has a health check node port.
  if (has('load-balancer-ip') || port.healthCheckNodePort) return 'LoadBalancer';
  const orMore = has('cluster-ip') && has('unknown') ? ' or LoadBalancer' : '';
  if (port.nodePort) return `NodePort${orMore}`;
  if (has('cluster-ip')) return `ClusterIP${orMore}`;
  return has('external-ip') ? 'external IP' : '';
}

export interface TableStyle {
  readonly rows: number;
  readonly width?: number | undefined;
}

/** Formats the rows in columns, and counts the rows that are left out. */
export function tableOfRows(rows: readonly ServiceRow[], { rows: limit, width }: TableStyle): Block {
  const shown = rows.length <= limit + 1 ? rows : rows.slice(0, limit);
  const columns = (Object.keys(headings) as (keyof ServiceRow)[]).filter(
    (column) => !optionalColumns.has(column) || shown.some((row) => row[column] !== ''),
  );
  const table = [headings, ...shown].map((row) => columns.map((column) => printable(row[column])));
  const service = columns.indexOf('service');
  const placeOf = (some: readonly (keyof ServiceRow)[]) =>
    some.map((each) => columns.indexOf(each)).filter((i) => i >= 0);
  const fitted = fitRows(table, {
    width,
    weights: { [service]: 2 },
    names: service,
    first: placeOf(['notes', 'policies']),
    lists: placeOf(['addresses', 'ports', 'nodePorts']),
  });
  const hidden = rows.length - shown.length;
  const hasAssumed = shown.some((row) => `${row.addresses} ${row.nodePorts} ${row.endpoints}`.includes('*'));
  return [
    ...lines('plain', 0, ...fitted.map(joinCells)),
    ...lines('plain', 0, hidden > 0 && `… and ${formatCount(hidden)} more (--limit 0 shows all)`),
    ...lines('plain', 0, hasAssumed && assumedNote),
  ];
}
