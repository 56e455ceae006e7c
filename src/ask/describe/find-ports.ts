// Finds the Service ports that use an address or port number, with their roles, or explains why there are none.
import { skippingLabelOf } from '../../kube-proxy/skipped.ts';
import type { AddressOwner, NoSubject } from '../../base/findings/command-line.ts';
import { groupBy } from '../../cluster/grouping.ts';
import { portAddresses, serviceName, type PortAddress, type ShownPort, hasAddress } from '../../cluster/model.ts';
import { nodeAddresses } from '../../cluster/node-context.ts';
import { fullName } from '../../cluster/objects.ts';
import { possibleModes } from '../../snapshot/possible-modes.ts';
import type { CompiledSnapshot, DumpedSnapshot } from '../../snapshot/snapshot.ts';
import { findDumpListeners, type Coverage, workingTables } from '../../dumps/coverage.ts';
import type { TableName } from '../../kernel/iptables/iptables.ts';
import { type Address, type Family, isLoopback, joinHostPort, parseAddress } from '../../kernel/address.ts';
import { formatKey } from '../../kernel/nftables/format.ts';
import type { KernelState } from '../../kernel/state.ts';
import { serviceLink, findNodePortServers } from '../../kube-proxy/ipvs-objects.ts';
import { programs } from '../../kube-proxy/modes.ts';
import { isKubeProxyTable, nftSets } from '../../kube-proxy/nft-table.ts';
import { listensOn, type FindListeners } from '../../kube-proxy/node-port-listeners.ts';
import type { ItemRole } from './find-items.ts';
import type { Asked, AskedAddress } from './parse-asked.ts';

export type Because = PortRole | ItemRole;

export interface PortMatch<P extends ShownPort> {
  readonly port: P;
  readonly because: Because;
}

export interface AskedNode {
  isOwn(address: Address): boolean;
  readonly listeners: FindListeners;
}

export type PortRole =
  | { readonly kind: PortAddress['kind'] | 'node-port' | 'health-check-node-port' | 'name' | 'port' }
  | { readonly kind: 'endpoint'; readonly endpoint: string };

/** Reads the node's addresses from a dump. If the state shows no addresses of a family, any address of that family counts as the node's. */
export function nodeOfDump(state: KernelState, coverage: Pick<Coverage, 'virtualServers'>): AskedNode {
  const own: Readonly<Record<Family, Set<string>>> = { ipv4: new Set(), ipv6: new Set() };
  for (const { name, addresses } of state.links) {
    if (name !== serviceLink) for (const { address } of addresses) own[address.family].add(address.text);
  }
  const isNodePort = findNodePortServers(state);
  for (const server of state.virtualServers) if (isNodePort(server)) own[server.family].add(server.address.text);
  for (const { name, family, sets } of state.nftables) {
    if (!isKubeProxyTable(name)) continue;
    for (const { key } of sets.get(nftSets.nodePortIPs)?.elements ?? []) own[family].add(formatKey(key));
  }
  return {
    isOwn: ({ family, text }) => own[family].size === 0 || own[family].has(text),
    listeners: findDumpListeners(state, coverage),
  };
}

export function findPorts<P extends ShownPort>(
  ports: readonly P[],
  asked: Asked,
  node: AskedNode,
): readonly PortMatch<P>[] {
  const matching = (roleIn: (port: P) => PortRole | undefined): readonly PortMatch<P>[] =>
    ports.flatMap((port) => {
      const because = roleIn(port);
      return because ? [{ port, because }] : [];
    });
  const found = matching((port) => roleOf(port, asked, node));
  // A bare number is more likely a node port than a Service's own port.
  return found.length > 0 ? found : matching((port) => (hasOwnPort(port, asked) ? { kind: 'port' } : undefined));
}

function roleOf(port: ShownPort, asked: Asked, node: AskedNode): PortRole | undefined {
  const { text, address, number, names } = asked;
  if (port.label === text) return { kind: 'name' };
  const protocol = (address ?? number)?.protocol ?? port.protocol;
  if (number) {
    if (protocol === port.protocol && port.nodePort === number.port) return { kind: 'node-port' };
    return hasHealthCheck(port, number) ? { kind: 'health-check-node-port' } : undefined;
  }
  if (address)
    return protocol === port.protocol ? roleOfAddress(port, address, node) : healthCheckAt(port, address, node);
  // A port in IPVS mode may have no name, so its address serves as its name.
  const isNamed = names.some(
    (each) =>
      (each.name === port.service || each.name === serviceName(port)) &&
      (each.port === undefined || each.port === port.portName || each.port === String(port.port)),
  );
  return isNamed ? { kind: 'name' } : undefined;
}

function roleOfAddress(port: ShownPort, asked: AskedAddress, node: AskedNode): PortRole | undefined {
  const [endpoint] = endpointsAt(port, asked.address, asked.port);
  if (endpoint) return { kind: 'endpoint', endpoint: endpoint.label };
  if (listensAt(port, asked, node) === 'yes') return { kind: 'node-port' };
  if (asked.port !== undefined && asked.port !== port.port) return healthCheckAt(port, asked, node);
  const own = portAddresses(port).find(({ address }) => address.text === asked.address.text);
  return own && { kind: own.kind };
}

interface AskedSocket {
  readonly address: Address;
  readonly port?: number | undefined;
  readonly protocol?: string | undefined;
}

function hasHealthCheck({ healthCheckNodePort }: ShownPort, asked: Omit<AskedSocket, 'address'>): boolean {
  return asked.port !== undefined && healthCheckNodePort === asked.port && (asked.protocol ?? 'TCP') === 'TCP';
}

function healthCheckAt(port: ShownPort, asked: AskedAddress, node: AskedNode): PortRole | undefined {
  const isThere = asked.address.family === port.family && isOfNode(asked.address, node);
  return isThere && hasHealthCheck(port, asked) ? { kind: 'health-check-node-port' } : undefined;
}

/** Every node has loopback addresses, even if none of its addresses are known. */
function isOfNode(address: Address, node: AskedNode): boolean {
  return isLoopback(address) || node.isOwn(address);
}

function hasOwnPort({ port, protocol }: ShownPort, { number }: Asked): boolean {
  return number !== undefined && number.port === port && !number.isOfNode && (number.protocol ?? protocol) === protocol;
}

/** Finds the endpoints at an address. Endpoints in dumps, and of Services without ports, may have an address but no port. */
function endpointsAt({ endpoints = [] }: ShownPort, { text }: Address, port: number | undefined) {
  return endpoints.filter(
    (each) => each.address?.text === text && (port === undefined || each.port === undefined || each.port === port),
  );
}

/** Reports whether a node port listens at an address. `deaf`: the address is the node's, but node ports do not listen there. */
function listensAt(port: ShownPort, asked: AskedAddress, node: AskedNode): 'yes' | 'deaf' | 'no' {
  const { nodePort, family, protocol } = port;
  if (asked.port === undefined || asked.port !== nodePort || asked.address.family !== family) return 'no';
  if (!isOfNode(asked.address, node) || (asked.protocol ?? protocol) !== protocol) return 'no';
  return listensOn(node.listeners({ family, protocol, port: nodePort }), asked.address) === false ? 'deaf' : 'yes';
}

/**
 * Returns why no Service answers at an address: node ports do not listen on this address of the node, or the Services with this address
 * have other ports. Undefined for any other reason.
 */
export function explainUnanswered(
  ports: readonly ShownPort[],
  { address, protocol, port: number }: AskedAddress,
  node: AskedNode,
): NoSubject | undefined {
  if (number === undefined) return undefined;
  const deaf = ports.find((port) => listensAt(port, { address, protocol, port: number }, node) === 'deaf');
  if (deaf) {
    const isNamed = deaf.service !== undefined || portAddresses(deaf).length > 0;
    return {
      kind: 'deaf-address',
      socket: joinHostPort(address.text, number),
      port: number,
      owner: isNamed ? deaf.label : undefined,
      listeners: node.listeners({ family: deaf.family, protocol: deaf.protocol, port: number }),
    };
  }
  const owners = [...groupBy(ports, (port) => keyOfOwner(port, address)).values()].flatMap(
    (own): readonly AddressOwner[] => {
      const [first] = own;
      const sockets = own.flatMap((port) => {
        const numbers = hasAddress(port, address) ? [port] : endpointsAt(port, address, undefined);
        return numbers.map((each) => (each.port === undefined ? undefined : `${each.port}/${port.protocol}`));
      });
      if (sockets.length === 0) return [];
      const has = sockets.filter((each) => each !== undefined);
      const service = first.service === undefined ? undefined : serviceName(first);
      return [{ role: hasAddress(first, address) ? 'owner' : 'endpoint', service, ports: [...new Set(has)] }];
    },
  );
  const port = `${number}${protocol === undefined ? '' : `/${protocol}`}`;
  return owners.length === 0 ? undefined : { kind: 'other-ports', address: address.text, port, owners };
}

function keyOfOwner(port: ShownPort, address: Address): string {
  return port.service === undefined ? '' : `${serviceName(port)} ${hasAddress(port, address)}`;
}

export function findOnNodes<P extends ShownPort>(asked: AskedSocket, ports: readonly P[]): P | undefined {
  const { address, port, protocol } = asked;
  return ports.find(
    (each) =>
      port !== undefined &&
      each.family === address.family &&
      ((each.nodePort === port && (protocol ?? each.protocol).toUpperCase() === each.protocol) ||
        hasHealthCheck(each, { port, protocol: protocol?.toUpperCase() })),
  );
}

/** A Service port that has an address in manifests or in other rules of the dump, although no rule on the node leads there. */
export interface ClaimedAddress {
  readonly by: 'manifests' | 'rules';
  readonly label: string;
}

export function claimedAt({ address, port, protocol }: AskedSocket, dump: DumpedSnapshot): ClaimedAddress | undefined {
  const { family } = address;
  if (!showsTranslation(dump, family, ['nat'])) return undefined;
  // In nftables mode of 1.34 and 1.35, the masquerade rule names no port. It is no claim if other rules lead from the address.
  const isLed = dump.addresses.servicesAt(address.text).length > 0;
  const isAsked = (each: ShownPort): boolean =>
    (port === undefined || (each.port === undefined ? !isLed : each.port === port)) &&
    (protocol === undefined || protocol.toUpperCase() === each.protocol);
  const written: readonly ShownPort[] = dump.named?.addresses.servicesAt(address.text) ?? [];
  const asked = dump.claims.servicesAt(address.text).filter(isAsked);
  const named = showsTranslation(dump, family) ? asked.find((each) => written.includes(each)) : undefined;
  const claimed = named ?? asked.find((each) => !written.includes(each));
  return claimed && { by: named ? 'manifests' : 'rules', label: claimed.label };
}

/** Returns why kube-proxy programs nothing on this node for an address in the input. Undefined if kube-proxy programs something. */
export function whyUnprogrammed(
  asked: AskedSocket,
  { objects: { services, nodes }, cluster, node }: CompiledSnapshot,
): NoSubject | undefined {
  const { text } = asked.address;
  const isServed = cluster.servicePorts.some(({ clusterIP, externalIPs, loadBalancerIPs }) =>
    [clusterIP, ...externalIPs, ...loadBalancerIPs].some((each) => each.text === text),
  );
  if (isServed || node.hostAddresses.some((each) => each.text === text)) return undefined;
  const proxied = services.find(
    ({ object: { spec, ingress } }) =>
      spec.type === 'LoadBalancer' &&
      ingress.some(({ ip, ipMode }) => ipMode === 'Proxy' && ip !== undefined && parseAddress(ip)?.text === text),
  );
  if (proxied) return { kind: 'proxied-address', address: text, service: fullName(proxied.object.metadata) };
  for (const info of cluster.services.filter(({ clusterIPs }) => clusterIPs.includes(text))) {
    const label = skippingLabelOf(info);
    if (label) return { kind: 'ignored-address', address: text, service: fullName(info), label };
  }
  const owner = nodes.find(({ object }) => nodeAddresses(object).some((each) => each.text === text));
  const name = owner?.object.metadata.name;
  if (name === undefined || name === node.name) return undefined;
  const found = findOnNodes(asked, cluster.servicePorts);
  const kind = found?.nodePort === asked.port ? 'node-port' : 'health-check-node-port';
  const answers =
    found && asked.port !== undefined ? ({ kind, port: asked.port, label: found.label } as const) : undefined;
  return { kind: 'other-node', address: text, node: name, here: node.name, answers };
}

/**
 * Reports whether the dump shows all rules that take packets to Services. If so, a rule that it does not show does not exist. Rules that
 * lead to endpoints are only in table nat; rules for Services without endpoints are in table filter.
 */
export function showsTranslation(
  side: DumpedSnapshot,
  family: Family,
  tables: readonly TableName[] = workingTables,
): boolean {
  const { coverage, doubts } = side;
  if (doubts.some(({ kind }) => kind === 'cut-line')) return false;
  return possibleModes(side).every((mode) => {
    if (programs(mode, 'virtualServers')) return coverage.virtualServers;
    if (programs(mode, 'nftables')) return coverage.nftables.includes(family);
    return tables.every((table) => coverage.iptables[family].includes(table));
  });
}
