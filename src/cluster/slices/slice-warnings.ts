import { groupBy, namesOf } from '../grouping.ts';
import { compareText } from '../../kernel/compare.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import type { Likely } from '../../base/findings/services.ts';
import { serviceNameLabel, type ServiceWithSlices } from '../endpoints.ts';
import {
  fullName,
  type EndpointPort,
  type Endpoints,
  type EndpointSlice,
  type FieldPath,
  type Pod,
  type Service,
  type Sourced,
  selectorWords,
} from '../objects.ts';
import type { Place } from '../../kernel/place.ts';
import type { Pending } from './assume-pods.ts';
import { selectPods, type Selecting } from './place-pods.ts';

export function describeStrays(
  services: readonly ServiceWithSlices[],
  slices: readonly Sourced<EndpointSlice>[],
  endpoints: readonly Sourced<Endpoints>[],
): readonly Finding[] {
  if (services.length === 0) return [];
  if (endpoints.length === 0 && services.reduce((sum, { given }) => sum + given.length, 0) === slices.length) return [];
  const known = namesOf(services.map(({ object }) => object.metadata));
  const strays = new Map<string, Place>();
  const add = (namespace: string, name: string | undefined, { source }: Sourced<unknown>, path: FieldPath): void => {
    if (!name || known.has(namespace, name)) return;
    const key = fullName({ namespace, name });
    if (!strays.has(key)) strays.set(key, source.place(path));
  };
  for (const slice of slices) {
    const { namespace, labels } = slice.object.metadata;
    add(namespace, labels[serviceNameLabel], slice, ['metadata', 'labels', serviceNameLabel]);
  }
  for (const each of endpoints) {
    const { namespace, name } = each.object.metadata;
    add(namespace, name, each, ['metadata', 'name']);
  }
  const names = [...strays.keys()].toSorted(compareText);
  const [first] = names;
  return first === undefined ? [] : [diagnose('no-such-service', { services: names }, strays.get(first))];
}

/** Reports Service ports that are missing from all slices of the Service, if these slices have endpoints. */
export function describeSlicePorts(services: readonly ServiceWithSlices[]): readonly Finding[] {
  const diagnostics: Finding[] = [];
  for (const { object, given } of services) {
    if (!isProgrammed(object) || !given.some(isFilled)) continue;
    const filled = given.every(isFilled) ? given : given.filter(isFilled);
    for (const { name, protocol, port } of object.spec.ports) {
      if (filled.some(({ object: slice }) => slice.ports.some((each) => isPort(each, name, protocol)))) continue;
      const found = listPorts(filled.flatMap(({ object: slice }) => slice.ports));
      const service = fullName(object.metadata);
      const place = placeOfOtherPort(object, filled);
      diagnostics.push(diagnose('unknown-port', { service, of: 'slices', port, protocol, name, found }, place));
    }
  }
  return diagnostics;
}

function isFilled({ object: { addressType, endpoints } }: Sourced<EndpointSlice>): boolean {
  return endpoints.length > 0 && addressType !== 'FQDN';
}

function placeOfOtherPort({ spec }: Service, slices: readonly Sourced<EndpointSlice>[]): Place | undefined {
  for (const { object, source } of slices) {
    const at = object.ports.findIndex((port) => !spec.ports.some((each) => isPort(port, each.name, each.protocol)));
    if (at !== -1) return source.place(['ports', at]);
  }
  return slices[0]?.source.place(['ports', 0]);
}

type NamedPort = Pick<EndpointPort, 'name' | 'protocol'>;

function isPort(port: NamedPort, name: string, protocol: string): boolean {
  return port.name === name && port.protocol === protocol;
}

function listPorts(ports: readonly NamedPort[]): readonly string[] {
  const labels = ports.map(({ name, protocol }) => (name === '' ? protocol : `${name}/${protocol}`));
  return [...new Set(labels)].toSorted(compareText);
}

function isProgrammed({ spec }: Service): boolean {
  return spec.clusterIP !== 'None' && spec.type !== 'ExternalName';
}

/** Reports named target ports that no selected Pod's container has. Skips Pods with injected containers, which only a cluster shows. */
export function describeTargetPorts(
  services: readonly Selecting[],
  isInjected: (pod: Pod) => boolean,
): readonly Finding[] {
  return services.flatMap(({ service: { object, source }, label, pods }) => {
    // kube-proxy programs nothing for a headless Service.
    if (pods.length === 0 || object.spec.clusterIP === 'None') return [];
    if (pods.some((pod) => isInjected(pod.object))) return [];
    return object.spec.ports.flatMap(({ port, targetPort, protocol }, i): Finding[] => {
      if (typeof targetPort === 'number') return [];
      if (pods.some((pod) => pod.object.spec.ports.some((each) => isPort(each, targetPort, protocol)))) return [];
      const found = listPorts(pods.flatMap((pod) => pod.object.spec.ports).filter(({ name }) => name !== ''));
      const place = source.place(['spec', 'ports', i, 'targetPort']);
      const wanted = { port, protocol, name: targetPort };
      return [diagnose('unknown-port', { service: label, of: 'pods', ...wanted, found }, place)];
    });
  });
}

export interface UndeclaredPort {
  readonly details: ArgumentsOf<'undeclared-port'>;
  readonly place: Place;
}

/** Finds ports that containers do not list. Skips containers that list none, because containers need not list their ports. */
export function findUndeclaredPorts({
  service: { object, source },
  label,
  pods,
}: Selecting): readonly UndeclaredPort[] {
  const [first] = pods;
  const listsPorts = pods.every((pod) => pod.object.spec.ports.length > 0 && !pod.object.spec.isInjected);
  if (!first || !listsPorts) return [];
  return object.spec.ports.flatMap(({ targetPort, protocol }, i): readonly UndeclaredPort[] => {
    if (typeof targetPort !== 'number') return [];
    const isListed = pods.some((pod) =>
      pod.object.spec.ports.some((own) => own.port === targetPort && own.protocol === protocol),
    );
    if (isListed) return [];
    const ports = first.object.spec.ports.map((own) => `${own.port}/${own.protocol}`);
    const details = {
      service: label,
      port: `${targetPort}/${protocol}`,
      owner: nameOfSelected(first.object),
      ports: [...new Set(ports)],
    };
    return [{ details, place: source.place(['spec', 'ports', i, 'targetPort']) }];
  });
}

export function nameOfSelected({ assumed, owner, metadata }: Pod): string {
  const { namespace } = metadata;
  return assumed && owner ? `${owner.kind} ${fullName({ namespace, name: owner.name })}` : `Pod ${fullName(metadata)}`;
}

/** Workloads without Pods, and a function that finds the objects that a Service was probably meant to select. */
export interface IdleWorkloads {
  readonly scaledDown: readonly Sourced<Pod>[];
  readonly pending: readonly Pending[];
  readonly likelyOf: (service: Service) => Likely;
}

/** Returns the Services that select Pods that no Node suits. */
export function selectUnfit(services: readonly Selecting[], { pending }: IdleWorkloads): readonly Selecting[] {
  return selectPods(
    services.map(({ service }) => service),
    pending.flatMap(({ pods }) => pods),
  ).filter(({ pods }) => pods.length > 0);
}

/** Reports Services that select no Pod, or only scaled-down or Pending ones. */
export function describeUnselective(
  services: readonly Selecting[],
  { scaledDown, pending, likelyOf }: IdleWorkloads,
  unfit: readonly Selecting[],
): readonly Finding[] {
  // The endpointslice controller would let an empty selector select all Pods, but the controller never gets one from an API server.
  const empty = services
    .filter(({ service }) => Object.keys(service.object.spec.selector ?? {}).length === 0)
    .map(({ service, label }) =>
      diagnose('empty-selector', { service: label }, service.source.place(['spec', 'selector'])),
    );
  const without = services.filter(({ pods }) => pods.length === 0);
  const idle = selectPods(
    without.map(({ service }) => service),
    scaledDown,
  ).filter(({ pods }) => pods.length > 0);
  const scaled = idle.flatMap(describeScaledDown);
  const known = new Set([...idle, ...unfit].map(({ label }) => label));
  const lost = without.filter(({ label }) => !known.has(label));
  // Services with the same cause share one finding, at the first Service.
  const causes = lost.map((each) => ({ ...each, likely: likelyOf(each.service.object) }));
  const unmatched = [...groupBy(causes, ({ likely }) => JSON.stringify(likely)).values()].flatMap(describeUnmatched);
  return [...unmatched, ...scaled, ...pending.flatMap((each) => warnOfPending(each, unfit)), ...empty];
}

function warnOfPending({ owner, pods, wanted, place }: Pending, unfit: readonly Selecting[]): readonly Finding[] {
  const own = new Set(pods);
  const services = unfit.flatMap(({ label, pods: its }) => (its.some((pod) => own.has(pod)) ? label : []));
  return services.length === 0 ? [] : [diagnose('no-node-fits', { services, owner, wanted }, place)];
}

function describeUnmatched(lost: readonly (Selecting & { readonly likely: Likely })[]): readonly Finding[] {
  const [first] = lost;
  if (!first) return [];
  const { object, source } = first.service;
  const services = [...new Set(lost.map(({ label }) => label))];
  const details = { services, selector: selectorWords(object.spec.selector), ...first.likely };
  return [diagnose('selects-nothing', details, source.place(['spec', 'selector']))];
}

/** Warns that connections to a Service's addresses are refused. A headless Service has no such addresses. */
function describeScaledDown({ service: { object, source }, label, pods: [pod] }: Selecting): readonly Finding[] {
  if (!pod || object.spec.clusterIP === 'None') return [];
  const publishes = object.spec.publishNotReadyAddresses;
  const details = { service: label, endpoints: 0, publishes, owner: nameOfSelected(pod.object), isScaledToZero: true };
  return [diagnose('no-ready-endpoint', details, source.place(['metadata', 'name']))];
}
