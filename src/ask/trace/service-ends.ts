import {
  hasProtocol,
  portAddresses,
  serviceName,
  type AddressIndex,
  type PortAddress,
  type ShownPort,
  type ServicePort,
} from '../../cluster/model.ts';
import { compareAddresses, loopbackAddresses, type Address } from '../../kernel/address.ts';
import { addressesOn } from '../../kernel/link/link.ts';
import { formatSocketAddress, type SocketAddress } from '../../kernel/ports-and-marks.ts';
import type { KnownFate, Packet } from '../../packet/packet.ts';
import { fullName } from '../../cluster/objects.ts';
import type { StalePorts } from '../../cluster/stale-slices.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { behavioursOf, concernsMode } from '../../kube-proxy/releases.ts';
import type { Gap, Knowledge } from '../../packet/knowledge.ts';
import { lacks, type Reason } from '../../packet/reason.ts';
import type { CompiledSnapshot, Snapshot } from '../../snapshot/snapshot.ts';
import type { Destination } from './question.ts';
import { stopOf } from './stop.ts';
import { chooseEndpoints } from '../../cluster/endpoint-choice.ts';
import { findLocalhostHandling } from '../../kube-proxy/node-port-listeners.ts';
import type { ProxyListener, Step } from '../../packet/step.ts';

/**
 * Returns the Service port that a destination belongs to. Node ports do not listen at a Service's address, unless a link of the node other
 * than kube-ipvs0 has that address (GetAllLocalAddressesExcept in pkg/proxy/ipvs).
 */
export function servicePortAt(
  { address, port, protocol }: Pick<Packet, 'port' | 'protocol'> & SocketAddress,
  { addresses, links, coverage, mode }: Pick<Snapshot, 'addresses' | 'links' | 'coverage' | 'mode'>,
  index: AddressIndex = addresses,
): ShownPort | undefined {
  const fits = (each: ShownPort): boolean => each.family === address.family && hasProtocol(each, protocol);
  const there = index.servicesAt(address.text);
  const own = there.find((each) => each.port === port && fits(each));
  if (own) return own;
  const isOwn = there.length === 0 || addressesOn(links).has(address.text);
  const mayBeOwn =
    !coverage.links &&
    !there.some((each) => addressKind(each, address) === 'cluster-ip') &&
    (!mode || modeFacts[mode].nodePorts === 'any-local-address');
  return !isOwn && !mayBeOwn ? undefined : index.nodePortsAt(port).find((each) => each.nodePort === port && fits(each));
}

export function addressKind(port: ShownPort, { text }: Address): PortAddress['kind'] | undefined {
  return portAddresses(port).find(({ address }) => address.text === text)?.kind;
}

/**
 * Finds missing input that decides how packets end:
 *
 * - a Service's endpoints: a packet that is refused because there are none may be delivered
 * - EndpointSlices that fit this side of a comparison, if those in the input fit only the other side
 * - rules or virtual servers: one that is not shown may match the packet
 * - ServiceCIDRs: a packet that no rule matches may be dropped, if its address is a cluster IP that no Service has
 */
export function doubtedEnds(side: Snapshot, gaps: readonly Gap[], stale: StalePorts): Knowledge['doubtOfEnd'] {
  const ungiven = ungivenEndpoints(side);
  const staleAt = (label = ''): Reason | undefined => {
    const port = stale.get(label);
    return port && lacks({ kind: 'fitting-slices', ...port });
  };
  const ranges = lacksServiceCIDRs(side) ? lacks({ kind: 'service-cidrs' }) : undefined;
  return ({ destination: address, port: number, protocol }, end) => {
    const packet = { address, port: number, protocol };
    const { verdict } = end;
    if (verdict === 'dropped' || verdict === 'refused') {
      const stop = ungiven.size + stale.size > 0 ? stopOf(end) : undefined;
      if (!stop || !('servicePort' in stop)) return undefined;
      return staleAt(stop.servicePort) ?? ungiven.get(stop.servicePort ?? '');
    }
    if (verdict === 'delivered' && stale.size > 0) return staleAt(servicePortAt(packet, side)?.label);
    if (verdict !== 'local' && verdict !== 'forwarded') return undefined;
    const port = servicePortAt(packet, side);
    // In iptables mode, no rule matches the node's own packets to an external address of a Service without endpoints.
    const open = port && addressKind(port, address) ? (staleAt(port.label) ?? ungiven.get(port.label)) : undefined;
    if (open) return open;
    const blind = gaps.find(
      ({ family, reason, concerns }) =>
        family === address.family &&
        lacksTranslation(reason) &&
        concerns?.({ destination: address, port: number, protocol }) !== false,
    );
    if (blind && port) return blind.reason;
    return verdict === 'forwarded' ? ranges : undefined;
  };
}

/**
 * Finds Services whose endpoints are missing from the input, keyed by the labels of their ports. In a cluster, a Service with a selector
 * always has an EndpointSlice, which may be empty.
 */
function ungivenEndpoints(side: Snapshot): ReadonlyMap<string, Reason> {
  if (side.kind === 'dump') return new Map();
  const ungiven = servicesWithoutEndpoints(side);
  const ports = ungiven.size === 0 ? [] : side.cluster.servicePorts;
  return new Map(
    ports.flatMap((port) => {
      const service = serviceName(port);
      return ungiven.has(service) ? [[port.label, lacks({ kind: 'endpoint-slices', service })] as const] : [];
    }),
  );
}

export function servicesWithoutEndpoints({ cluster }: Pick<CompiledSnapshot, 'cluster'>): ReadonlySet<string> {
  return new Set(cluster.services.flatMap((each) => (each.endpointsGiven === false ? [fullName(each)] : [])));
}

function lacksTranslation(reason: Reason): boolean {
  if (reason.kind !== 'missing-listing') return false;
  const { missing } = reason;
  switch (missing.kind) {
    case 'iptables':
      return missing.tables.includes('nat');
    case 'nftables':
    case 'virtual-servers':
      return true;
    default:
      return false;
  }
}

function lacksServiceCIDRs({ settings, objects }: Snapshot): boolean {
  if (!settings || !objects.unread.has('serviceCidrs')) return false;
  const { mode, release } = settings;
  return behavioursOf(release).has('service-cidrs') && concernsMode('service-cidrs', mode);
}

/**
 * Finds where kube-proxy itself listens for TCP node ports on localhost (localnodeportproxy). It listens only on 127.0.0.1 and ::1, and
 * connects from the node's address to a random endpoint. Under policy Local, the endpoint is on the node; without such an endpoint,
 * kube-proxy does not listen.
 */
export function localhostListeners(side: Snapshot): readonly ProxyListener[] {
  const handlingOf = findLocalhostHandling(side.state);
  const taken = side.ports.flatMap((shown) => {
    const { family, protocol, nodePort: port } = shown;
    if (protocol !== 'TCP' || port === undefined) return [];
    return handlingOf({ family, protocol, port }) === 'listens' ? [{ shown, protocol, port }] : [];
  });
  // Most nodes have no such listeners, so the endpoints are looked up only if there are some.
  if (taken.length === 0) return [];
  const endpointsOf = side.kind === 'dump' ? shownEndpoints : chosenEndpoints(side);
  return taken.flatMap(({ shown, protocol, port }): readonly ProxyListener[] => {
    const { family, label } = shown;
    const endpoints = endpointsOf(shown)?.toSorted(compareSockets);
    if (endpoints?.length === 0) return [];
    const origin = { servicePort: label, place: undefined };
    return [{ program: 'kube-proxy', protocol, address: loopbackAddresses[family], port, endpoints, origin }];
  });
}

function compareSockets(one: SocketAddress, other: SocketAddress): number {
  return compareAddresses(one.address, other.address) || one.port - other.port;
}

/** Returns a function that looks up the endpoints that kube-proxy connects to. Undefined for a Service whose endpoints the input lacks. */
function chosenEndpoints(side: CompiledSnapshot): (port: ShownPort) => readonly SocketAddress[] | undefined {
  const known = new Map<ShownPort, ServicePort>(side.cluster.servicePorts.map((port) => [port, port]));
  const ungiven = servicesWithoutEndpoints(side);
  return (shown) => {
    const port = known.get(shown);
    if (!port) return shownEndpoints(shown);
    if (ungiven.has(serviceName(port))) return undefined;
    const { cluster, local } = chooseEndpoints(port, side.node);
    return (port.externalPolicyLocal ? local : cluster).map(({ address, port: number }) => ({ address, port: number }));
  };
}

/**
 * Returns the endpoints that a kernel shows. A kernel shows the endpoints of both policies together, so the result is undefined if the
 * policies may differ.
 */
function shownEndpoints(port: ShownPort): readonly SocketAddress[] | undefined {
  if (port.externalPolicyLocal !== false || port.internalPolicyLocal !== false) return undefined;
  const shown = port.endpoints?.map(({ address, port: number }) => {
    return address && number !== undefined ? { address, port: number } : undefined;
  });
  return shown?.every((each) => each !== undefined) ? shown : undefined;
}

/** `by`: the Service port that the rules name. Undefined if the rules name the right port but lead to other endpoints. */
export interface OtherService {
  readonly asked: string;
  readonly by: string | undefined;
}

/**
 * Finds out whether a dump's rules send a packet to another Service than the one that has its destination in the manifests beside the dump.
 * The rules' names show this, or endpoints that the manifests' Service lacks. Such rules are older than a Service that reuses a cluster IP.
 */
export function otherServiceOf(
  { verdict, endpoints: reached, steps }: KnownFate,
  target: Destination,
  side: Snapshot,
): OtherService | undefined {
  const named = side.kind === 'dump' ? side.named : undefined;
  const at = named && servicePortAt(target, side, named.addresses);
  const written = at && named.servicePorts.find(({ label, family }) => label === at.label && family === at.family);
  if (!written || (target.label ?? written.label) !== written.label) return undefined;
  const { label: asked, endpoints = [] } = written;
  const labels = new Set(steps.flatMap((step) => ownerOf(step, side) ?? []));
  const ports = named.addresses.portsOf(serviceName(written));
  const isOwn = (label: string): boolean => ports.some((each) => each.label === label);
  const by = [...labels].find((label) => !isOwn(label));
  if (by !== undefined && ![...labels].some(isOwn)) return { asked, by };
  if (verdict !== 'delivered' || servicesWithoutEndpoints({ cluster: named }).has(serviceName(written)))
    return undefined;
  const isKnown = endpoints.every(({ status }) => !status?.assumed);
  const own = new Set(endpoints.map(formatSocketAddress));
  return isKnown && !reached.some((each) => own.has(formatSocketAddress(each))) ? { asked, by: undefined } : undefined;
}

function ownerOf(step: Step, { owners }: Snapshot): string | undefined {
  switch (step.kind) {
    case 'rule': {
      const { chain: name, origin } = step;
      const own =
        step.tool === 'iptables' ? owners.ofRule(step.rule, name) : owners.ofNftChain({ name, origin: undefined });
      return origin?.servicePort ?? own;
    }
    case 'virtual-server':
      return step.server.origin?.servicePort ?? owners.ofServer(step.server);
    case 'listener':
      return step.server.origin?.servicePort;
    default:
      return undefined;
  }
}
