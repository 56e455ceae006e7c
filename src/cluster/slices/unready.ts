import { diagnose, type Finding } from '../../base/findings/finding.ts';
import { unfitPods, type UnfitPod, type Unready, type Unused } from '../../base/findings/lint.ts';
import { serviceName, type ServicePort } from '../model.ts';
import { groupBy } from '../grouping.ts';
import type { ServiceWithSlices } from '../endpoints.ts';
import type { Family } from '../../kernel/address.ts';
import { fullName, type EndpointSlice, type Pod, type Service, type Sourced } from '../objects.ts';
import { selectPods } from './place-pods.ts';
import { nameOfSelected } from './slice-warnings.ts';

interface Unserved {
  readonly spec: Service['spec'];
  readonly ports: readonly ServicePort[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly selected: readonly Sourced<Pod>[];
  readonly isScaledToZero: boolean;
}

/**
 * Explains why a Service has no endpoint that accepts connections. Undefined if the cause is a port, a selector or the Nodes, which other
 * messages explain. When kpc makes missing slices from the Pods, it leaves out a suitable Pod only for one of these causes.
 */
export function whyUnready({ spec, ports, slices, selected, isScaledToZero }: Unserved): Unready | undefined {
  const endpoints = Math.max(...ports.map((port) => port.endpoints.length));
  const publishes = spec.publishNotReadyAddresses;
  if (endpoints > 0) return { endpoints, publishes, isScaledToZero };
  const filled = slices.filter(({ object }) => object.endpoints.length > 0);
  const unused = filled.length > 0 ? whyUnused(spec, ports, filled) : undefined;
  const [pod] = selected;
  const isMade = slices.length === 0;
  const states = new Set(selected.map(({ object }) => stateOf(object, ports)));
  if (filled.length > 0 ? !unused : isMade && (!pod || states.has('fit'))) return undefined;
  const owner = pod && nameOfSelected(pod.object);
  const unfit = unfitPods.filter((state) => states.has(state));
  const pods = unused || unfit.length === 0 || unfit.length < states.size ? undefined : unfit;
  return { endpoints, publishes, owner, isScaledToZero, unused, pods };
}

function stateOf({ status }: Pod, ports: Unserved['ports']): UnfitPod | 'fit' | undefined {
  if (!status) return undefined;
  if (status.ended) return 'ended';
  if (status.addresses.length === 0) return 'pending';
  return status.addresses.some((address) => ports.some(({ family }) => family === address.family))
    ? 'fit'
    : 'other-family';
}

export function findLackingFamily(
  ports: readonly ServicePort[],
): { readonly port: ServicePort; readonly other: Family } | undefined {
  const lacking = ports.find((port) => !ports.some((own) => own.family === port.family && listsEndpoints(own)));
  const other = ports.find(listsEndpoints)?.family;
  return lacking && other && { port: lacking, other };
}

function listsEndpoints({ endpoints }: ServicePort): boolean {
  return endpoints.length > 0;
}

/** Explains why kube-proxy skips all the slices. Undefined if the cause is that their ports have other names. */
function whyUnused(spec: Service['spec'], ports: Unserved['ports'], slices: Unserved['slices']): Unused | undefined {
  const types = [...new Set(slices.map(({ object }) => object.addressType))];
  const families = new Set<string>(ports.map(({ family }) => family));
  const usable = slices.filter(({ object }) => families.has(object.addressType.toLowerCase()));
  if (usable.length === 0) return { by: 'address-type', types };
  const ofName = usable
    .flatMap(({ object }) => object.ports)
    .filter((port) => spec.ports.some((own) => own.name === port.name && own.protocol === port.protocol));
  return ofName.length > 0 && ofName.every(({ port }) => !port) ? { by: 'port' } : undefined;
}

/** Explains why the input gives a Service no endpoints, or none in one family, for each such Service. */
export function findUnready(
  services: readonly ServiceWithSlices[],
  pods: readonly Sourced<Pod>[],
  servicePorts: readonly ServicePort[],
): readonly Finding[] {
  const byService = groupBy(servicePorts, serviceName);
  const served = services.flatMap((service) => {
    const ports = byService.get(fullName(service.object.metadata));
    return service.isServed && ports ? [{ service, ports }] : [];
  });
  return [
    ...served.flatMap(({ service: { object, source }, ports }) => {
      const found = findLackingFamily(ports);
      if (!found) return [];
      const { port, other } = found;
      const details = { service: fullName(object.metadata), address: port.clusterIP.text, family: port.family, other };
      return [diagnose('family-without-endpoints', details, source.place(['spec', 'ipFamilies']))];
    }),
    ...reportUnready(
      served.filter(({ ports }) => !ports.some(listsEndpoints)),
      pods,
    ),
  ];
}

function reportUnready(
  unserved: readonly { readonly service: ServiceWithSlices; readonly ports: readonly ServicePort[] }[],
  pods: readonly Sourced<Pod>[],
): readonly Finding[] {
  if (unserved.length === 0) return [];
  const real = pods.filter(({ object }) => object.status !== undefined);
  const selecting = selectPods(
    unserved.map(({ service }) => service),
    real,
  );
  const podsOf = new Map(selecting.map(({ label, pods: own }) => [label, own]));
  return unserved.flatMap(({ service: { object, source, given }, ports }) => {
    const service = fullName(object.metadata);
    const selected = podsOf.get(service) ?? [];
    const why = whyUnready({ spec: object.spec, ports, slices: given, selected, isScaledToZero: false });
    return why ? [diagnose('no-ready-endpoint', { service, ...why }, source.place(['metadata', 'name']))] : [];
  });
}
