import { originOf, type ServiceAddress, type TrafficPath, type TrafficPlan } from '../../cluster/plan-traffic.ts';
import type { Element, ElementKey, Verdict } from '../../kernel/nftables/element.ts';
import { localhostRejection, maxNftComment, nftChains, nftSets } from '../../kube-proxy/nftables.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import { addressValue, portValue, protocolValues } from './rule-parts.ts';
import {
  type ElementSet,
  type PlacedElement,
  type ServiceContext,
  policyChainName,
  type ServiceChainNames,
} from './service-parts.ts';

/** The elements of a Service port in the sets and maps that all share. */
export function serviceElements(
  plan: TrafficPlan,
  names: ServiceChainNames,
  context: ServiceContext,
): readonly PlacedElement[] {
  const own = clusterIPElements(plan, names, context);
  addExternal(plan, names, context, own);
  addNodePort(plan, names, context, own);
  return context.behaviours.has('hairpin-set') && plan.hairpin.length > 0 ? hairpinElements(plan).concat(own) : own;
}

/** Endpoints on the node that could reach themselves: they would get an answer from their own address. */
function hairpinElements({ port, hairpin }: TrafficPlan): PlacedElement[] {
  return hairpin.map((endpoint) => {
    const address = addressValue(endpoint.address);
    const key = [address, address, protocolValues[port.protocol], portValue(endpoint.port)];
    return place(nftSets.hairpinConnections, { key, origin: originOf(port, endpoint.place) });
  });
}

/** Packets to the cluster IP go to its endpoints, or are refused. */
function clusterIPElements(plan: TrafficPlan, names: ServiceChainNames, context: ServiceContext): PlacedElement[] {
  const { internal, clusterIP } = plan;
  const key = serviceKey(clusterIP);
  return [
    place(nftSets.clusterIPs, { key: key.slice(0, 1), origin: clusterIP.origin }),
    internal.refusal
      ? refuse(nftSets.noEndpointServices, plan, internal, key, clusterIP, context)
      : send(nftSets.serviceIPs, policyChainName(names, internal), key, clusterIP),
  ];
}

/** The same of the other addresses. Without local endpoints, packets may be both sent on and, if that fails, refused. */
function addExternal(
  plan: TrafficPlan,
  names: ServiceChainNames,
  context: ServiceContext,
  into: PlacedElement[],
): void {
  const { hasEndpoints, external, externalIPs, loadBalancerIPs, firewall } = plan;
  const add = (address: ServiceAddress): void => {
    const key = serviceKey(address);
    if (hasEndpoints) into.push(send(nftSets.serviceIPs, names.external, key, address));
    if (external.refusal) into.push(refuse(nftSets.noEndpointServices, plan, external, key, address, context));
  };
  externalIPs.forEach(add);
  loadBalancerIPs.forEach(add);
  firewall?.guarded.forEach((address) => {
    into.push(send(nftSets.firewallIPs, names.firewall, serviceKey(address), address));
  });
}

/** And of the node port, which source ranges do not bind. */
function addNodePort(
  plan: TrafficPlan,
  names: ServiceChainNames,
  context: ServiceContext,
  into: PlacedElement[],
): void {
  const { hasEndpoints, external, nodePort } = plan;
  if (!nodePort) return;
  const key = [protocolValues[nodePort.protocol], portValue(nodePort.port)];
  if (hasEndpoints) into.push(send(nftSets.serviceNodePorts, names.external, key, nodePort));
  if (external.refusal) into.push(refuse(nftSets.noEndpointNodePorts, plan, external, key, nodePort, context));
  if (context.rejectedOnLocalhost.includes(nodePort.protocol)) {
    into.push(send(nftSets.localhostNodePortRejects, localhostRejection(nodePort.protocol).chain, key, nodePort));
  }
}

function serviceKey({ address, protocol, port }: ServiceAddress): ElementKey {
  return [addressValue(address), protocolValues[protocol], portValue(port)];
}

/** Sends packets to a chain. */
function send(
  set: ElementSet,
  chain: string,
  key: ElementKey,
  { origin }: Pick<ServiceAddress, 'origin'>,
): PlacedElement {
  return place(set, { key, value: { kind: 'goto', chain }, origin });
}

/** Turns packets away, with the name of the Service port beside. */
function refuse(
  set: ElementSet,
  { port }: TrafficPlan,
  { refusal }: TrafficPath,
  key: ElementKey,
  { origin }: Pick<ServiceAddress, 'origin'>,
  { behaviours }: ServiceContext,
): PlacedElement {
  const value = refusal?.answer === 'drop' ? dropped : rejected;
  return place(set, { key, value, comment: fitComment(port.label, behaviours), origin });
}

const dropped: Verdict = { kind: 'drop' };
const rejected: Verdict = { kind: 'goto', chain: nftChains.reject };

function place(set: ElementSet, element: Element): PlacedElement {
  return { set, element };
}

/** The label as a comment: cut where it is too long for nft, with dots to show it where kube-proxy does not cut it. It is ASCII. */
function fitComment(label: string, behaviours: Behaviours): string {
  if (label.length <= maxNftComment) return label;
  return behaviours.has('short-comments') ? label.slice(0, maxNftComment) : `${label.slice(0, maxNftComment - 3)}...`;
}
