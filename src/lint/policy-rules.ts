import { detectLocalTraffic } from '../cluster/local-traffic.ts';
import type { ServicePort } from '../cluster/model.ts';
import { admitsPods } from '../cluster/scheduling.ts';
import { planTraffic } from '../cluster/plan-traffic.ts';
import type { ProxySettings } from '../cluster/objects.ts';
import { diagnose } from '../diagnostics/diagnostic.ts';
import { type Family, familyNames } from '../kernel/family.ts';
import { isLoopback } from '../kernel/address.ts';
import { modeFacts } from '../kube-proxy/modes.ts';
import { unanswered, type Finding, type PacketClaim } from './finding.ts';
import type { LintedNode, LintedService, LintInput } from './lint-input.ts';

/** A port on the nodes where none of its endpoints runs, though others run some. */
interface Gap {
  readonly port: ServicePort;
  readonly nodes: readonly LintedNode[];
}

/** The first port of the Service that has such nodes, with all of them. */
function findGap(
  { name, knowsEndpoints }: LintedService,
  { nodes }: LintInput,
  lacks: (port: ServicePort, node: LintedNode) => boolean,
): Gap | undefined {
  if (!knowsEndpoints) return undefined;
  const found = nodes.flatMap((node) => {
    const port = node.portsOf(name).find((each) => lacks(each, node));
    return port ? [{ port, node }] : [];
  });
  const [first] = found;
  return first && { port: first.port, nodes: found.map(({ node }) => node) };
}

function namesOf({ nodes }: Gap, all: readonly LintedNode[]) {
  return { nodes: nodes.map(({ name }) => name), of: all.length };
}

/** internalTrafficPolicy Local, and nodes whose Pods get no endpoint. */
export function findInternalGaps(input: LintInput): readonly Finding[] {
  return input.services.flatMap((service): readonly Finding[] => {
    if (service.object.spec.internalTrafficPolicy !== 'Local') return [];
    const gap = findGap(service, input, (port, node) => isRefusedForLack(planTraffic(port, node.context).internal));
    const node = gap?.nodes[0];
    if (!gap || !node) return [];
    const { port } = gap;
    const areTainted = gap.nodes.every(({ object }) => object && !admitsPods(object, []));
    const details = {
      traffic: areTainted ? 'internal-tainted' : 'internal',
      service: service.name,
      ...namesOf(gap, input.nodes),
    } as const;
    return [
      {
        diagnostic: diagnose(
          'local-without-endpoint',
          details,
          service.source.place(['spec', 'internalTrafficPolicy']),
        ),
        service: service.name,
        packet: { ...socketOf(port), from: 'pod', to: port.clusterIP, node: node.name, ends: unanswered },
      },
    ];
  });
}

function isRefusedForLack({ refusal }: ReturnType<typeof planTraffic>['internal']): boolean {
  return refusal?.reason === 'no-local-endpoints';
}

export function socketOf({
  port,
  protocol,
}: Pick<ServicePort, 'port' | 'protocol'>): Pick<PacketClaim, 'port' | 'protocol'> {
  return { port, protocol };
}

/**
 * externalTrafficPolicy Local, and clients of a node port or an external IP that no load balancer keeps away from the
 * nodes without an endpoint.
 */
export function findExternalGaps(input: LintInput): readonly Finding[] {
  if (modeFacts[input.settings.mode].localWithoutEndpoints !== 'local-drops') return [];
  return input.services.flatMap((service): readonly Finding[] => {
    const { spec, ingress } = service.written;
    if (spec.externalTrafficPolicy !== 'Local' || service.skipped) return [];
    // Load balancers ask for the health of each node. Clients of external IPs do not.
    const isSteered = spec.type !== 'NodePort' && spec.externalIPs.length === 0;
    const place = service.source.place(['spec', 'externalTrafficPolicy']);
    const about = { service: service.name };
    const isEverywhere = service.selected.some(({ object }) => object.owner?.kind === 'DaemonSet');
    if (input.nodes.length === 0 || !service.knowsEndpoints) {
      if (spec.type !== 'NodePort' || isEverywhere) return [];
      return [{ ...about, diagnostic: diagnose('local-without-endpoint', { ...about, traffic: 'unsteered' }, place) }];
    }
    const isOpen = (port: ServicePort): boolean =>
      spec.type === 'NodePort' ? port.nodePort !== 0 : port.externalIPs.length > 0 || (isSteered && isUnplaced(port));
    const gap = findGap(
      service,
      input,
      (port, node) => isOpen(port) && isRefusedForLack(planTraffic(port, node.context).external),
    );
    const node = gap?.nodes[0];
    if (!gap || !node) return [];
    const way = wayFromOutside(gap.port, node, {
      isNodePort: spec.type === 'NodePort',
      isBalanced: ingress.length > 0,
    });
    const details = isUnplaced(gap.port)
      ? ({ traffic: 'unplaced', ...about, way: way.words } as const)
      : ({ traffic: 'external', ...about, way: way.words, ...namesOf(gap, input.nodes) } as const);
    return [{ ...about, diagnostic: diagnose('local-without-endpoint', details, place), packet: way.packet }];
  });
}

/** Whether its slices name no node, so that every node takes its endpoints for another's. */
function isUnplaced({ endpoints }: ServicePort): boolean {
  return endpoints.length > 0 && endpoints.every(({ status }) => (status.nodeName ?? '') === '');
}

/** How a client gets to a port from outside, in words, and by a packet if the node's address is known. */
function wayFromOutside(
  port: ServicePort,
  { name, context }: LintedNode,
  { isNodePort, isBalanced }: { readonly isNodePort: boolean; readonly isBalanced: boolean },
): { readonly words: string; readonly packet: PacketClaim | undefined } {
  const own = context.nodeIPs[port.family];
  const claim = { ...socketOf(port), from: 'external', node: name, ends: unanswered } as const;
  if (isNodePort) {
    const words = `node port ${port.nodePort}`;
    return { words, packet: isLoopback(own) ? undefined : { ...claim, to: own, port: port.nodePort } };
  }
  const [external] = port.externalIPs;
  // An address that kpc chose shows nothing.
  const address = external ?? (isBalanced ? port.loadBalancerIPs[0] : undefined);
  const words = external ? 'external IP' : 'load balancer address';
  return { words: `${words} ${address?.text ?? ''}`.trimEnd(), packet: address && { ...claim, to: address } };
}

/** externalTrafficPolicy Local where kube-proxy cannot recognise Pods, so that these are clients like any other. */
export function findUndetectedPods(input: LintInput): readonly Finding[] {
  const { namesMode, settings, loaded } = input;
  // Without a configuration, nothing is known of how kube-proxy recognises Pods.
  if (!namesMode || !loaded.configured) return [];
  if (modeFacts[settings.mode].localWithoutEndpoints !== 'local-drops') return [];
  return input.services.flatMap((service): readonly Finding[] => {
    const { spec, ingress } = service.written;
    if (spec.externalTrafficPolicy !== 'Local' || ingress.length + spec.externalIPs.length === 0) return [];
    const gap = findGap(service, input, (port, node) => {
      const isReached = port.loadBalancerIPs.length + port.externalIPs.length > 0;
      if (!isReached || detectLocalTraffic(node.settings, node.context, port.family)) return false;
      return isRefusedForLack(planTraffic(port, node.context).external);
    });
    const node = gap?.nodes[0];
    const to = gap && (gap.port.loadBalancerIPs[0] ?? gap.port.externalIPs[0]);
    if (!gap || !node || !to) return [];
    const lacks = lackOf(settings, gap.port.family);
    const details = { service: service.name, address: to.text, lacks, ...namesOf(gap, input.nodes) };
    return [
      {
        diagnostic: diagnose('undetected-pods', details, service.source.place(['spec', 'externalTrafficPolicy'])),
        service: service.name,
        packet: { ...socketOf(gap.port), from: 'pod', to, node: node.name, ends: unanswered },
      },
    ];
  });
}

/** Only a mode that needs networks can lack them. */
function lackOf({ detectLocal: { mode }, clusterCIDRs }: ProxySettings, family: Family): string {
  if (mode === 'NodeCIDR') return `its Node has no ${familyNames[family]} podCIDRs`;
  return clusterCIDRs.length === 0 ? 'clusterCIDR is not set' : `clusterCIDR has no ${familyNames[family]} network`;
}
