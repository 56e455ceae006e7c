import { eitherOf, namesOf, groupBy, type Names } from '../grouping.ts';
import {
  addressesOfEndpoints,
  groupSlices,
  serviceOfSlice,
  writtenAddresses,
  type ServiceWithSlices,
} from '../endpoints.ts';
import { mirrorEndpoints } from './mirror-endpoints.ts';
import {
  addressesOfPod,
  fullName,
  type EndpointObjects,
  type EndpointSlice,
  type Pod,
  type Sourced,
  type ObjectMeta,
} from '../objects.ts';
import { parseNetwork, type Network } from '../../kernel/address.ts';
import { assumePods, ownerKey } from './assume-pods.ts';
import { unplacedOf, type AssumedWorkload } from '../model.ts';
import { compareText } from '../../kernel/compare.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { makeKnownNodes, isEndpoint, isOnUnknownNode, makeSlices, type KnownNodes } from './make-slices.ts';
import { compareNaturally, areEndpointsGiven, selectPods, type Selecting } from './place-pods.ts';
import { causeFinder, findPrinted, type MakerSources } from './selector-causes.ts';
import {
  describeTargetPorts,
  describeUnselective,
  findUndeclaredPorts,
  selectUnfit,
  type IdleWorkloads,
} from './slice-warnings.ts';

interface SliceSources extends MakerSources, EndpointObjects {
  /** Services whose given slices kpc replaces with slices made from Pods. */
  readonly remade?: ReadonlySet<string> | undefined;
}

interface AssumedNetworks {
  readonly networks: readonly Network[];
  readonly clusterCIDRs: readonly string[];
}

export interface FoundSlices extends Pick<SlicesOfPods, 'assumed' | 'findUndeclared' | 'diagnostics'> {
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly services: readonly ServiceWithSlices[];
  readonly assumedPods: readonly Sourced<Pod>[];
}

const none: readonly never[] = [];

/**
 * Returns the given slices; without these, slices mirrored from Endpoints; without these, slices made from Pods. `written`: the Services as
 * in the input, before kpc assigns addresses.
 */
export function findSlices(
  sources: SliceSources,
  assumed: AssumedNetworks | undefined,
  written = sources.services,
): FoundSlices {
  const { services, remade = new Set() } = sources;
  const slices = sources.slices.filter(({ object }) => !remade.has(serviceOfSlice(object)));
  const endpoints = sources.endpoints.filter(({ object }) => !remade.has(fullName(object.metadata)));
  const mirrored = mirrorEndpoints({ ...sources, slices, endpoints });
  const given = [...slices, ...mirrored.slices];
  const givenOf = groupSlices(given);
  const withEndpoints = namesOf(endpoints.map(({ object }) => object.metadata));
  const served = eitherOf(givenOf, withEndpoints);
  const { pods, diagnostics, ...found } = assumed
    ? assumePods({
        ...sources,
        networks: assumed.networks,
        clusterCIDRs: assumed.clusterCIDRs.flatMap((text) => parseNetwork(text) ?? []),
        given: served,
        taken: addressesInSlices(sources),
      })
    : { pods: sources.pods, hasIdle: false, scaledDown: none, pending: none, unplaced: none, diagnostics: [] };
  const made = podsToSlices({ ...sources, ...found, pods, likelyOf: likelyCauses(sources, written) }, served);
  const madeOf = groupSlices(made.slices);
  const madeFor = namesOf(made.services);
  return {
    slices: [...given, ...made.slices],
    services: services.map(({ object, source }) => {
      const { namespace, name } = object.metadata;
      const own = givenOf.get(namespace, name);
      return {
        object,
        source,
        slices: own ?? madeOf.get(namespace, name) ?? none,
        given: own ?? none,
        isServed: served.has(namespace, name) || madeFor.has(namespace, name),
      };
    }),
    assumed: made.assumed,
    assumedPods: assumed ? pods.filter(({ object }) => object.assumed) : none,
    findUndeclared: made.findUndeclared,
    diagnostics: [...mirrored.diagnostics, ...diagnostics, ...made.diagnostics],
  };
}

function likelyCauses(sources: SliceSources, written: SliceSources['services']): IdleWorkloads['likelyOf'] {
  const isPrinted = findPrinted(sources.pods, written);
  const findCause = causeFinder(sources);
  return (service) => findCause(service, isPrinted(service)).likely;
}

function addressesInSlices({ slices, endpoints }: SliceSources): ReadonlySet<string> {
  return new Set([
    ...slices.flatMap(({ object }) => object.endpoints.flatMap(writtenAddresses)),
    ...endpoints.flatMap(({ object }) => addressesOfEndpoints(object)),
  ]);
}

interface PodInputs extends IdleWorkloads, Pick<EndpointObjects, 'services' | 'pods' | 'nodes' | 'namespaces'> {
  readonly hasIdle: boolean;
  readonly unplaced: readonly string[];
}

interface SlicesOfPods {
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly services: readonly ObjectMeta[];
  readonly assumed: readonly AssumedWorkload[];
  readonly findUndeclared: () => readonly Finding[];
  readonly diagnostics: readonly Finding[];
}

const nothing: SlicesOfPods = {
  slices: [],
  services: [],
  assumed: [],
  findUndeclared: () => [],
  diagnostics: [],
};

/**
 * Makes the slices that a cluster with these Pods would have, for Services with a selector that are not in `given`. A Service that selects
 * a Pod without a status gets none, because the Pod comes from a manifest and no cluster has made endpoints for it. A Service whose Pods
 * fit no given Node gets none either, because the cluster may have Nodes that they fit.
 */
function podsToSlices(inputs: PodInputs, given: Names): SlicesOfPods {
  const { services, pods, nodes, namespaces, hasIdle } = inputs;
  if (!hasIdle && pods.length === 0) return nothing;
  const selecting = selectPods(services, pods);
  const open = selecting.filter(({ service }) => !areEndpointsGiven(service, given));
  const tooMany = checkEndpoints(open, services.length + pods.length);
  if (tooMany) return { ...nothing, diagnostics: [tooMany] };
  const injected = new Set(namespaces.flatMap(({ object }) => (object.isInjected ? object.metadata.name : [])));
  const wrongPorts = describeTargetPorts(open, ({ metadata, spec, status, assumed }) => {
    const isOfCluster = status !== undefined && !assumed;
    return !isOfCluster && (spec.isInjected || injected.has(metadata.namespace));
  });
  const findUndeclared = () =>
    selecting.flatMap(findUndeclaredPorts).map(({ details, place }) => diagnose('undeclared-port', details, place));
  if (!hasIdle && !pods.some(({ object }) => object.status !== undefined)) {
    return { ...nothing, findUndeclared, diagnostics: wrongPorts };
  }
  const made = open.filter(({ pods: its }) => its.every(({ object }) => object.status !== undefined));
  const known = makeKnownNodes(nodes);
  const assumed = listAssumed(made, new Set(inputs.unplaced));
  const unfit = selectUnfit(made, inputs);
  const unplaced = new Set(unfit.map(({ label }) => label));
  const served = made.filter(({ pods: its, label }) => its.length > 0 || !unplaced.has(label));
  return {
    slices: served.flatMap(({ service, pods: its }) => makeSlices(service, its, known)),
    services: served.map(({ service }) => service.object.metadata),
    assumed,
    findUndeclared,
    diagnostics: [
      ...describeOrigin(made, selecting.length - open.length),
      ...diagnoseAssumed(assumed),
      ...describeLeftPods(made, known),
      ...describeUnselective(made, inputs, unfit),
      ...wrongPorts,
    ],
  };
}

const freeEndpoints = 300_000;
const endpointsPerObject = 5;

/** Before making any endpoint, refuses Services that select more Pods than fit in memory as endpoints. */
function checkEndpoints(open: readonly Selecting[], objects: number): Finding | undefined {
  const total = open.reduce((sum, { pods }) => sum + pods.length, 0);
  const limit = freeEndpoints + endpointsPerObject * objects;
  if (total <= limit) return undefined;
  const largest = open.reduce((most, each) => (each.pods.length > most.pods.length ? each : most));
  const details = { of: 'Services', count: total, limit, largest: largest.label, most: largest.pods.length };
  return diagnose('too-many-pods', details, largest.service.source.place(['spec', 'selector']));
}

function describeOrigin(made: readonly Selecting[], kept: number): readonly Finding[] {
  const real = made.filter(({ pods }) => pods.length > 0 && !pods.some(({ object }) => object.assumed));
  if (real.length === 0 && kept === 0) return [];
  return [diagnose('endpoints-from-pods', { services: real.map(({ label }) => label), kept })];
}

function listAssumed(made: readonly Selecting[], unplaced: ReadonlySet<string>): readonly AssumedWorkload[] {
  const pods = new Set(made.flatMap((each) => each.pods.map(({ object }) => object)));
  const used = [...pods].filter((pod) => pod.assumed && isEndpoint(pod));
  const groups = groupBy(used, ({ metadata, owner }) => (owner ? ownerKey(metadata.namespace, owner) : ''));
  return [...groups]
    .toSorted(([a], [b]) => compareText(a, b))
    .map(([workload, its]) => ({
      workload,
      pods: its
        .toSorted((a, b) => compareNaturally(a.metadata.name, b.metadata.name))
        .map(({ metadata, spec, status }) => ({
          name: metadata.name,
          node: spec.nodeName || undefined,
          addresses: addressesOfPod({ status }),
        })),
      unplaced: unplaced.has(workload) || undefined,
    }));
}

function diagnoseAssumed(assumed: readonly AssumedWorkload[]): readonly Finding[] {
  if (assumed.length === 0) return [];
  const workloads = assumed.map(({ workload, pods }) => `${pods.length} of ${workload}`);
  const pods = assumed.reduce((sum, each) => sum + each.pods.length, 0);
  return [diagnose('assumed-endpoints', { pods, workloads, unplaced: unplacedOf(assumed) })];
}

/** Reports Pods that could be endpoints but that the controller leaves out, because they are on no Node or on an unknown Node. */
function describeLeftPods(made: readonly Selecting[], known: KnownNodes): readonly Finding[] {
  const left = new Set<Sourced<Pod>>();
  for (const { service, pods } of made) {
    for (const pod of pods) {
      if (isEndpoint(pod.object) && isOnUnknownNode(pod.object, service.object, known)) left.add(pod);
    }
  }
  const [first, ...others] = left;
  if (!first) return [];
  const objects = [first, ...others].map(({ object }) => object);
  const pods = objects.map(({ metadata }) => fullName(metadata)).toSorted(compareText);
  const named = new Set(objects.flatMap(({ spec }) => spec.nodeName || []));
  const details = { pods, nodes: [...named].toSorted(compareText) };
  return [diagnose('unknown-node-of-pod', details, first.source.place(['spec', 'nodeName']))];
}
