import { sharesPort } from '../../../cluster/assign-addresses.ts';
import type { FieldPath } from '../../../cluster/objects.ts';
import { isDefaultCidr, serviceRanges } from '../../../cluster/service-ranges.ts';
import { contains, isLoopback, parseAddress } from '../../../kernel/address.ts';
import { isDeprecated } from '../../../kube-proxy/announced.ts';
import type { LintedService } from '../lint-input.ts';
import {
  type LintRule,
  type RuleFinding,
  claimedSocket,
  isServed,
  ofServices,
  outsideAddresses,
  toNodePort,
  unanswered,
} from '../rule.ts';

/** Shows which of two Service ports with the same address and port gets the packets. */
export const addressConflict: LintRule<'address-conflict'> = {
  show: ({ address, port, rival }, { nodes }, service) => {
    const claiming = service?.ports.find(({ label }) => label === rival);
    const [node] = nodes;
    const own = claiming && node?.node.nodeIPs[claiming.family];
    const to = address === undefined ? own : parseAddress(address);
    if (!claiming || !to || isLoopback(to)) return undefined;
    const { protocol } = claiming;
    return {
      from: 'external',
      to,
      port,
      protocol,
      node: node?.nodeName ?? '',
      ends: ['delivered', 'local', ...unanswered],
    };
  },
};

export const clusterIPEndpoint: LintRule<'cluster-ip-endpoint'> = {
  check: ({ services }) => {
    const holders = new Map(
      services.flatMap(({ name, written }) =>
        written.spec.clusterIPs.map((text) => [parseAddress(text)?.text ?? '', name] as const),
      ),
    );
    return services.flatMap(({ name, ports }) => {
      const held = ports.flatMap(({ endpoints }) => endpoints.filter(({ address }) => holders.has(address.text)));
      return [...new Map(held.map((each) => [each.address.text, each]))].map(([address, { place }]) => {
        return { details: { service: name, address, holder: holders.get(address) ?? '' }, place };
      });
    });
  },
};

export const externalIPs: LintRule<'external-ips'> = ofServices(
  ({ object, name, ports, source }, { loaded: { settings } }) => {
    const isProgrammed = object.spec.externalIPs.length > 0 && ports.some((port) => port.externalIPs.length > 0);
    if (!isProgrammed || !isDeprecated('external-ips', settings.release)) return undefined;
    return { details: { services: [name] }, place: source.place(['spec', 'externalIPs', 0]) };
  },
);

export const headlessAddresses: LintRule<'headless-addresses'> = ofServices((service, { nodes }) => {
  const { name, skipped, object } = service;
  const outside = outsideAddresses(service);
  const [first] = outside;
  if (skipped !== 'headless' || !first) return undefined;
  const [port] = object.spec.ports;
  const claim = { from: 'external', to: first.address, node: nodes[0]?.nodeName ?? '', ends: ['forwarded'] } as const;
  return {
    details: { service: name, addresses: outside.map(({ address }) => address.text) },
    place: first.place,
    packet: port && { ...claim, ...claimedSocket(port) },
  };
});

/** Shows that a packet from another node to a claimed node address never leaves the sending node. */
export const nodeAddress: LintRule<'node-address'> = {
  show: ({ address, node }, { nodes }) => {
    const to = parseAddress(address);
    const other = nodes.find(({ nodeName }) => nodeName !== node);
    // Any port that no Service uses would do. 10250 is the kubelet's port.
    return (
      to &&
      other && { from: 'node', to, port: 10250, protocol: 'TCP', node: other.nodeName, ends: ['local', 'refused'] }
    );
  },
};

const usualRange = { first: 30000, last: 32767 } as const;

export const nodePortRange: LintRule<'node-port-range'> = ofServices(({ written: { spec }, source }, { loaded }) => {
  const { nodePorts } = loaded.ranges;
  const { first, last } = nodePorts ?? usualRange;
  const check = (
    what: 'nodePort' | 'healthCheckNodePort',
    nodePort: number,
    path: FieldPath,
  ): readonly RuleFinding<'node-port-range'>[] => {
    if (nodePort === 0 || (nodePort >= first && nodePort <= last)) return [];
    const details = { what, nodePort, range: `${first}-${last}`, isUsual: nodePorts === undefined };
    return [{ details, place: source.place(path) }];
  };
  return [
    ...spec.ports.flatMap(({ nodePort }, i) => check('nodePort', nodePort, ['spec', 'ports', i, 'nodePort'])),
    ...check('healthCheckNodePort', spec.healthCheckNodePort, ['spec', 'healthCheckNodePort']),
  ];
});

/** Finds cluster IPs that the API server refuses because another Service has them, or because they are outside its ranges. */
export const refusedClusterIP: LintRule<'refused-cluster-ip'> = {
  check: ({ services, loaded }) => {
    const { ranges, inputs } = loaded;
    // If the API server's own ServiceCIDR is missing from the input, other ServiceCIDRs may be missing too.
    const areKnown =
      inputs.serviceCidrs.length === 0 || inputs.serviceCidrs.some(({ object }) => isDefaultCidr(object));
    const known = areKnown ? serviceRanges(inputs.serviceCidrs, ranges.clusterIPs).map(({ network }) => network) : [];
    const holders = new Map<string, LintedService>();
    return services.flatMap((service) =>
      service.written.spec.clusterIPs.flatMap((text, i): readonly RuleFinding<'refused-cluster-ip'>[] => {
        const address = parseAddress(text);
        if (!address) return [];
        const { name, source } = service;
        const place = source.place(i === 0 ? ['spec', 'clusterIP'] : ['spec', 'clusterIPs', i]);
        const about = { service: name, address: address.text };
        const holder = holders.get(address.text);
        holders.set(address.text, holder ?? service);
        // If the two Services share a port, address-conflict reports them.
        if (holder && !sharesPort(holder.object, service.object)) {
          return [{ details: { problem: 'taken', ...about, holder: holder.name }, place }];
        }
        const own = known.filter(({ family }) => family === address.family);
        if (own.length === 0 || own.some((network) => contains(network, address))) return [];
        return [
          { details: { problem: 'out-of-range', ...about, networks: own.map((network) => network.text) }, place },
        ];
      }),
    );
  },
};

/** Finds health check node ports that another Service uses too, either as a health check node port or as a node port. */
export const takenHealthCheckPort: LintRule<'taken-health-check-port'> = {
  check: (input) => {
    const all = input.services.flatMap(({ name, ports }) => ports.map((port) => ({ name, port })));
    const nodePorts = new Map(
      all.filter(({ port }) => port.protocol === 'TCP').map((each) => [each.port.nodePort, each]),
    );
    const checks = new Map<number, string>();
    return input.services.flatMap(({ name, ports, source }) => {
      const port = ports.find(({ healthCheckNodePort }) => healthCheckNodePort !== 0)?.healthCheckNodePort;
      if (port === undefined) return [];
      const nodePort = nodePorts.get(port);
      const holder = nodePort?.name ?? checks.get(port);
      if (!checks.has(port)) checks.set(port, name);
      if (holder === undefined) return [];
      const taken = nodePort ? 'as-node-port' : 'as-health-check-port';
      return [
        {
          details: { taken, service: name, port, holder },
          place: source.place(['spec', 'healthCheckNodePort']),
          // In iptables mode, packets to a node port without endpoints reach any program that listens on that port.
          packet: nodePort && isServed(nodePort.port) ? toNodePort(nodePort.port, input) : undefined,
        },
      ];
    });
  },
};

export const unservedAddress: LintRule<'unserved-address'> = ofServices((service, { nodes }) => {
  const { ports, name, written } = service;
  const [first] = ports;
  // A Service without a cluster IP gets its families from the cluster.
  if (!first || (written.spec.clusterIP === '' && written.spec.ipFamilies.length === 0)) return undefined;
  const families = new Set(ports.map(({ family }) => family));
  const node = nodes[0]?.nodeName ?? '';
  return outsideAddresses(service)
    .filter(({ address }) => !families.has(address.family))
    .map(({ address, place }) => ({
      details: { service: name, address: address.text, family: address.family },
      place,
      packet: { ...claimedSocket(first), from: 'external', to: address, node, ends: ['forwarded'] },
    }));
});
