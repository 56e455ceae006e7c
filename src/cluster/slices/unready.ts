import { diagnose, type Finding } from '../../base/findings/finding.ts';
import type { Unready, Unused } from '../../base/findings/lint.ts';
import { serviceName, type ServicePort } from '../model.ts';
import { groupBy } from '../grouping.ts';
import type { ServiceWithSlices } from '../endpoints.ts';
import { fullName, type EndpointSlice, type Pod, type Service, type Sourced } from '../objects.ts';
import { isEndpoint } from './make-slices.ts';
import { selectPods } from './select-pods.ts';
import { nameOfSelected } from './slice-warnings.ts';

/** A Service whose ports have no endpoint that takes connections, with the slices of the input and the Pods that it selects. */
interface Unserved {
  readonly spec: Service['spec'];
  readonly ports: readonly ServicePort[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  readonly selected: readonly Sourced<Pod>[];
  readonly isScaledToZero: boolean;
}

/** Why it has none; undefined where ports that do not fit or a selector are the reason, which have messages of their own. */
export function whyUnready({ spec, ports, slices, selected, isScaledToZero }: Unserved): Unready | undefined {
  const endpoints = Math.max(...ports.map((port) => port.endpoints.length));
  const publishes = spec.publishNotReadyAddresses;
  if (endpoints > 0) return { endpoints, publishes, isScaledToZero };
  const filled = slices.filter(({ object }) => object.endpoints.length > 0);
  const unused = filled.length > 0 ? whyUnused(spec, ports, filled) : undefined;
  const [pod] = selected;
  const isOfPorts = pod === undefined || selected.some(({ object }) => isEndpoint(object));
  if (filled.length > 0 ? !unused : slices.length === 0 && isOfPorts) return undefined;
  const owner = pod && nameOfSelected(pod.object);
  return { endpoints, publishes, owner, isScaledToZero, unused, pods: unused ? undefined : stateOf(selected) };
}

/** Why kube-proxy skips all of these slices; undefined if their ports have other names. */
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

/** What keeps all Pods of a cluster from being endpoints; undefined if the Pods do not show it. */
function stateOf(pods: readonly Sourced<Pod>[]): Unready['pods'] {
  const states = pods.map(
    ({ object }) => object.status && !isEndpoint(object) && (object.status.ended ? 'ended' : 'pending'),
  );
  const [state, ...others] = new Set(states);
  return others.length === 0 && state ? state : undefined;
}

/** The Services that the input shows to have no endpoints at all, and why. */
export function findUnready(
  services: readonly ServiceWithSlices[],
  pods: readonly Sourced<Pod>[],
  servicePorts: readonly ServicePort[],
): readonly Finding[] {
  const byService = groupBy(servicePorts, serviceName);
  const unserved = services.flatMap((service) => {
    const ports = byService.get(fullName(service.object.metadata)) ?? [];
    return service.isServed && ports.length > 0 && ports.every((port) => port.endpoints.length === 0)
      ? [{ service, ports }]
      : [];
  });
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
