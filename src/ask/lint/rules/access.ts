import { groupBy } from '../../../cluster/grouping.ts';
import type { ServicePort } from '../../../cluster/model.ts';
import {
  type HostPort,
  type NetworkPolicy,
  type PolicyPort,
  type ProxySettings,
  fullName,
} from '../../../cluster/objects.ts';
import { detectLocalTraffic } from '../../../cluster/plan-masquerade.ts';
import { admitsNode, planTraffic } from '../../../cluster/plan-traffic.ts';
import { resolveTargetPort } from '../../../cluster/slices/make-slices.ts';
import { admitsPods } from '../../../cluster/slices/place-pods.ts';
import { nameOfSelected } from '../../../cluster/slices/slice-warnings.ts';
import { type Family, isLoopback, parseAddress } from '../../../kernel/address.ts';
import { modeFacts, programs } from '../../../kube-proxy/modes.ts';
import { behavioursOf } from '../../../kube-proxy/releases.ts';
import type { CompiledSnapshot } from '../../../snapshot/snapshot.ts';
import { allowsPort } from '../../trace/network-policies.ts';
import { selectsLabels } from '../../trace/scene.ts';
import { type LintInput, type LintedService, namesMode } from '../lint-input.ts';
import {
  type LintRule,
  type RuleFinding,
  admitsEveryone,
  claimedSocket,
  findLacks,
  findNodes,
  isRefusedForLack,
  ofRestricted,
  ofServices,
  toNodePort,
  unanswered,
} from '../rule.ts';

/** Finds Pods with host ports that bypass a Service, if the Service seems intended as the only access to these Pods. */
export const hostPort: LintRule<'host-port'> = ofServices(({ object: { spec }, name, selected, source }) => {
  const isRestricted = spec.type === 'LoadBalancer' && spec.loadBalancerSourceRanges.length > 0;
  if (spec.type !== 'ClusterIP' && !isRestricted) return undefined;
  const isTarget = (own: HostPort): boolean =>
    spec.ports.some(
      ({ targetPort, protocol }) => protocol === own.protocol && (targetPort === own.port || targetPort === own.name),
    );
  const open = selected.find(({ object }) => object.spec.hostPorts.some(isTarget));
  if (!open) return undefined;
  const ports = open.object.spec.hostPorts.filter(isTarget).map((own) => `${own.hostPort}/${own.protocol}`);
  return {
    details: {
      service: name,
      owner: nameOfSelected(open.object),
      ports: [...new Set(ports)],
      beside: isRestricted ? 'source-ranges' : 'cluster-ip',
    },
    place: source.place(['spec', 'selector']),
  };
});

type UnservedPort = RuleFinding<'local-without-endpoint'>;

export const localWithoutEndpoint: LintRule<'local-without-endpoint'> = {
  check: (input) => {
    // In a mode with a balancer on the node, endpoints always see the node's address and never the client's.
    const isKept = !modeFacts[input.loaded.settings.mode].kinds.has('proxyPorts');
    return [
      ...input.services.flatMap((service) => findInternalGaps(service, input)),
      ...(isKept ? input.services.flatMap((service) => findFewPods(service, input) ?? []) : []),
      ...(isKept ? input.services.flatMap((service) => findExternalGaps(service, input)) : []),
    ];
  },
};

function findInternalGaps(service: LintedService, input: LintInput): readonly UnservedPort[] {
  if (service.object.spec.internalTrafficPolicy !== 'Local') return [];
  const gaps = findLacks(service, input, (port, node) => isRefusedForLack(planTraffic(port, node.node).internal));
  return gaps.map(({ port, node, nodes, on }) => {
    const areTainted = nodes.every(({ nodeName }) => {
      const object = input.loaded.nodes.get(nodeName);
      return object && !admitsPods(object, []);
    });
    return {
      details: { traffic: areTainted ? 'internal-tainted' : 'internal', service: service.name, ...on },
      place: service.source.place(['spec', 'internalTrafficPolicy']),
      packet: { ...claimedSocket(port), from: 'pod', to: port.clusterIP, node: node.nodeName, ends: unanswered },
    };
  });
}

function findFewPods(
  { name, object, source, selected, selectedCount: pods, skipped, knowsEndpoints }: LintedService,
  { nodes }: LintInput,
): UnservedPort | undefined {
  if (object.spec.internalTrafficPolicy !== 'Local' || knowsEndpoints) return undefined;
  if (skipped || selected.length === 0 || pods === 0 || pods >= nodes.length) return undefined;
  const details = { traffic: 'internal-few', service: name, pods, among: nodes.length } as const;
  return { details, place: source.place(['spec', 'internalTrafficPolicy']) };
}

/**
 * Finds nodes without an endpoint for a Service with externalTrafficPolicy Local, if clients still send packets to these nodes. They do so
 * at a node port or external IP, where no load balancer keeps clients away.
 */
function findExternalGaps(service: LintedService, input: LintInput): readonly UnservedPort[] {
  const { spec, ingress } = service.written;
  if (spec.externalTrafficPolicy !== 'Local' || service.skipped) return [];
  const { mode, ipvs } = input.loaded.settings;
  // Load balancers check each node's health. Clients of external IPs do not, nor do clients of addresses for which every node answers ARP.
  const isAnnounced = programs(mode, 'links') && !ipvs.strictARP && ingress.length > 0;
  const isSteered = spec.type !== 'NodePort' && spec.externalIPs.length === 0 && !isAnnounced;
  const place = service.source.place(['spec', 'externalTrafficPolicy']);
  const about = { service: service.name };
  const isEverywhere = service.selected.some(({ object }) => object.owner?.kind === 'DaemonSet');
  if (input.nodes.length === 0 || !service.knowsEndpoints) {
    const isUnsteered = spec.type === 'NodePort' && !isEverywhere;
    return isUnsteered ? [{ details: { ...about, traffic: 'unsteered' }, place }] : [];
  }
  // IPVS mode sends such packets to endpoints on other nodes, but the answers do not come back. EndpointSlices without nodeName do not show
  // where endpoints run.
  const drops = modeFacts[mode].localWithoutEndpoints === 'local-drops';
  const isOpen = (port: ServicePort): boolean => {
    if (areAllUnplaced(port) && !drops) return false;
    if (spec.type === 'NodePort') return port.nodePort !== 0;
    return isSteered ? areAllUnplaced(port) : port.externalIPs.length > 0 || isAnnounced;
  };
  const gaps = findLacks(
    service,
    input,
    (port, node) => isOpen(port) && isRefusedForLack(planTraffic(port, node.node).external),
  );
  const kinds = { isNodePort: spec.type === 'NodePort', isBalanced: ingress.length > 0 };
  return gaps.map(({ port, node, on }) => {
    const { packet, ...way } = wayFromOutside(port, node, kinds);
    const details = areAllUnplaced(port)
      ? ({ traffic: 'unplaced', ...about, ...way } as const)
      : ({ traffic: 'external', ...about, ...way, ...on } as const);
    return { details, place, packet };
  });
}

/** Reports whether the Service's EndpointSlices name no node. No node then treats an endpoint as its own. */
function areAllUnplaced({ endpoints }: ServicePort): boolean {
  return endpoints.length > 0 && endpoints.every(({ status }) => (status.nodeName ?? '') === '');
}

function wayFromOutside(
  port: ServicePort,
  { node: { name, nodeIPs } }: CompiledSnapshot,
  { isNodePort, isBalanced }: { readonly isNodePort: boolean; readonly isBalanced: boolean },
) {
  const own = nodeIPs[port.family];
  const claim = { ...claimedSocket(port), from: 'external', node: name, ends: unanswered } as const;
  if (isNodePort) {
    const at = String(port.nodePort);
    return {
      way: 'nodePort' as const,
      at,
      packet: isLoopback(own) ? undefined : { ...claim, to: own, port: port.nodePort },
    };
  }
  const [external] = port.externalIPs;
  // An address that kpc chose is not evidence.
  const address = external ?? (isBalanced ? port.loadBalancerIPs[0] : undefined);
  const packet = address && { ...claim, to: address };
  return { way: external ? 'externalIP' : 'loadBalancerIP', ...(address && { at: address.text }), packet } as const;
}

export const nodeShutOut: LintRule<'node-shut-out'> = ofRestricted((service, input) => {
  const { name, written, source } = service;
  if (written.ingress.length === 0) return undefined;
  return findNodes(service, input, isOut).flatMap(({ port, node, on }) => {
    const [to] = port.loadBalancerIPs;
    if (!to) return [];
    return {
      details: { service: name, address: to.text, ...on },
      place: source.place(['spec', 'loadBalancerSourceRanges']),
      packet: { ...claimedSocket(port), from: 'node', to, node: node.nodeName, ends: unanswered } as const,
    };
  });
});

function isOut(port: ServicePort, { node }: CompiledSnapshot): boolean {
  const { firewall, hasEndpoints } = planTraffic(port, node);
  const own = node.nodeIPs[port.family];
  return firewall !== undefined && hasEndpoints && !isLoopback(own) && !admitsNode(firewall, own);
}

/** Finds node ports of a Service with source ranges. Source ranges do not apply to node ports. */
export const openNodePort: LintRule<'open-node-port'> = ofRestricted((service, input) => {
  const { name, written, ports, source } = service;
  const { spec, ingress } = written;
  const own = spec.ports.filter(({ nodePort }) => nodePort !== 0);
  if (admitsEveryone(service) || (own.length === 0 && !spec.allocateLoadBalancerNodePorts)) return undefined;
  // If a Service has a cluster IP and a load balancer address, it comes from a cluster, which would already have assigned any node ports.
  if (own.length === 0 && ingress.length > 0 && spec.clusterIP !== '') return undefined;
  const port = ports.find(({ nodePort }) => own.some((each) => each.nodePort === nodePort));
  return {
    details: { service: name, ports: own.map(({ nodePort, protocol }) => `${nodePort}/${protocol}`) },
    place: source.place(['spec', 'loadBalancerSourceRanges']),
    packet: port && toNodePort(port, input),
  };
});

/** Finds NetworkPolicies that allow a Service's port but not its target port. Finds nothing if another policy allows the target port. */
export const policyPort: LintRule<'policy-port'> = {
  check: ({ services, loaded: { inputs } }) => {
    const ofNamespaces = inputs.policies.filter(({ object }) => object.ingress);
    const byNamespace = groupBy(ofNamespaces, ({ object }) => object.metadata.namespace);
    return services.flatMap(({ object, name, selected: [pod] }) => {
      const all = byNamespace.get(object.metadata.namespace) ?? [];
      if (!pod || pod.object.spec.hostNetwork) return [];
      const labels = { labels: pod.object.metadata.labels, isWhole: true };
      const isolating = all.filter((policy) => selectsLabels(policy.object.subject, labels) === true);
      return object.spec.ports.flatMap((port): readonly RuleFinding<'policy-port'>[] => {
        const target = resolveTargetPort(port, pod.object.spec);
        if (target === undefined || target === port.port) return [];
        const allows = (policy: NetworkPolicy, number: number): boolean =>
          allowedPorts(policy).some((each) => {
            const asked = { port: number, protocol: port.protocol };
            return each === undefined || allowsPort(each, asked, pod.object.spec.ports) === true;
          });
        if (isolating.some((policy) => allows(policy.object, target))) return [];
        const meant = isolating.find((policy) => allows(policy.object, port.port));
        if (!meant) return [];
        const details = {
          service: name,
          policy: fullName(meant.object.metadata),
          owner: nameOfSelected(pod.object),
          port: port.port,
          target,
          protocol: port.protocol,
        };
        return [{ details, place: meant.source.place(['spec', 'ingress']) }];
      });
    });
  },
};

function allowedPorts({ ingress = [] }: NetworkPolicy): readonly (PolicyPort | undefined)[] {
  return ingress.flatMap(({ ports }): readonly (PolicyPort | undefined)[] =>
    ports.length === 0 ? [undefined] : ports,
  );
}

export const unboundSourceRanges: LintRule<'unbound-source-ranges'> = ofRestricted((service, { nodes, loaded }) => {
  if (admitsEveryone(service)) return undefined;
  const { written, name, ports, source } = service;
  const knowsIpMode = behavioursOf(loaded.settings.release, loaded.gates).has('load-balancer-ip-mode');
  return written.ingress.flatMap(({ ip, hostname, ipMode }, i): readonly RuleFinding<'unbound-source-ranges'>[] => {
    const place = source.place(['status', 'loadBalancer', 'ingress', i]);
    const about = { service: name };
    if (ip === undefined) {
      return hostname === undefined ? [] : [{ details: { ...about, problem: 'hostname', hostname }, place }];
    }
    const to = parseAddress(ip);
    const port = to && ports.find(({ family }) => family === to.family);
    if (!port) return [];
    const claim = { ...claimedSocket(port), from: 'external', to, node: nodes[0]?.nodeName ?? '' } as const;
    if (ipMode === 'Proxy' && knowsIpMode) {
      const details = { ...about, problem: 'ip-mode-proxy', address: ip } as const;
      return [{ details, place, packet: { ...claim, ends: ['forwarded'] } }];
    }
    if (port.sourceRanges.length > 0) return [];
    const details = { ...about, problem: 'other-family', address: ip, family: to.family } as const;
    return [{ details, place, packet: { ...claim, ends: ['delivered'] } }];
  });
});

/** Finds externalTrafficPolicy Local on nodes where kube-proxy cannot recognise Pods and so treats them as outside clients. */
export const undetectedPods: LintRule<'undetected-pods'> = ofServices((service, input) => {
  const { loaded } = input;
  const { settings } = loaded;
  // Only a configuration shows how kube-proxy recognises Pods.
  if (!namesMode(loaded) || !loaded.configured || !service.knowsEndpoints) return undefined;
  if (modeFacts[settings.mode].localWithoutEndpoints !== 'local-drops') return undefined;
  const { spec, ingress } = service.written;
  if (spec.externalTrafficPolicy !== 'Local' || ingress.length + spec.externalIPs.length === 0) return undefined;
  const gaps = findNodes(service, input, (port, node) => {
    const isReached = port.loadBalancerIPs.length + port.externalIPs.length > 0;
    if (!isReached || detectLocalTraffic(node.settings, node.node, port.family)) return false;
    return isRefusedForLack(planTraffic(port, node.node).external);
  });
  return gaps.flatMap(({ port, node, on }) => {
    const to = port.loadBalancerIPs[0] ?? port.externalIPs[0];
    if (!to) return [];
    return {
      details: { service: service.name, address: to.text, lacks: lackOfNetwork(settings, port.family), ...on },
      place: service.source.place(['spec', 'externalTrafficPolicy']),
      packet: { ...claimedSocket(port), from: 'pod', to, node: node.nodeName, ends: unanswered } as const,
    };
  });
});

/** Returns what the mode lacks: Pod networks of any family, or only those of this family. */
function lackOfNetwork({ detectLocal: { mode }, clusterCIDRs }: ProxySettings, family: Family) {
  if (mode === 'NodeCIDR') return 'podCIDRs';
  return clusterCIDRs.length === 0 ? 'clusterCIDR' : family;
}
