import { sharesPort } from '../cluster/assign-addresses.ts';
import type { FieldPath } from '../cluster/objects.ts';
import { isDefaultCidr, serviceRanges } from '../cluster/service-ranges.ts';
import type { PortAddress, ServicePort } from '../cluster/model.ts';
import { admitsNode, planTraffic } from '../cluster/plan-traffic.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import { contains, isLoopback, parseAddress, type Address } from '../kernel/address.ts';
import { isDeprecated } from '../kube-proxy/announced.ts';
import { behavioursOf } from '../kube-proxy/releases.ts';
import type { Place } from '../kernel/place.ts';
import { unanswered, type Finding, type PacketClaim } from './finding.ts';
import type { LintedNode, LintedService, LintInput } from './lint-input.ts';
import { socketOf } from './policy-rules.ts';

/** externalIPs, where the release warns of their end. */
export function findEndingAddresses({ services, settings }: LintInput): readonly Finding[] {
  if (!isDeprecated('external-ips', settings.release)) return [];
  return services.flatMap(({ object, name, ports, source }): readonly Finding[] => {
    if (!ports.some(({ externalIPs }) => externalIPs.length > 0) || object.spec.externalIPs.length === 0) return [];
    const place = source.place(['spec', 'externalIPs', 0]);
    return [{ diagnostic: diagnose('external-ips', { services: [name] }, place), service: name }];
  });
}

interface OutsideAddress {
  readonly address: Address;
  readonly kind: Exclude<PortAddress['kind'], 'unknown' | 'cluster-ip'>;
  readonly place: Place;
}

/** The external addresses that kube-proxy would program, of either family. */
function outsideAddresses({ written: { spec, ingress }, source }: LintedService): readonly OutsideAddress[] {
  const read = (text: string | undefined, kind: OutsideAddress['kind'], place: Place): readonly OutsideAddress[] => {
    const address = parseAddress(text ?? '');
    return address ? [{ address, kind, place }] : [];
  };
  return [
    ...spec.externalIPs.flatMap((text, i) => read(text, 'external-ip', source.place(['spec', 'externalIPs', i]))),
    ...ingress.flatMap(({ ip, ipMode }, i) =>
      ipMode === 'VIP'
        ? read(ip, 'load-balancer-ip', source.place(['status', 'loadBalancer', 'ingress', i, 'ip']))
        : [],
    ),
  ];
}

/** External addresses of a family in which the Service has no cluster IP. */
export function findUnservedAddresses(input: LintInput): readonly Finding[] {
  return input.services.flatMap((service): readonly Finding[] => {
    const { ports, name, written } = service;
    const [first] = ports;
    // Without a cluster IP, the cluster chooses the families.
    if (!first || (written.spec.clusterIP === '' && written.spec.ipFamilies.length === 0)) return [];
    const families = new Set(ports.map(({ family }) => family));
    return outsideAddresses(service).flatMap(({ address, place }): readonly Finding[] => {
      const { family, text } = address;
      if (families.has(family)) return [];
      const diagnostic = diagnose('unserved-address', { service: name, address: text, family }, place);
      const claim = { ...socketOf(first), from: 'external', to: address, node: input.nodes[0]?.name ?? '' } as const;
      return [{ diagnostic, service: name, packet: { ...claim, ends: ['forwarded'] } }];
    });
  });
}

/** External addresses of headless Services, which kube-proxy skips. */
export function findHeadlessAddresses({ services, nodes }: LintInput): readonly Finding[] {
  return services.flatMap((service): readonly Finding[] => {
    const { name, skipped, object } = service;
    const outside = outsideAddresses(service);
    const [first] = outside;
    if (skipped !== 'headless' || !first) return [];
    const addresses = outside.map(({ address }) => address.text);
    const diagnostic = diagnose('headless-addresses', { service: name, addresses }, first.place);
    const [port] = object.spec.ports;
    const claim = { from: 'external', to: first.address, node: nodes[0]?.name ?? '', ends: ['forwarded'] } as const;
    return [{ diagnostic, service: name, packet: port && { ...claim, ...socketOf(port) } }];
  });
}

/** Health check node ports that are also another Service's, or a node port. */
export function findTakenHealthChecks(input: LintInput): readonly Finding[] {
  const all = input.services.flatMap(({ name, ports }) => ports.map((port) => ({ name, port })));
  const nodePorts = new Map(
    all.filter(({ port }) => port.protocol === 'TCP').map((each) => [each.port.nodePort, each]),
  );
  const checks = new Map<number, string>();
  return input.services.flatMap(({ name, ports, source }): readonly Finding[] => {
    const port = ports.find(({ healthCheckNodePort }) => healthCheckNodePort !== 0)?.healthCheckNodePort;
    if (port === undefined) return [];
    const nodePort = nodePorts.get(port);
    const holder = nodePort?.name ?? checks.get(port);
    if (!checks.has(port)) checks.set(port, name);
    if (holder === undefined) return [];
    const taken = nodePort ? 'as-node-port' : 'as-health-check-port';
    const details = { taken, service: name, port, holder } as const;
    const diagnostic = diagnose('taken-health-check-port', details, source.place(['spec', 'healthCheckNodePort']));
    // In iptables mode, a node port without endpoints leaves the packets to what listens.
    const isServed = nodePort && planTraffic(nodePort.port, { name: '', zone: '' }).hasEndpoints;
    return [{ diagnostic, service: name, packet: isServed ? toNodePort(nodePort.port, input) : undefined }];
  });
}

/** A packet of a client to a node port, which it sends on; undefined if no node's address is known. */
function toNodePort(port: ServicePort, { nodes }: LintInput): PacketClaim | undefined {
  const node = nodes.find(({ context }) => !isLoopback(context.nodeIPs[port.family]));
  if (!node) return undefined;
  const to = node.context.nodeIPs[port.family];
  return { from: 'external', to, port: port.nodePort, protocol: port.protocol, node: node.name, ends: ['delivered'] };
}

/** Load balancers with source ranges. */
function restricted({ services }: LintInput): readonly LintedService[] {
  return services.filter(
    ({ object: { spec }, ports }) =>
      spec.type === 'LoadBalancer' && spec.loadBalancerSourceRanges.length > 0 && ports.length > 0,
  );
}

/** Whether the ranges let everyone in, so that nothing is restricted. */
function isOpen({ object: { spec } }: LintedService): boolean {
  return spec.loadBalancerSourceRanges.some((range) => /\/0+$/.test(range.trim()));
}

/** Node ports beside source ranges, which do not bind them. */
export function findOpenNodePorts(input: LintInput): readonly Finding[] {
  return restricted(input).flatMap((service): readonly Finding[] => {
    const { name, written, ports, source } = service;
    const { spec, ingress } = written;
    const own = spec.ports.filter(({ nodePort }) => nodePort !== 0);
    if (isOpen(service) || (own.length === 0 && !spec.allocateLoadBalancerNodePorts)) return [];
    // A Service with both addresses is one of a cluster, which has given all node ports that it gives.
    if (own.length === 0 && ingress.length > 0 && spec.clusterIP !== '') return [];
    const labels = own.map(({ nodePort, protocol }) => `${nodePort}/${protocol}`);
    const diagnostic = diagnose(
      'open-node-port',
      { service: name, ports: labels },
      source.place(['spec', 'loadBalancerSourceRanges']),
    );
    const port = ports.find(({ nodePort }) => own.some((each) => each.nodePort === nodePort));
    return [{ diagnostic, service: name, packet: port && toNodePort(port, input) }];
  });
}

/** Addresses of load balancers to which kube-proxy applies no source range. */
export function findUnboundRanges(input: LintInput): readonly Finding[] {
  const node = input.nodes[0]?.name ?? '';
  const { release } = input.settings;
  const knowsIpMode = behavioursOf(release, input.loaded.prepared.gates).has('load-balancer-ip-mode');
  return restricted(input).flatMap((service): readonly Finding[] => {
    if (isOpen(service)) return [];
    const { written, name, ports, source } = service;
    return written.ingress.flatMap(({ ip, hostname, ipMode }, i): readonly Finding[] => {
      const place = source.place(['status', 'loadBalancer', 'ingress', i]);
      const about = { service: name };
      if (ip === undefined) {
        if (hostname === undefined) return [];
        const details = { ...about, problem: 'hostname', hostname } as const;
        return [{ ...about, diagnostic: diagnose('unbound-source-ranges', details, place) }];
      }
      const to = parseAddress(ip);
      const port = to && ports.find(({ family }) => family === to.family);
      if (!port) return [];
      const claim = { ...socketOf(port), from: 'external', to, node } as const;
      if (ipMode === 'Proxy' && knowsIpMode) {
        const details = { ...about, problem: 'ip-mode-proxy', address: ip } as const;
        const packet = { ...claim, ends: ['forwarded'] } as const;
        return [{ ...about, diagnostic: diagnose('unbound-source-ranges', details, place), packet }];
      }
      if (port.sourceRanges.length > 0) return [];
      const details = { ...about, problem: 'other-family', address: ip, family: to.family } as const;
      const packet = { ...claim, ends: ['delivered'] } as const;
      return [{ ...about, diagnostic: diagnose('unbound-source-ranges', details, place), packet }];
    });
  });
}

/** Nodes that the source ranges of a load balancer leave out. */
export function findNodesShutOut(input: LintInput): readonly Finding[] {
  return restricted(input).flatMap((service): readonly Finding[] => {
    const { name, written, source } = service;
    if (written.ingress.length === 0) return [];
    const isOut = (port: ServicePort, { context }: LintedNode): boolean => {
      const { firewall, hasEndpoints } = planTraffic(port, context);
      const own = context.nodeIPs[port.family];
      return firewall !== undefined && hasEndpoints && !isLoopback(own) && !admitsNode(firewall, own);
    };
    const out = input.nodes.flatMap((node) => {
      const port = node.portsOf(name).find((each) => isOut(each, node));
      return port ? [{ node, port }] : [];
    });
    const [first] = out;
    const to = first?.port.loadBalancerIPs[0];
    if (!first || !to) return [];
    const nodes = { nodes: out.map(({ node }) => node.name), of: input.nodes.length };
    const place = source.place(['spec', 'loadBalancerSourceRanges']);
    const packet = { ...socketOf(first.port), from: 'node', to, node: first.node.name, ends: unanswered } as const;
    return [
      {
        diagnostic: diagnose('node-shut-out', { service: name, address: to.text, ...nodes }, place),
        service: name,
        packet,
      },
    ];
  });
}

/** What an API server takes, if nothing says otherwise. */
const usualRange = { first: 30000, last: 32767 } as const;

/** Node ports that the API server does not take. */
export function findStrangeNodePorts({ services, loaded }: LintInput): readonly Finding[] {
  const { nodePorts } = loaded.ranges;
  const { first, last } = nodePorts ?? usualRange;
  const range = `${first}-${last}`;
  return services.flatMap(({ written: { spec }, name, source }) => {
    const check = (what: 'node port' | 'health check node port', port: number, path: FieldPath): readonly Finding[] => {
      if (port === 0 || (port >= first && port <= last)) return [];
      const details = { what, nodePort: port, range, isUsual: nodePorts === undefined };
      return [{ diagnostic: diagnose('node-port-range', details, source.place(path)), service: name }];
    };
    return [
      ...spec.ports.flatMap(({ nodePort }, i) => check('node port', nodePort, ['spec', 'ports', i, 'nodePort'])),
      ...check('health check node port', spec.healthCheckNodePort, ['spec', 'healthCheckNodePort']),
    ];
  });
}

/** Cluster IPs that the API server does not give: of another Service, or outside of its ranges. */
export function findRefusedClusterIPs({ services, loaded }: LintInput): readonly Finding[] {
  const { ranges, inputs } = loaded;
  // Other ServiceCIDRs than the one that the API server makes say nothing about those that are not there.
  const areKnown = inputs.serviceCidrs.length === 0 || inputs.serviceCidrs.some(({ object }) => isDefaultCidr(object));
  const known = areKnown ? serviceRanges(inputs.serviceCidrs, ranges.clusterIPs).map(({ network }) => network) : [];
  const holders = new Map<string, LintedService>();
  return services.flatMap((service) =>
    service.written.spec.clusterIPs.flatMap((text, i): readonly Finding[] => {
      const address = parseAddress(text);
      if (!address) return [];
      const { name, source } = service;
      const place = source.place(i === 0 ? ['spec', 'clusterIP'] : ['spec', 'clusterIPs', i]);
      const about = { service: name, address: address.text };
      const holder = holders.get(address.text);
      holders.set(address.text, holder ?? service);
      // Where they share a port, address-conflict says so.
      if (holder && !sharesPort(holder.object, service.object)) {
        const details = { problem: 'taken', ...about, holder: holder.name } as const;
        return [{ diagnostic: diagnose('refused-cluster-ip', details, place), service: name }];
      }
      const own = known.filter(({ family }) => family === address.family);
      if (own.length === 0 || own.some((network) => contains(network, address))) return [];
      const details = { problem: 'out-of-range', ...about, networks: own.map((network) => network.text) } as const;
      return [{ diagnostic: diagnose('refused-cluster-ip', details, place), service: name }];
    }),
  );
}
