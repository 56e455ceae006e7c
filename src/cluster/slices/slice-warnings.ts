import { findNearest } from '../../base/find-nearest.ts';
import { namesOf } from '../by-name.ts';
import { compareText } from '../../kernel/compare-text.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
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
} from '../objects.ts';
import type { Place } from '../../kernel/place.ts';
import type { Selecting } from './select-pods.ts';

/** More names, Pods and Services than these are not compared with each other: it would take long. */
const mostCompared = 200;
const mostPods = 10_000;

/**
 * One note for all slices and Endpoints that name no Service of the input. A cluster's output may hold many of them, as where
 * only some Services are given.
 */
export function describeStrays(
  services: readonly ServiceWithSlices[],
  slices: readonly Sourced<EndpointSlice>[],
  endpoints: readonly Sourced<Endpoints>[],
): readonly Diagnostic[] {
  if (services.length === 0) return [];
  // Mostly each slice is one of a Service: then no name is looked up.
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

/** Service ports that no slice of their Service has a port for, though slices of it have endpoints. */
export function describeSlicePorts(services: readonly ServiceWithSlices[]): readonly Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  for (const { object, given } of services) {
    if (!isProgrammed(object) || !given.some(isFilled)) continue;
    const filled = given.every(isFilled) ? given : given.filter(isFilled);
    for (const { name, protocol, port } of object.spec.ports) {
      if (filled.some(({ object: slice }) => slice.ports.some((each) => isPort(each, name, protocol)))) continue;
      const found = listPorts(filled.flatMap(({ object: slice }) => slice.ports));
      const details = { service: fullName(object.metadata), port, protocol, name, found };
      diagnostics.push(diagnose('unknown-slice-port', details, placeOfOtherPort(object, filled)));
    }
  }
  return diagnostics;
}

/** Whether kube-proxy finds endpoints in the slice. */
function isFilled({ object: { addressType, endpoints } }: Sourced<EndpointSlice>): boolean {
  return endpoints.length > 0 && addressType !== 'FQDN';
}

/** The place of a port of the slices that no port of the Service means, or else of the first one. */
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

/** "http/TCP", or "TCP" without a name: each once, sorted. */
function listPorts(ports: readonly NamedPort[]): readonly string[] {
  const labels = ports.map(({ name, protocol }) => (name === '' ? protocol : `${name}/${protocol}`));
  return [...new Set(labels)].toSorted(compareText);
}

/** Whether kube-proxy programs the endpoints of a Service. */
function isProgrammed({ spec }: Service): boolean {
  return spec.clusterIP !== 'None' && spec.type !== 'ExternalName';
}

/** Target ports whose name no container of the selected Pods has: the Service port gets no endpoint then. */
export function describeTargetPorts(services: readonly Selecting[]): readonly Diagnostic[] {
  return services.flatMap(({ service: { object, source }, label, pods }) => {
    // kube-proxy programs nothing for a headless Service, whatever its ports are.
    if (pods.length === 0 || object.spec.clusterIP === 'None') return [];
    return object.spec.ports.flatMap(({ targetPort, protocol }, i): Diagnostic[] => {
      if (typeof targetPort === 'number') return [];
      if (pods.some((pod) => pod.object.spec.ports.some((each) => isPort(each, targetPort, protocol)))) return [];
      const found = listPorts(pods.flatMap((pod) => pod.object.spec.ports).filter(({ name }) => name !== ''));
      const place = source.place(['spec', 'ports', i, 'targetPort']);
      return [diagnose('unknown-target-port', { service: label, targetPort, protocol, found }, place)];
    });
  });
}

/** Says which Services select no Pod: each that a Pod has nearly the labels of in a warning of its own, and the others in one. */
export function describeUnselective(
  services: readonly Selecting[],
  pods: readonly Sourced<Pod>[],
): readonly Diagnostic[] {
  // The first of each name: another Service of that name is an error of its own.
  const lost = new Map(services.toReversed().flatMap((each) => (each.pods.length > 0 ? [] : [[each.label, each]])));
  // The endpointslice controller takes an empty selector for one that takes all, but no API server hands it one.
  const empty = services
    .filter(({ service: { object } }) => Object.keys(object.spec.selector ?? {}).length === 0)
    .map(({ service: { source }, label }) =>
      diagnose('empty-selector', { service: label }, source.place(['spec', 'selector'])),
    );
  const near: Diagnostic[] = [];
  const far: Selecting[] = [];
  const describe = ({ service, label }: Selecting, meant: string | undefined): Diagnostic => {
    const { selector = {} } = service.object.spec;
    const details = { services: [label], selector: spellLabels(selector, selector), meant };
    return diagnose('selects-nothing', details, service.source.place(['spec', 'selector']));
  };
  for (const [i, each] of [...lost.values()].toReversed().entries()) {
    const meant = i < mostCompared ? findMeantLabels(each, pods) : undefined;
    if (meant === undefined) far.push(each);
    else near.push(describe(each, meant));
  }
  const [first] = far;
  if (!first || far.length === 1) return [...near, ...far.map((each) => describe(each, undefined)), ...empty];
  const place = first.service.source.place(['spec', 'selector']);
  return [...near, diagnose('selects-nothing', { services: far.map(({ label }) => label) }, place), ...empty];
}

/** What Pods of the namespace have of the labels that a Service looks for, where the values are spelled alike. */
function findMeantLabels({ service: { object } }: Selecting, pods: readonly Sourced<Pod>[]): string | undefined {
  const { selector = {} } = object.spec;
  const here = pods.slice(0, mostPods).filter((pod) => pod.object.metadata.namespace === object.metadata.namespace);
  // The keys are the same on both sides: long ones would make any values look alike.
  const values = (labels: Labels): string =>
    keysIn(selector, labels)
      .map((key) => labels[key])
      .join(',');
  const texts = new Map(
    here.map(({ object: { metadata } }) => [values(metadata.labels), spellLabels(selector, metadata.labels)]),
  );
  const near = findNearest(values(selector), [...texts.keys()].toSorted(compareText));
  return near === undefined ? undefined : texts.get(near);
}

type Labels = Readonly<Record<string, string>>;

/** "app=web,tier=front": the labels that a selector asks for, with the values that they have elsewhere. */
function spellLabels(selector: Labels, labels: Labels): string {
  return keysIn(selector, labels)
    .map((key) => `${key}=${labels[key]}`)
    .join(',');
}

function keysIn(selector: Labels, labels: Labels): readonly string[] {
  return Object.keys(selector).filter((key) => Object.hasOwn(labels, key));
}
