import type { ServicePort } from '../../../../cluster/model.ts';
import { planTraffic } from '../../../../cluster/plan-traffic.ts';
import { admitsPods } from '../../../../cluster/slices/place-pods.ts';
import { isLoopback } from '../../../../kernel/address.ts';
import { modeFacts, programs } from '../../../../kube-proxy/modes.ts';
import { claimedSocket, unanswered, findLacks, isRefusedForLack, type RuleFinding, type LintRule } from '../../rule.ts';
import type { CompiledSnapshot } from '../../../../snapshot/snapshot.ts';
import type { LintedService, LintInput } from '../../lint-input.ts';

type UnservedPort = RuleFinding<'local-without-endpoint'>;

export const localWithoutEndpoint: LintRule<'local-without-endpoint'> = {
  check: (input) => {
    // A balancer on the node connects to endpoints from the node's address, so no endpoint sees the client's address.
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
 * Finds nodes without an endpoint under externalTrafficPolicy Local to which clients still send, at a node port or external IP, because no
 * load balancer keeps the clients away.
 */
function findExternalGaps(service: LintedService, input: LintInput): readonly UnservedPort[] {
  const { spec, ingress } = service.written;
  if (spec.externalTrafficPolicy !== 'Local' || service.skipped) return [];
  const { mode, ipvs } = input.loaded.settings;
  // Load balancers check each node's health. Clients of external IPs, and of addresses for which every node answers ARP, do not.
  const isAnnounced = programs(mode, 'links') && !ipvs.strictARP && ingress.length > 0;
  const isSteered = spec.type !== 'NodePort' && spec.externalIPs.length === 0 && !isAnnounced;
  const place = service.source.place(['spec', 'externalTrafficPolicy']);
  const about = { service: service.name };
  const isEverywhere = service.selected.some(({ object }) => object.owner?.kind === 'DaemonSet');
  if (input.nodes.length === 0 || !service.knowsEndpoints) {
    const isUnsteered = spec.type === 'NodePort' && !isEverywhere;
    return isUnsteered ? [{ details: { ...about, traffic: 'unsteered' }, place }] : [];
  }
  // IPVS mode sends the packet to endpoints on other nodes, but the answers do not come back. Slices without nodeName do not show where
  // endpoints run.
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

/** Reports whether the Service's slices name no node, so that no node treats the endpoints as its own. */
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
  // An address that kpc chose is no evidence.
  const address = external ?? (isBalanced ? port.loadBalancerIPs[0] : undefined);
  const packet = address && { ...claim, to: address };
  return { way: external ? 'externalIP' : 'loadBalancerIP', ...(address && { at: address.text }), packet } as const;
}
