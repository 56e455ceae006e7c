import { diagnose, isError, type Finding } from '../../base/findings/finding.ts';
import { type Assumptions, chooseFamilies, type IpFamilyChoice } from './assumptions.ts';
import { assignAddresses, type AssignmentRanges } from '../../cluster/assign-addresses.ts';
import { buildCluster, clusterOfNode } from '../../cluster/build-cluster.ts';
import { ContextMemo } from '../../cluster/plan-traffic.ts';
import {
  checkAnnotations,
  checkTotalSize,
  findPortConflicts,
  findUnloadableRanges,
  findUnserved,
} from '../../cluster/check-services.ts';
import { serviceName, type Cluster, type NodeContext, type ServiceRange } from '../../cluster/model.ts';
import { describeNode, findCoveredAddresses } from '../../cluster/node-context.ts';
import {
  fullName,
  workloadKinds,
  type Node,
  type Pod,
  type ProxySettings,
  type Service,
  type ObjectSource,
  type Sourced,
} from '../../cluster/objects.ts';
import { assignableNetworks, serviceRanges } from '../../cluster/service-ranges.ts';
import type { Inputs } from '../../input/read-inputs.ts';
import { isDeprecated } from '../../kube-proxy/announced.ts';
import { modeFacts, programs } from '../../kube-proxy/modes.ts';
import {
  behavioursOf,
  concernsMode,
  type Behaviours,
  type FeatureGates,
  type Release,
} from '../../kube-proxy/releases.ts';
import { compileIptables, IptablesMemo } from '../../modes/iptables/compile-iptables.ts';
import { compileIpvs, IpvsMemo } from '../../modes/ipvs/compile-ipvs.ts';
import { type Address, families as allFamilies, type Family, isLoopback, type Network } from '../../kernel/address.ts';
import { compileNftables, NftablesMemo, findLongComments } from '../../modes/nftables/compile-nftables.ts';
import { compileUserspace, checkProxyPorts } from '../../modes/userspace/compile-userspace.ts';
import type { KernelState } from '../../kernel/state.ts';
import { findDisagreeing } from '../../cluster/disagreeing-slices.ts';
import { findSlices, type FoundSlices } from '../../cluster/slices/find-slices.ts';
import { describeSlicePorts, describeStrays } from '../../cluster/slices/slice-warnings.ts';
import { findUnready } from '../../cluster/slices/unready.ts';
import { gatesOfSettings, withGatedSettings } from '../../settings/feature-gates.ts';
import { version } from '../../base/version.ts';
import { CompiledSnapshot, isPortFault, type PortFault, type SnapshotObjects } from '../snapshot.ts';

export interface Prepared {
  readonly cluster: Cluster;
  readonly settings: ProxySettings;
  readonly behaviours?: Behaviours | undefined;
  /** The Nodes that kpc compiles for. */
  readonly nodes: ReadonlyMap<string, Node>;
  readonly windowsNodes: readonly string[];
  readonly nodeSources: ReadonlyMap<string, ObjectSource>;
  /** The names of the assumed Nodes. If no node is named, kpc compiles for the first of these. */
  readonly assumedNodes: readonly string[];
  /** All Services, with the values that kpc assigned. Includes Services that kube-proxy does not program. */
  readonly services: readonly Sourced<Service>[];
  readonly assigned: CompiledSnapshot['assigned'];
  readonly assumedEndpoints: CompiledSnapshot['assumedEndpoints'];
  readonly assumedPods: readonly Sourced<Pod>[];
  readonly assumedClusterCIDRs: readonly string[];
  /** The families that kpc chose for the cluster. Empty unless a Service gets its families from the cluster. */
  readonly assumedFamilies: readonly Family[];
  readonly gates: FeatureGates;
  readonly buildCluster: (behaviours: Behaviours) => Cluster;
  readonly portFaults: () => readonly PortFault[];
  /** The addresses in the node's `ip -j addr` output, without those on kube-ipvs0. Undefined if there is no such output. */
  readonly hostAddresses: readonly Address[] | undefined;
  readonly inputs: SnapshotObjects;
  readonly modeNote?: Finding | undefined;
  readonly ownFields?: CompiledSnapshot['ownFields'];
}

export interface PreparationFacts {
  readonly ranges: AssignmentRanges;
  readonly hostAddresses?: readonly Address[] | undefined;
  readonly assumedNetworks?: readonly Network[] | undefined;
  readonly assumptions?: Assumptions | undefined;
  readonly remade?: ReadonlySet<string> | undefined;
}

/** Takes the ranges from the cluster's objects, as the API server does, unless a flag gives the ranges. */
function rangesToAssign(ranges: AssignmentRanges, serviceCidrs: Inputs['serviceCidrs']): AssignmentRanges {
  const ofObjects = ranges.clusterIPs.length > 0 ? [] : assignableNetworks(serviceCidrs);
  return ofObjects.length === 0 ? ranges : { ...ranges, clusterIPs: ofObjects, fromObjects: true };
}

function faultsOfPorts(
  { findUndeclared, services, diagnostics }: FoundSlices,
  wrongSlices: readonly Finding[],
  { pods }: Pick<Inputs, 'pods'>,
  { servicePorts }: Cluster,
): Prepared['portFaults'] {
  let faults: readonly PortFault[] | undefined;
  const find = () => [
    ...findUndeclared(),
    ...diagnostics,
    ...wrongSlices,
    ...findUnready(services, pods, servicePorts),
  ];
  return () => (faults ??= find().filter(isPortFault));
}

/**
 * Finds EndpointSlices without a Service, and Services without endpoints. Returns nothing after an error, because the object with the error
 * may be the missing one.
 */
function findLonely(
  { diagnostics, slices, endpoints }: Inputs,
  services: ReturnType<typeof findSlices>['services'],
  cluster: Cluster,
  couldAssume: boolean,
): readonly Finding[] {
  if (diagnostics.some(isError)) return [];
  return [...describeStrays(services, slices, endpoints), ...findUnserved(services, cluster, couldAssume)];
}

/** The part of the input that both sides of a comparison share: the objects as read, the EndpointSlices of Services, and the cluster. */
export class ReadObjects {
  readonly slices = new ContextMemo<Inputs, ReturnType<typeof serve>>();
  readonly clusters = new ContextMemo<FoundSlices, Cluster>();
  readonly inputs: Inputs;

  constructor(inputs: Inputs) {
    this.inputs = inputs;
  }
}

function serve(
  { inputs, slices }: ReadObjects,
  choices: AssignmentRanges,
  assumedNodes: Assumptions['nodes'],
  assume: Parameters<typeof findSlices>[1],
  remade: ReadonlySet<string> | undefined,
): ReturnType<typeof assignAddresses> & { readonly found: FoundSlices } {
  const nodes = assumedNodes.map(({ object: { metadata, assumedAs, podCIDRs } }) => [
    metadata.name,
    assumedAs,
    podCIDRs,
  ]);
  return slices.recall(inputs, { choices, assume, nodes, remade: [...(remade ?? [])] }, () => {
    const assignment = assignAddresses(inputs.services, choices);
    const sources = { ...inputs, services: assignment.services, nodes: [...inputs.nodes, ...assumedNodes], remade };
    return { ...assignment, found: findSlices(sources, assume, inputs.services) };
  });
}

export function prepare(
  read: ReadObjects,
  settings: ProxySettings,
  gates: FeatureGates,
  { ranges, hostAddresses, assumedNetworks, assumptions, remade }: PreparationFacts,
): Prepared & { readonly inputs: Inputs; readonly diagnostics: readonly Finding[] } {
  const { inputs } = read;
  const choices = rangesToAssign(assumptions?.ranges ?? ranges, inputs.serviceCidrs);
  const assumedNodes = assumptions?.nodes ?? [];
  const nodes = [...inputs.nodes, ...assumedNodes];
  const assume = assumedNetworks && {
    networks: assumedNetworks,
    clusterCIDRs: assumptions ? assumptions.podNetworks.map(({ text }) => text) : settings.clusterCIDRs,
  };
  const { services, assigned, diagnostics, found } = serve(read, choices, assumedNodes, assume, remade);
  const ofNodes = nodes.map(({ object }) => object.addresses.length);
  const tooLarge = checkTotalSize(found.services, found.slices, hostAddresses?.length ?? Math.max(1, ...ofNodes));
  const built = tooLarge.length > 0 ? [] : found.services;
  const serving = serviceRanges(inputs.serviceCidrs, ranges.clusterIPs);
  const context = { isLeftOut: tooLarge.length > 0, ranges: ranges.clusterIPs };
  const build = (does: Behaviours): Cluster =>
    read.clusters.recall(found, { ...context, behaviours: does }, () => buildCluster(built, does, serving));
  const behaviours = behavioursOf(settings.release, gates);
  const cluster = build(behaviours);
  const placed = splitNodes(nodes);
  const wrongSlices = describeSlicePorts(found.services);
  return {
    cluster,
    settings,
    gates,
    hostAddresses,
    inputs,
    buildCluster: build,
    ...placed,
    assumedNodes: assumedNodes.map(({ object }) => object.metadata.name),
    nodeSources: new Map(inputs.nodes.map(({ object, source }) => [object.metadata.name, source])),
    services,
    // Each side gets its own copies, because these include the side's assumptions.
    assigned: [...assigned],
    assumedEndpoints: found.assumed.length === 0 ? undefined : [...found.assumed],
    assumedPods: found.assumedPods,
    assumedClusterCIDRs: assumptions?.clusterCIDRs ?? [],
    assumedFamilies: assumptions?.choosesFamilies && takesFamilies(services, assigned) ? assumptions.families : [],
    portFaults: faultsOfPorts(found, wrongSlices, inputs, cluster),
    diagnostics: [
      ...diagnostics,
      ...tooLarge,
      ...describeWindowsNodes(placed.windowsNodes),
      ...found.diagnostics,
      ...describeMissingRanges(services, settings, behaviours, serving),
      ...findIgnoredPolicies(services, behaviours),
      ...findPortConflicts(cluster),
      ...wrongSlices,
      ...findDisagreeing(found.services, behaviours),
      ...findLonely(inputs, found.services, cluster, !assumedNetworks && hasWorkloads(inputs)),
      ...checkVirtualServers(services, settings, cluster),
      ...checkLoading({ settings, cluster }),
    ],
  };
}

function checkVirtualServers(
  services: readonly Sourced<Service>[],
  settings: ProxySettings,
  cluster: Cluster,
): readonly Finding[] {
  if (!programs(settings.mode, 'virtualServers')) return [];
  return [...checkAnnotations(services, cluster), ...findCoveredAddresses(settings, cluster)];
}

function takesFamilies(services: readonly Sourced<Service>[], assigned: Prepared['assigned']): boolean {
  const names = new Set(assigned.map(({ service }) => service));
  return services.some(({ object: { metadata, spec } }) => {
    const { ipFamilyPolicy } = spec;
    return (
      (ipFamilyPolicy === 'PreferDualStack' || ipFamilyPolicy === 'RequireDualStack') && names.has(fullName(metadata))
    );
  });
}

/**
 * Notes that the input has a cluster's Services but not the cluster's ServiceCIDRs, which affect rules. If the input has Service
 * default/kubernetes, it was printed from a cluster.
 */
function describeMissingRanges(
  services: readonly Sourced<Service>[],
  { mode }: ProxySettings,
  behaviours: Behaviours,
  ranges: readonly ServiceRange[],
): readonly Finding[] {
  if (ranges.length > 0 || !behaviours.has('service-cidrs') || !concernsMode('service-cidrs', mode)) return [];
  const own = services.find(({ object }) => fullName(object.metadata) === 'default/kubernetes');
  return own ? [diagnose('no-service-cidrs', {}, own.source.place([]))] : [];
}

function findIgnoredPolicies(services: readonly Sourced<Service>[], behaviours: Behaviours): readonly Finding[] {
  if (behaviours.has('traffic-policies')) return [];
  const ignored = services.filter(({ object: { spec } }) => {
    const isLocal = spec.internalTrafficPolicy === 'Local' || spec.externalTrafficPolicy === 'Local';
    return isLocal || spec.loadBalancerSourceRanges.length > 0;
  });
  const [first] = ignored;
  if (!first) return [];
  const names = ignored.map(({ object }) => fullName(object.metadata));
  return [diagnose('userspace', { problem: 'ignored', services: names }, first.source.place([]))];
}

/** Warns about deprecated fields. Also warns about output that kube-proxy's tools refuse: some source ranges in sets, and long comments. */
export function checkLoading({ settings, cluster }: Pick<Prepared, 'settings' | 'cluster'>): readonly Finding[] {
  const cutsComments = behavioursOf(settings.release).has('short-comments');
  return [
    ...findEndingAddresses(cluster, settings.release),
    ...(programs(settings.mode, 'sets') ? findUnloadableRanges(cluster) : []),
    ...(programs(settings.mode, 'proxyPorts') ? checkProxyPorts(cluster, settings) : []),
    ...(programs(settings.mode, 'nftables') && !cutsComments ? findLongComments(cluster) : []),
  ];
}

/** Returns one warning for all Services with externalIPs. This field will stop working in a later release. */
function findEndingAddresses({ servicePorts }: Cluster, release: Release): readonly Finding[] {
  const users = isDeprecated('external-ips', release)
    ? servicePorts.filter(({ externalIPs }) => externalIPs.length > 0)
    : [];
  if (users.length === 0) return [];
  const services = [...new Set(users.map(serviceName))];
  return [diagnose('external-ips', { services }, users[0]?.places?.externalIP(0))];
}

function hasWorkloads({ skipped, pods }: Inputs): boolean {
  return workloadKinds.some((kind) => skipped.has(kind)) || pods.some(({ object }) => !object.status);
}

export function prepareForRelease<Known extends Prepared>(
  prepared: Known,
  release: Release,
  behaviours: Behaviours = behavioursOf(release, prepared.gates),
): Known {
  return {
    ...prepared,
    cluster: prepared.buildCluster(behaviours),
    behaviours,
    settings: withGatedSettings({ ...prepared.settings, release }, behaviours),
  };
}

function splitNodes(all: Inputs['nodes']): Pick<Prepared, 'nodes' | 'windowsNodes'> {
  const nodes = new Map<string, Node>();
  const windowsNodes: string[] = [];
  for (const { object } of all) {
    if (object.isWindows) windowsNodes.push(object.metadata.name);
    else nodes.set(object.metadata.name, object);
  }
  return { nodes, windowsNodes };
}

function describeWindowsNodes(names: readonly string[]): readonly Finding[] {
  return names.length > 0 ? [diagnose('no-node', { problem: 'windows', names })] : [];
}

export function prepareWithSettings<Known extends Prepared>(prepared: Known, settings: ProxySettings): Known {
  const gates = new Map([...prepared.gates, ...gatesOfSettings(settings)]);
  return prepareForRelease({ ...prepared, settings }, settings.release, behavioursOf(settings.release, gates));
}

export class NodeMemo {
  readonly ipvs = new IpvsMemo();
  readonly iptables = new IptablesMemo();
  readonly nftables = new NftablesMemo();
}

/** Compiles a node. The state itself is compiled on first use. `name`: the user's name for the inputs, by default the node's name. */
export function compileNode(
  prepared: Prepared,
  nodeName: string,
  {
    ipFamily,
    name = nodeName || 'manifests',
  }: { readonly ipFamily: IpFamilyChoice; readonly name?: string | undefined },
  memo?: NodeMemo,
): CompiledSnapshot {
  const { settings, assigned, assumedEndpoints, assumedPods, portFaults, inputs: objects, modeNote } = prepared;
  const node = describeNode(nodeName, prepared.nodes.get(nodeName), prepared.hostAddresses, settings);
  const behaviours = behavioursFor(prepared);
  const cluster = clusterOfNode(prepared.cluster, node, behaviours);
  const asked = chooseFamilies(ipFamily, () => usedFamilies(cluster, node));
  const known = modeFacts[settings.mode].families;
  const families = known.length === allFamilies.length ? asked : known;
  return new CompiledSnapshot({
    kind: 'manifests',
    name,
    cluster,
    node,
    settings,
    families,
    assigned,
    assumedEndpoints,
    assumedPods,
    assumedClusterCIDRs: prepared.assumedClusterCIDRs,
    assumedFamilies: prepared.assumedFamilies,
    portFaults,
    assumedNodes: prepared.assumedNodes,
    nodes: prepared.nodes,
    onNode: (other) => (prepared.nodes.has(other) ? compileNode(prepared, other, { ipFamily, name }, memo) : undefined),
    isModeAssumed: modeNote?.code === 'default-mode' && modeNote.arguments.named === 'nothing',
    kpcVersion: version,
    isAsCompiled: true,
    ownFields: prepared.ownFields,
    objects,
    state: () => compileState(cluster, node, settings, families, memo, behaviours),
    behaviours,
    readBy: (does) => clusterOfNode(prepared.buildCluster(does), node, does),
    compile: (own, on = node) => compileState(own, on, settings, families),
  });
}

function usedFamilies(cluster: Cluster, node: NodeContext): readonly Family[] {
  const used = allFamilies.filter(
    (family) =>
      cluster.servicePorts.some((port) => port.family === family) ||
      node.podCIDRs.some((network) => network.family === family) ||
      !isLoopback(node.nodeIPs[family]),
  );
  return used.length > 0 ? used : ['ipv4'];
}

function behavioursFor({ behaviours, settings, gates }: Prepared): Behaviours {
  return behaviours ?? behavioursOf(settings.release, gates);
}

export function compileState(
  cluster: Cluster,
  node: NodeContext,
  settings: ProxySettings,
  chosen: readonly Family[],
  memo?: NodeMemo,
  behaviours?: Behaviours,
): KernelState {
  switch (settings.mode) {
    case 'ipvs':
      return compileIpvs(cluster, node, settings, chosen, memo?.ipvs);
    case 'iptables':
      return compileIptables(cluster, node, settings, chosen, memo?.iptables);
    case 'nftables':
      return compileNftables(cluster, node, settings, chosen, memo?.nftables, behaviours);
    case 'userspace':
      return compileUserspace(cluster, node, settings);
  }
}

/** Returns the node's name: --node, hostnameOverride, the first assumed Node, or the only Node in the inputs; '' if none. */
export function chooseNodeName(flag: string | undefined, { settings, nodes, assumedNodes }: Prepared): string {
  const [only, ...others] = nodes.keys();
  return flag ?? (settings.hostnameOverride || (assumedNodes[0] ?? (others.length === 0 ? (only ?? '') : '')));
}
