import type { Endpoint, ServicePort } from '../../cluster/model.ts';
import {
  originOf,
  type TrafficPlan,
  admittedSources,
  type Firewall,
  type ServiceAddress,
  type TrafficPath,
  type TrafficPolicy,
} from '../../cluster/plan-traffic.ts';
import type { NftChain, NftRule, NftSet, Value, Element, ElementKey, Expression } from '../../kernel/nftables/table.ts';
import type { RuleVerdict } from '../../kernel/ports-and-marks.ts';
import type { Origin } from '../../kernel/place.ts';
import type { Protocol } from '../../kernel/address.ts';
import type { MasqueradePlan } from '../../cluster/plan-masquerade.ts';
import { hashName } from '../../base/hash-name.ts';
import type { Behaviours } from '../../kube-proxy/releases.ts';
import {
  addressTypes,
  addressValue,
  excludes,
  drop,
  equalTo,
  familyFields,
  fromNode,
  fromPods,
  goto,
  inSet,
  l4proto,
  markForMasquerade,
  amongAll,
  masqueradedClients,
  matchField,
  portValue,
  protocolValues,
  nftRule,
} from './rule-parts.ts';
import { localhostRejection, maxNftComment, nftChains, nftPrefixes, nftSets } from '../../kube-proxy/nft-table.ts';

export interface ServiceContext {
  readonly masquerade: MasqueradePlan;
  readonly nodeIsAdmitted: boolean;
  readonly rejectedOnLocalhost: readonly Protocol[];
  readonly behaviours: Behaviours;
}

type ElementSet = Exclude<(typeof nftSets)[keyof typeof nftSets], typeof nftSets.nodePortIPs>;

export interface PlacedElement {
  readonly set: ElementSet;
  readonly element: Element;
}

export interface ServiceObjects {
  readonly chains: readonly NftChain[];
  readonly sets: readonly NftSet[];
  readonly elements: readonly PlacedElement[];
}

interface ChainedEndpoint extends EndpointNames {
  readonly endpoint: Endpoint;
}

/** The names of chains, whether in use or not. Chains that choose an endpoint are named by policy (nftPrefixes). */
type NftChainNames = { readonly [C in TrafficPolicy | 'external' | 'firewall']: string };

interface EndpointNames {
  readonly chain: string;
  readonly affinitySet: string;
}

const none: readonly never[] = [];

export function serviceObjects(plan: TrafficPlan, context: ServiceContext): ServiceObjects {
  const names = serviceChainNames(plan.port);
  const { affinitySeconds } = plan;
  const isSticky = affinitySeconds !== undefined;
  const chained =
    isSticky || !context.behaviours.has('direct-dnat')
      ? plan.reachable.map((endpoint) => ({ endpoint, ...endpointNames(plan.port, endpoint) }))
      : undefined;
  return {
    chains: serviceChains(plan, names, chained, context),
    sets: isSticky ? (chained ?? []).map((target) => affinitySet(plan, target, affinitySeconds)) : none,
    elements: serviceElements(plan, names, context),
  };
}

function serviceChains(
  plan: TrafficPlan,
  names: NftChainNames,
  chained: readonly ChainedEndpoint[] | undefined,
  context: ServiceContext,
): readonly NftChain[] {
  const { port, firewall, clusterEndpoints, localEndpoints } = plan;
  const origin = originOf(port, port.places?.port);
  const spread = (name: string, endpoints: readonly Endpoint[]): NftChain => {
    const first = name === names[plan.internal.policy] ? clusterMasqueradeRules(plan, context) : none;
    const last = spreadingRules(plan, endpoints, chained, context.behaviours);
    return { name, rules: first.length === 0 ? last : [...first, ...last], origin };
  };
  // Do not grow an array from empty, because it reserves room for sixteen items and most Service ports have one chain.
  const chains = clusterEndpoints.length > 0 ? [spread(names.Cluster, clusterEndpoints)] : [];
  if (localEndpoints.length > 0) chains.push(spread(names.Local, localEndpoints));
  if (plan.external.isUsed) chains.push(externalChain(plan, names, context, origin));
  if (firewall) chains.push(firewallChain(port, names, firewall, context, origin));
  if (chained) for (const target of chained) chains.push(endpointChain(plan, target, context));
  return chains;
}

/** external-: for packets to external addresses or the node port. Policy Local has a short cut for the node and its pods. */
function externalChain(
  { port, external }: TrafficPlan,
  names: NftChainNames,
  { masquerade, behaviours }: ServiceContext,
  origin: Origin,
): NftChain {
  const mark = markForMasquerade(masquerade, behaviours);
  const rules: NftRule[] = [];
  if (external.policy === 'Local') {
    const pods = masquerade.localTraffic;
    if (pods)
      rules.push(
        nftRule([fromPods(pods, familyFields[port.family]), goto(names.Cluster)], 'short-circuit pod traffic'),
      );
    // Masquerade the node's own packets. A load balancer address is often also on the node, and would otherwise be their source.
    rules.push(nftRule([fromNode, mark], 'masquerade local traffic'));
    rules.push(nftRule([fromNode, goto(names.Cluster)], 'short-circuit local traffic'));
  } else {
    rules.push(behaviours.has('inline-masquerade') ? nftRule([mark], 'masquerade') : nftRule([mark]));
  }
  if (!external.refusal) rules.push(nftRule([goto(names[external.policy])]));
  return { name: names.external, rules, origin };
}

function firewallChain(
  port: ServicePort,
  names: NftChainNames,
  firewall: Firewall,
  { nodeIsAdmitted }: ServiceContext,
  origin: Origin,
): NftChain {
  const values = admittedSources(firewall, nodeIsAdmitted).map(({ source }): Value =>
    'prefixLength' in source ? { kind: 'network', network: source } : addressValue(source),
  );
  const others = excludes(familyFields[port.family].source, amongAll(values));
  return { name: names.firewall, rules: [nftRule([others, drop])], origin };
}

/** Returns the first rules of the chain for internal traffic: masquerade packets from outside the cluster to the cluster IP. */
function clusterMasqueradeRules(
  { port, clusterIP }: TrafficPlan,
  { masquerade, behaviours }: ServiceContext,
): readonly NftRule[] {
  if (behaviours.has('shared-masquerade')) return [];
  const fields = familyFields[port.family];
  const clients = masqueradedClients(masquerade, fields);
  if (!clients) return [];
  const toAddress = matchField(fields.destination, equalTo(addressValue(clusterIP.address)));
  const toPort = behaviours.has('masquerade-by-address') ? [] : [matchPort(clusterIP)];
  return [nftRule([toAddress, ...toPort, ...clients, markForMasquerade(masquerade, behaviours)])];
}

function matchPort({ protocol, port }: ServiceAddress): Expression {
  return matchField({ name: `${protocol.toLowerCase()} dport` }, equalTo(portValue(port)));
}

/** service- and local-: spread packets over the endpoints of one policy with equal probability. */
function spreadingRules(
  plan: TrafficPlan,
  endpoints: readonly Endpoint[],
  chained: readonly ChainedEndpoint[] | undefined,
  behaviours: Behaviours,
): readonly NftRule[] {
  if (!chained) return [rewriteRule(plan.port, dnatToAny(endpoints, behaviours))];
  const wanted = endpoints.length === chained.length ? undefined : new Set(endpoints);
  const targets = wanted ? chained.filter(({ endpoint }) => wanted.has(endpoint)) : chained;
  return [...stickyRules(plan, targets), nftRule([{ kind: 'goto-random', chains: targets.map(({ chain }) => chain) }])];
}

function dnatToAny(endpoints: readonly Endpoint[], behaviours: Behaviours): Expression {
  const [only, ...others] = endpoints;
  return only && others.length === 0 && behaviours.has('single-endpoint-dnat')
    ? { kind: 'dnat', target: only }
    : { kind: 'dnat-random', targets: endpoints };
}

/** Sends a client to the endpoint whose set has the client. Other rules send a new client to any endpoint. */
function stickyRules({ port, affinitySeconds }: TrafficPlan, targets: readonly ChainedEndpoint[]): readonly NftRule[] {
  if (affinitySeconds === undefined) return [];
  const { source } = familyFields[port.family];
  return targets.map(({ chain, affinitySet: set }) => nftRule([matchField(source, inSet(set)), goto(chain)]));
}

function endpointChain(
  { port, affinitySeconds }: TrafficPlan,
  { endpoint, chain, affinitySet: set }: ChainedEndpoint,
  { masquerade, behaviours }: ServiceContext,
): NftChain {
  const { source } = familyFields[port.family];
  const rules: NftRule[] = [];
  if (!behaviours.has('hairpin-set')) {
    // Without this rule, an endpoint that reaches itself would get a packet from its own address.
    const fromItself = matchField(source, equalTo(addressValue(endpoint.address)));
    rules.push(nftRule([fromItself, markForMasquerade(masquerade, behaviours)]));
  }
  if (affinitySeconds !== undefined) {
    rules.push(nftRule([{ kind: 'write-set', operation: 'update', set, key: [source] }]));
  }
  rules.push(rewriteRule(port, { kind: 'dnat', target: endpoint }));
  return { name: chain, rules, origin: originOf(port, endpoint.place) };
}

/** nft accepts a port rewrite only after a match on the protocol. */
function rewriteRule(port: ServicePort, rewrite: Expression): NftRule {
  return nftRule([protocolMatches[port.protocol], rewrite]);
}

const protocolMatches = {
  TCP: matchField(l4proto, equalTo(protocolValues.TCP)),
  UDP: matchField(l4proto, equalTo(protocolValues.UDP)),
  SCTP: matchField(l4proto, equalTo(protocolValues.SCTP)),
};

function affinitySet(
  { port }: TrafficPlan,
  { endpoint, affinitySet: name }: ChainedEndpoint,
  timeoutSeconds: number | undefined,
): NftSet {
  return {
    kind: 'set',
    name,
    keyType: [addressTypes[port.family]],
    flags: ['dynamic', 'timeout'],
    timeoutSeconds,
    elements: [],
    origin: originOf(port, endpoint.place),
  };
}

function serviceElements(plan: TrafficPlan, names: NftChainNames, context: ServiceContext): readonly PlacedElement[] {
  const own = clusterIPElements(plan, names, context);
  addExternal(plan, names, context, own);
  addNodePort(plan, names, context, own);
  return context.behaviours.has('hairpin-set') && plan.hairpin.length > 0 ? hairpinElements(plan).concat(own) : own;
}

/** Lists endpoints that may connect to themselves. Without masquerading, such an endpoint would get a packet from its own address. */
function hairpinElements({ port, hairpin }: TrafficPlan): PlacedElement[] {
  return hairpin.map((endpoint) => {
    const address = addressValue(endpoint.address);
    const key = [address, address, protocolValues[port.protocol], portValue(endpoint.port)];
    return placeElement(nftSets.hairpinConnections, { key, origin: originOf(port, endpoint.place) });
  });
}

function clusterIPElements(plan: TrafficPlan, names: NftChainNames, context: ServiceContext): PlacedElement[] {
  const { internal, clusterIP } = plan;
  const key = serviceKey(clusterIP);
  return [
    placeElement(nftSets.clusterIPs, { key: key.slice(0, 1), origin: clusterIP.origin }),
    internal.refusal
      ? placeRefusal(nftSets.noEndpointServices, plan, internal, key, clusterIP, context)
      : send(nftSets.serviceIPs, names[internal.policy], key, clusterIP),
  ];
}

/** Under policy Local without local endpoints, an address may be in both maps: packets from the node and its pods pass, others do not. */
function addExternal(plan: TrafficPlan, names: NftChainNames, context: ServiceContext, into: PlacedElement[]): void {
  const { hasEndpoints, external, externalIPs, loadBalancerIPs, firewall } = plan;
  const add = (address: ServiceAddress): void => {
    const key = serviceKey(address);
    if (hasEndpoints) into.push(send(nftSets.serviceIPs, names.external, key, address));
    if (external.refusal) into.push(placeRefusal(nftSets.noEndpointServices, plan, external, key, address, context));
  };
  externalIPs.forEach(add);
  loadBalancerIPs.forEach(add);
  firewall?.guarded.forEach((address) => {
    into.push(send(nftSets.firewallIPs, names.firewall, serviceKey(address), address));
  });
}

function addNodePort(plan: TrafficPlan, names: NftChainNames, context: ServiceContext, into: PlacedElement[]): void {
  const { hasEndpoints, external, nodePort } = plan;
  if (!nodePort) return;
  const key = [protocolValues[nodePort.protocol], portValue(nodePort.port)];
  if (hasEndpoints) into.push(send(nftSets.serviceNodePorts, names.external, key, nodePort));
  if (external.refusal) into.push(placeRefusal(nftSets.noEndpointNodePorts, plan, external, key, nodePort, context));
  if (context.rejectedOnLocalhost.includes(nodePort.protocol)) {
    into.push(send(nftSets.localhostNodePortRejects, localhostRejection(nodePort.protocol).chain, key, nodePort));
  }
}

function serviceKey({ address, protocol, port }: ServiceAddress): ElementKey {
  return [addressValue(address), protocolValues[protocol], portValue(port)];
}

function send(
  set: ElementSet,
  chain: string,
  key: ElementKey,
  { origin }: Pick<ServiceAddress, 'origin'>,
): PlacedElement {
  return placeElement(set, { key, value: { kind: 'goto', chain }, origin });
}

function placeRefusal(
  set: ElementSet,
  { port }: TrafficPlan,
  { refusal }: TrafficPath,
  key: ElementKey,
  { origin }: Pick<ServiceAddress, 'origin'>,
  { behaviours }: ServiceContext,
): PlacedElement {
  const value = refusal?.answer === 'drop' ? dropped : rejected;
  return placeElement(set, { key, value, comment: fitComment(port.label, behaviours), origin });
}

const dropped: RuleVerdict = { kind: 'drop' };
const rejected: RuleVerdict = { kind: 'goto', chain: nftChains.reject };

function placeElement(set: ElementSet, element: Element): PlacedElement {
  return { set, element };
}

/** Cuts a label to what nft accepts as a comment. Adds dots at the cut unless kube-proxy cuts without them. Labels are ASCII. */
function fitComment(label: string, behaviours: Behaviours): string {
  if (label.length <= maxNftComment) return label;
  return behaviours.has('short-comments') ? label.slice(0, maxNftComment) : `${label.slice(0, maxNftComment - 3)}...`;
}

/** Returns names: a prefix, a hash, and the Service port's namespace, name, protocol and port name (servicePortChainNameBase). */
export function serviceChainNames(port: ServicePort): NftChainNames {
  const base = hashAndTruncate(servicePortPath(port));
  return {
    Cluster: nftPrefixes.cluster + base,
    Local: nftPrefixes.local + base,
    external: nftPrefixes.external + base,
    firewall: nftPrefixes.firewall + base,
  };
}

/** Returns the names of an endpoint's chain and set: the Service port's name, address and port (servicePortEndpointChainNameBase). */
export function endpointNames(port: ServicePort, { address, port: number }: Endpoint): EndpointNames {
  const base = hashAndTruncate(`${servicePortPath(port)}__${address.text.replaceAll(':', '.')}/${number}`);
  return { chain: nftPrefixes.endpoint + base, affinitySet: nftPrefixes.affinity + base };
}

function servicePortPath({ namespace, service, protocol, portName }: ServicePort): string {
  return `${namespace}/${service}/${protocol.toLowerCase()}/${portName}`;
}

/** kube-proxy's chainNameBaseLengthMax: nft's limit minus the longest prefix. */
const maxLength = 240;

function hashAndTruncate(text: string): string {
  const name = `${hashName(text, 8)}-${text}`;
  return name.length > maxLength ? `${name.slice(0, maxLength - 3)}...` : name;
}
