import { fullName } from '../../cluster/objects.ts';
import { indexCluster } from '../../cluster/address-index.ts';
import {
  chooseEndpoints,
  explainEndpoints,
  explainUnboundHints,
  usesLocalEndpoints,
  type EndpointUse,
} from '../../cluster/endpoint-choice.ts';
import { groupBy, uniqueBy } from '../../cluster/grouping.ts';
import {
  heldClusterIPs,
  serviceName,
  type Endpoint,
  type NodeIdentity,
  type ServiceInfo,
  type ServicePort,
} from '../../cluster/model.ts';
import { zoneOf } from '../../cluster/node-context.ts';
import type { CompiledSnapshot, PortFault } from '../../snapshot/snapshot.ts';
import { faultsOfPort, lackOfEndpoints, targetPortOf } from '../../snapshot/faults.ts';
import { hostOf } from './parse-asked.ts';
import { conditionOf } from '../diff/service-changes.ts';
import { listKernelChanges } from '../changes/list-changes.ts';
import type { Owners } from '../../kube-proxy/owners.ts';
import { diffStates } from '../../kernel/state.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { joinHostPort, parseAddress } from '../../kernel/address.ts';
import { distinct } from '../../base/findings/finding.ts';
import type { AssignedService } from '../../cluster/assign-addresses.ts';
import type { DecompiledPort } from '../../snapshot/decompiled-port.ts';

export type ServiceDescription = ReturnType<typeof describeService>;

export type PortDescription = ServiceDescription['ports'][number];

export type PortInFamily = PortDescription['families'][number];

export type EndpointDescription = PortInFamily['endpoints'][number];

export function describeService(
  service: ServiceInfo,
  labels: ReadonlySet<string> | undefined,
  view: CompiledSnapshot,
  clusterDomain: string,
) {
  const { cluster, assumed } = view;
  const name = fullName(service);
  const own = cluster.servicePorts.filter((port) => serviceName(port) === name);
  const chosen = assumed.services.find((each) => each.service === name);
  return {
    service: name,
    type: service.type,
    skipped: service.skipped,
    /** The selector as written. Undefined if the input lacks the Service, or the Service has no selector. */
    selector: view.written.get(name)?.spec.selector,
    clusterIPs: heldClusterIPs(service),
    /** The values that kpc chose because the input lacks them. */
    assumed: chosen && withoutName(chosen),
    place: service.place?.locate(),
    ports: [...groupBy(own, ({ label }) => label)]
      .filter(([label]) => !labels || labels.has(label))
      .map(([label, ports]) => ({
        label,
        place: ports[0]?.places?.port.locate(),
        targetPort: ports[0] && targetPortOf(ports[0], view),
        problems: problemsOf(ports, view),
        families: ports.map((port) => describePort(port, service, view)),
        kernel: collectKernelItems(label, ports, view),
      })),
    dns: dnsRecords(service, clusterDomain),
    environment: environmentVariables(service),
  };
}

function problemsOf(ports: readonly ServicePort[], view: CompiledSnapshot): readonly PortFault[] | undefined {
  const problems = ports.flatMap((port) => {
    const why = chooseEndpoints(port, view.node).hasAny ? undefined : lackOfEndpoints(port, view);
    const ofSome = faultsOfPort(port, view).filter(({ code }) => code === 'undeclared-port' || code === 'no-node-fits');
    return [...(why === undefined ? [] : [why]), ...ofSome];
  });
  return problems.length === 0 ? undefined : distinct(problems);
}

export function withoutName({ service: _, ...values }: AssignedService): Omit<AssignedService, 'service'> {
  return values;
}

function describePort(port: ServicePort, service: ServiceInfo, view: CompiledSnapshot) {
  const seen = identitiesOf(port, view).map((node) => seePort(port, node, service, view));
  return {
    port,
    endpoints: port.endpoints.map((endpoint, i) => {
      const uses = seen.flatMap(({ endpoints }) => endpoints[i] ?? []);
      const cluster = useOnAll(
        uses.map((each) => each.cluster?.kind),
        'as-hinted',
      );
      const local = useOnAll(
        uses.map((each) => each.local?.kind),
        'on-its-node',
      );
      return describeEndpoint(endpoint, cluster, local);
    }),
    fallback: sharedBy(seen, (each) => each.fallback),
    unboundHints: sharedBy(seen, (each) => each.unboundHints),
    masquerade: view.shownPort(port.label, port.family)?.masquerade,
  };
}

/** Returns the node, if one is named. Otherwise returns one Node for each way in which Nodes may treat the Service port. */
function identitiesOf({ endpoints }: ServicePort, { node, anyOf }: CompiledSnapshot): readonly NodeIdentity[] {
  if (!anyOf) return [node];
  const named = new Set(endpoints.flatMap(({ status: { nodeName, nodeHints } }) => [nodeName, ...nodeHints]));
  const all = [...anyOf].map(([name, object]): NodeIdentity => ({ name, zone: zoneOf(object) }));
  return uniqueBy(all, ({ name, zone }) => (named.has(name) ? `node ${name}` : `zone ${zone}`));
}

function seePort(port: ServicePort, node: NodeIdentity, service: ServiceInfo, view: CompiledSnapshot) {
  const fallback = fallbackOf(port, service, node, view);
  const endpoints = explainEndpoints(port, node);
  return {
    endpoints: fallback === 'local-to-all' ? endpoints.map((use) => ({ ...use, local: use.cluster })) : endpoints,
    fallback,
    unboundHints: explainUnboundHints(port, node),
  };
}

type UseKind = NonNullable<EndpointUse['cluster']>['kind'];

/** Returns how nodes use an endpoint under a policy: `where` if only some nodes use it; undefined if the port lacks the policy. */
function useOnAll<Where extends string>(
  kinds: readonly (UseKind | undefined)[],
  where: Where,
): UseKind | Where | undefined {
  const isUsed = kinds.some((kind) => kind === 'ready' || kind === 'last-resort');
  if (isUsed && kinds.some((kind) => kind !== kinds[0])) return where;
  // Only the endpoint's own node shows why no node uses the endpoint.
  return kinds.find((kind) => kind !== 'other-node') ?? kinds[0];
}

function sharedBy<T, Fact>(seen: readonly T[], factOf: (each: T) => Fact | undefined): Fact | undefined {
  const facts = new Map(seen.map((each) => [JSON.stringify(factOf(each)), factOf(each)]));
  return facts.size === 1 ? [...facts.values()][0] : undefined;
}

function fallbackOf(
  port: ServicePort,
  service: ServiceInfo,
  node: NodeIdentity,
  { settings }: CompiledSnapshot,
): 'no-endpoints-given' | DecompiledPort['fallback'] {
  const choice = chooseEndpoints(port, node);
  if (!choice.hasAny) return service.endpointsGiven === false ? 'no-endpoints-given' : 'no-endpoints';
  if (!usesLocalEndpoints(port) || choice.local.length > 0) return undefined;
  return choice.cluster.length > 0 ? modeFacts[settings.mode].localWithoutEndpoints : 'local-drops';
}

function describeEndpoint(
  endpoint: Endpoint,
  cluster: UseKind | 'as-hinted' | undefined,
  local: UseKind | 'on-its-node' | undefined,
) {
  const { nodeName, zoneHints, nodeHints, assumed } = endpoint.status;
  return {
    endpoint: endpoint.label,
    node: nodeName,
    condition: conditionOf(endpoint),
    /** How the endpoint is used under policy Cluster, and under policy Local. Undefined if the port lacks that policy. */
    cluster,
    local,
    zoneHints: zoneHints.length > 0 ? zoneHints : undefined,
    nodeHints: nodeHints.length > 0 ? nodeHints : undefined,
    assumed: assumed ? true : undefined,
    place: endpoint.place?.locate(),
  };
}

export type KernelItem = ReturnType<typeof collectKernelItems>[number];

/**
 * Collects the kernel objects that these ports add to a node without Services. If several Service ports need an entry or address, the state
 * has it once, under the first port's name.
 */
function collectKernelItems(label: string, ports: readonly ServicePort[], { compile, owners }: CompiledSnapshot) {
  const [without, alone] = [[], ports].map((servicePorts) =>
    compile(indexCluster({ services: [], servicePorts, healthChecks: [], serviceCidrs: [] })),
  );
  if (!without || !alone) return [];
  // If two Service ports claim the same address and port, the node's state shows which of them has it.
  const holders: Owners = {
    ...owners,
    ofServer: (server) => owners.ofServer({ ...server, origin: undefined }),
    ofNftElement: (family, set, { value, key, ...element }) =>
      owners.ofNftElement(family, set, value ? { key } : { key, ...element }),
  };
  return listKernelChanges(diffStates(without, alone), { from: holders, to: holders }).flatMap((change) => {
    const { owner } = change;
    return owner === undefined ? [] : [{ change, takenBy: owner === label ? undefined : owner }];
  });
}

export interface DnsRecord {
  readonly name: string;
  readonly type: 'A' | 'AAAA' | 'SRV' | 'CNAME';
  readonly value: string;
}

/**
 * Returns the DNS records of a Service, as defined in DNS-based service discovery (version 1.1.0) and as CoreDNS serves them. A headless
 * Service has a record for each ready endpoint. The record's name is the endpoint's hostname, or else the endpoint's address with dashes.
 */
function dnsRecords(service: ServiceInfo, clusterDomain: string): readonly DnsRecord[] {
  const name = `${service.name}.${service.namespace}.svc.${clusterDomain}.`;
  const named = service.ports.filter((port) => port.name !== '');
  switch (service.skipped) {
    case 'external-name': {
      const value = service.externalName ?? '';
      return [{ name, type: 'CNAME', value: value.endsWith('.') ? value : `${value}.` }];
    }
    case 'headless': {
      const ready = service.headlessEndpoints.filter((endpoint) => endpoint.ready);
      const share = Math.max(1, Math.floor(100 / Math.max(1, ready.length)));
      const hosts = ready.map((endpoint) => `${hostOf(endpoint)}.${name}`);
      return [
        ...ready.map(({ address }) => addressRecord(name, address)),
        ...ready.map(({ address }, i) => addressRecord(hosts[i] ?? '', address)),
        // Only EndpointSlices show the number of a named target port, so the record has the Service port's number.
        ...named.flatMap((port) => {
          const number = typeof port.targetPort === 'number' ? port.targetPort : port.port;
          return hosts.map((host) => srvRecord(name, port, `${share} ${number} ${host}`));
        }),
      ];
    }
    case 'no-cluster-ip':
      return [];
    case 'other-proxy':
    case 'headless-label':
    case undefined:
      return [
        ...service.clusterIPs.map((address) => addressRecord(name, address)),
        ...named.map((port) => srvRecord(name, port, `100 ${port.port} ${name}`)),
      ];
  }
}

function addressRecord(name: string, address: string): DnsRecord {
  return { name, type: parseAddress(address)?.family === 'ipv6' ? 'AAAA' : 'A', value: address };
}

function srvRecord(name: string, port: ServiceInfo['ports'][number], rest: string): DnsRecord {
  return { name: `_${port.name}._${port.protocol.toLowerCase()}.${name}`, type: 'SRV', value: `0 ${rest}` };
}

/**
 * Returns the environment variables that containers in the Service's namespace get, in the kubelet's order (envvars.FromServices). A
 * Service without a cluster IP has none. Containers in all namespaces get the variables of default/kubernetes.
 */
function environmentVariables(service: ServiceInfo): readonly { readonly name: string; readonly value: string }[] {
  const [host] = heldClusterIPs(service);
  const [first] = service.ports;
  if (host === undefined || first === undefined) return [];
  const prefix = variableName(service.name);
  const url = ({ protocol, port }: typeof first) => `${protocol.toLowerCase()}://${joinHostPort(host, port)}`;
  const named = service.ports.filter(({ name }) => name !== '');
  const variables: readonly (readonly [name: string, value: string])[] = [
    ['SERVICE_HOST', host],
    ['SERVICE_PORT', String(first.port)],
    ...named.map(({ name, port }) => [`SERVICE_PORT_${variableName(name)}`, String(port)] as const),
    ['PORT', url(first)],
    ...service.ports.flatMap((port) => {
      const name = `PORT_${port.port}_${port.protocol}`;
      return [
        [name, url(port)],
        [`${name}_PROTO`, port.protocol.toLowerCase()],
        [`${name}_PORT`, String(port.port)],
        [`${name}_ADDR`, host],
      ] as const;
    }),
  ];
  return variables.map(([name, value]) => ({ name: `${prefix}_${name}`, value }));
}

function variableName(text: string): string {
  return text.replaceAll('-', '_').toUpperCase();
}
