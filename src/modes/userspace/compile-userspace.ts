import { hashHex } from '#hash';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import type { Cluster, ServicePort, NodeContext } from '../../cluster/model.ts';
import type { ProxySettings } from '../../cluster/objects.ts';
import { type Address, familyNames, isLoopback, parseAddress, unspecifiedIPv4 } from '../../kernel/address.ts';
import { compareText } from '../../kernel/compare.ts';
import type { PortRange } from '../../kernel/ports-and-marks.ts';
import { modeFacts } from '../../kube-proxy/modes.ts';
import { planTraffic, type ServiceAddress, type TrafficPlan } from '../../cluster/plan-traffic.ts';
import { compareProxyPorts, type ProxyPort } from '../../kernel/balancer/balancer.ts';
import { formatRule, type Rule, type RuleArg, type Tables } from '../../kernel/iptables/iptables.ts';
import { matchModules } from '../../kernel/sysctls-and-modules.ts';
import type { Origin } from '../../kernel/place.ts';
import { emptyState, type KernelState } from '../../kernel/state.ts';
import { baseChains } from '../../kube-proxy/chain-names.ts';
import { jumpChains, userspaceJumps } from '../../kube-proxy/chains.ts';
import { accept, chainsByName, comment, destinationPort, protocolArgs, toNode } from '../iptables/rule-parts.ts';

/**
 * The default range of proxy ports. It is above the usual node ports, and above Linux's ports for outgoing connections
 * (net.ipv4.ip_local_port_range).
 */
const usualRange: PortRange = { first: 61000, last: 65535 };

/** Reports whether userspace mode serves the port, which it does only for IPv4 with TCP or UDP. */
function isSupportedPort({ family, protocol }: Pick<ServicePort, 'family' | 'protocol'>): boolean {
  const { families, protocols } = modeFacts.userspace;
  return families.includes(family) && protocols.includes(protocol);
}

/**
 * Returns proxy ports by label. kube-proxy takes a random free port (port_allocator.go); kpc takes one derived from the name, or the next
 * free one.
 */
export function assignProxyPorts(
  { servicePorts }: Pick<Cluster, 'servicePorts'>,
  { first, last }: PortRange = usualRange,
): ReadonlyMap<string, number> {
  const labels = [...new Set(servicePorts.filter(isSupportedPort).map(({ label }) => label))].sort(compareText);
  const size = last - first + 1;
  // For each used offset, a later offset that may be free, so that a crowded range need not be searched from the start.
  const next = new Map<number, number>();
  const assigned = new Map<string, number>();
  for (const label of labels.slice(0, size)) {
    const wanted = Number.parseInt(hashHex(label).slice(0, 8), 16) % size;
    let offset = wanted;
    const passed: number[] = [];
    for (let hop = next.get(offset); hop !== undefined; hop = next.get(offset)) {
      passed.push(offset);
      offset = hop;
    }
    for (const each of [...passed, offset]) next.set(each, (offset + 1) % size);
    assigned.set(label, first + offset);
  }
  return assigned;
}

export function checkProxyPorts(
  { servicePorts }: Pick<Cluster, 'servicePorts'>,
  { portRange: { first, last } = usualRange, bindAddress }: ProxySettings,
): readonly Finding[] {
  const bind = parseAddress(bindAddress);
  const served = new Set(servicePorts.filter(isSupportedPort).map(({ label }) => label)).size;
  const left = servicePorts.filter((port) => !isSupportedPort(port));
  const labels = [
    ...new Set(
      left.map(({ label, protocol, family }) => `${label} (${family === 'ipv4' ? protocol : familyNames[family]})`),
    ),
  ];
  const size = last - first + 1;
  return [
    ...(bind && (isLoopback(bind) || bind.family !== 'ipv4')
      ? [diagnose('userspace', { problem: 'bind-address', flag: '--bind-address', address: bind.text })]
      : []),
    ...(served > size
      ? [diagnose('userspace', { problem: 'few-ports', flag: '--proxy-port-range', served, size })]
      : []),
    ...(labels.length > 0 ? [diagnose('userspace', { problem: 'unserved', labels }, left[0]?.places?.port)] : []),
  ];
}

/**
 * A Service port and its proxy port. The proxy port listens at `address`, or else at all addresses of the node. The node's own packets
 * always need one address (hostIP).
 */
interface Portal {
  readonly traffic: TrafficPlan;
  readonly proxyPort: number;
  readonly proxy: {
    readonly address: Address | undefined;
    readonly hostAddress: Address;
  };
}

/** kube-proxy's --udp-timeout, in seconds. */
const usualIdle = 0.25;

/** Makes the chains of userspace/proxier.go, with kpc's own proxy ports. Ignores policies, source ranges, hints and masquerading. */
export function compileUserspace(cluster: Cluster, node: NodeContext, settings: ProxySettings): KernelState {
  const proxyPorts = assignProxyPorts(cluster, settings.portRange);
  const proxy = { address: parseAddress(settings.bindAddress), hostAddress: node.nodeIPs.ipv4 };
  const portals = cluster.servicePorts.flatMap((port): readonly Portal[] => {
    const proxyPort = isSupportedPort(port) ? proxyPorts.get(port.label) : undefined;
    return proxyPort === undefined ? [] : [{ traffic: planTraffic(port, node), proxyPort, proxy }];
  });
  const tables = makeTables(portals);
  return {
    ...emptyState,
    iptables: { ipv4: tables },
    proxyPorts: portals.map((portal) => makeProxyPort(portal, settings)).sort(compareProxyPorts),
    modules: [...new Set([...modeFacts.userspace.modules, ...matchModules([tables])])],
  };
}

function makeTables(portals: readonly Portal[]): Tables {
  return {
    nat: chainsByName([
      ...jumpChains(userspaceJumps, 'nat'),
      { name: baseChains.portalsContainer, rules: portals.flatMap(containerRules) },
      { name: baseChains.portalsHost, rules: portals.flatMap(hostRules) },
      { name: baseChains.nodePortContainer, rules: nodePortRules(portals, containerTarget) },
      { name: baseChains.nodePortHost, rules: nodePortRules(portals, hostTarget) },
    ]),
    filter: chainsByName([
      ...jumpChains(userspaceJumps, 'filter'),
      { name: baseChains.nodePortNonLocal, rules: portals.flatMap(admitRules) },
    ]),
  };
}

/** Keeps equal rules once, like EnsureRule, for example if an address is listed twice. Rules of different Service ports are never equal. */
function onlyOnce(rules: readonly Rule[]): readonly Rule[] {
  const texts = rules.map(formatRule);
  return rules.filter((_, i) => texts.indexOf(texts[i] as string) === i);
}

/** Matches routed packets, but not packets that a bridge passes on to another port. */
const notBridged: RuleArg = { kind: 'physdev-is-in', negated: true };

/** openOnePortal, for Pods and other hosts, in PREROUTING. */
function containerRules(portal: Portal): readonly Rule[] {
  return portalRules(portal, containerTarget(portal), [notBridged, toNode]);
}

/** openOnePortal, for the node itself, in OUTPUT. Covers external IPs only if they are the node's own. */
function hostRules(portal: Portal): readonly Rule[] {
  return portalRules(portal, hostTarget(portal), [toNode]);
}

/** Returns the rules for a Service port's addresses. `ofExternal` has matches for external IPs. Each match makes a rule of its own. */
function portalRules(portal: Portal, target: RuleArg, ofExternal: readonly RuleArg[]): readonly Rule[] {
  const { clusterIP, externalIPs, loadBalancerIPs } = portal.traffic;
  const rule = (at: ServiceAddress, ...also: readonly RuleArg[]) =>
    capture(portal, at.port, at.origin, [toAddress(at), ...also], target);
  return onlyOnce([
    rule(clusterIP),
    ...externalIPs.flatMap((at) => ofExternal.map((also) => rule(at, also))),
    ...loadBalancerIPs.map((at) => rule(at)),
  ]);
}

function nodePortRules(portals: readonly Portal[], targetOf: (portal: Portal) => RuleArg): readonly Rule[] {
  return portals.flatMap((portal) => {
    const { nodePort } = portal.traffic;
    return nodePort ? [capture(portal, nodePort.port, nodePort.origin, [], targetOf(portal))] : [];
  });
}

/** filter: admits connections to the proxy ports of node ports, which a firewall on the node might refuse. */
function admitRules(portal: Portal): readonly Rule[] {
  const { nodePort } = portal.traffic;
  const isNew: RuleArg = { kind: 'other', words: ['-m', 'state', '--state', 'NEW'] };
  return nodePort ? [capture(portal, portal.proxyPort, nodePort.origin, [isNew], accept)] : [];
}

function capture(
  { traffic: { port } }: Portal,
  number: number,
  origin: Origin,
  matches: readonly RuleArg[],
  target: RuleArg,
): Rule {
  const [module, protocol] = protocolArgs[port.protocol];
  return { args: [comment(port.label), protocol, module, destinationPort(number), ...matches, target], origin };
}

function toAddress({ address }: ServiceAddress): RuleArg {
  return { kind: 'destination', range: address };
}

/** Redirects to the proxy port. REDIRECT sends the node's own packets to loopback, where they get no answer (iptablesHostPortalArgs). */
function containerTarget(portal: Portal): RuleArg {
  if (portal.proxy.address) return hostTarget(portal);
  const words = ['REDIRECT', '--to-ports', String(portal.proxyPort)];
  return { kind: 'jump', target: { kind: 'other', words } };
}

function hostTarget({ proxy, proxyPort }: Portal): RuleArg {
  const address = proxy.address ?? proxy.hostAddress;
  return { kind: 'jump', target: { kind: 'dnat', address, port: proxyPort } };
}

/** In this mode, kube-proxy reads Endpoints, which list every ready endpoint on any node. */
function makeProxyPort({ traffic: { port, clusterIP }, proxyPort, proxy }: Portal, settings: ProxySettings): ProxyPort {
  return {
    protocol: (port satisfies ServicePort).protocol === 'UDP' ? 'UDP' : 'TCP',
    address: proxy.address ?? unspecifiedIPv4,
    port: proxyPort,
    endpoints: port.endpoints
      .filter(({ status }) => status.ready)
      .map(({ address, port: number }) => ({ address, port: number })),
    affinity: port.affinitySeconds > 0,
    udpIdle: port.protocol === 'UDP' ? Math.round((settings.udpIdleTimeout ?? usualIdle) * 1000) : 0,
    origin: clusterIP.origin,
  };
}
