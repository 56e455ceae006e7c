import { findNearest } from '../../base/find-nearest.ts';
import { namesOf, type Names } from '../by-name.ts';
import { compareText } from '../../kernel/compare-text.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { MeantService, MeantSlicePort } from '../../diagnostics/endpoints.ts';
import { serviceNameLabel, type ServiceWithSlices } from '../endpoints.ts';
import type { Endpoints, EndpointSlice, Service, ServicePortSpec, Sourced } from '../objects.ts';
import type { Place } from '../../kernel/place.ts';

/** More strays than these are not compared with the Services that lack endpoints. */
const maxCompared = 200;

/** An EndpointSlice or Endpoints whose Service the input does not hold. */
interface Stray {
  readonly kind: 'EndpointSlice' | 'Endpoints';
  readonly namespace: string;
  readonly name: string;
  readonly place: Place;
}

/**
 * Slices and Endpoints that name no Service of the input: each that comes near one without endpoints in a warning of its
 * own, and all the others in one. A cluster's output may hold many of them, as where only some Services are given.
 */
export function describeStrays(
  services: readonly ServiceWithSlices[],
  slices: readonly Sourced<EndpointSlice>[],
  endpoints: readonly Sourced<Endpoints>[],
): readonly Diagnostic[] {
  if (services.length === 0) return [];
  // Mostly each slice is one of a Service: then no name is looked up.
  if (endpoints.length === 0 && services.reduce((sum, { given }) => sum + given.length, 0) === slices.length) return [];
  const strays = listStrays(slices, endpoints, namesOf(services.map(({ object }) => object.metadata)));
  if (strays.length === 0) return [];
  const lacking = services
    .filter(({ object, isServed }) => isProgrammed(object) && !isServed)
    .map(({ object }) => object)
    .toSorted((a, b) => compareText(labelOf(a), labelOf(b)));
  const compared = strays.map((stray, i) => ({
    stray,
    meant: i < maxCompared ? findMeant(stray, strays, lacking) : undefined,
  }));
  const far = compared.filter(({ meant }) => meant === undefined).map(({ stray }) => stray);
  return [
    ...compared.flatMap(({ stray, meant }) => (meant === undefined ? [] : [describeOne(stray, meant)])),
    ...describeFar(far),
  ];
}

/** One for each Service that is named and not known, sorted by namespace and name. */
function listStrays(
  slices: readonly Sourced<EndpointSlice>[],
  endpoints: readonly Sourced<Endpoints>[],
  known: Names,
): readonly Stray[] {
  const byName = new Map<string, Stray>();
  const add = (kind: Stray['kind'], namespace: string, name: string, place: () => Place): void => {
    if (known.has(namespace, name)) return;
    const key = `${namespace}/${name}`;
    if (!byName.has(key)) byName.set(key, { kind, namespace, name, place: place() });
  };
  for (const { object, source } of slices) {
    const { namespace, labels } = object.metadata;
    const name = labels[serviceNameLabel];
    if (name) add('EndpointSlice', namespace, name, () => source.place(['metadata', 'labels', serviceNameLabel]));
  }
  for (const { object, source } of endpoints) {
    const { namespace, name } = object.metadata;
    add('Endpoints', namespace, name, () => source.place(['metadata', 'name']));
  }
  return [...byName.values()].toSorted((a, b) => compareText(`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`));
}

/** Which Service without endpoints a stray is probably for. */
function findMeant(
  { namespace, name }: Stray,
  strays: readonly Stray[],
  lacking: readonly Service[],
): MeantService | undefined {
  const here = lacking.filter(({ metadata }) => metadata.namespace === namespace).map(({ metadata }) => metadata.name);
  const near = findNearest(name, here) ?? here.find((each) => isShortFor(each, name) || isShortFor(name, each));
  if (near !== undefined) return { kind: 'name', name: near };
  const beside = strays.filter((stray) => stray.namespace === namespace);
  const [only] = here;
  if (only !== undefined && here.length === 1 && beside.length === 1) return { kind: 'name', name: only };
  const elsewhere = lacking.find(({ metadata }) => metadata.name === name);
  return elsewhere && { kind: 'namespace', name, namespace: elsewhere.metadata.namespace };
}

/** Whether a word is a part of the other one: "web" of "web-svc". */
function isShortFor(short: string, long: string): boolean {
  return short.length >= 3 && long.includes(short);
}

function describeOne({ kind, namespace, name, place }: Stray, meant: MeantService | undefined): Diagnostic {
  return diagnose('no-such-service', { problem: 'one', kind, service: `${namespace}/${name}`, meant }, place);
}

function describeFar(strays: readonly Stray[]): readonly Diagnostic[] {
  const [first, ...others] = strays;
  if (!first) return [];
  if (others.length === 0) return [describeOne(first, undefined)];
  const services = strays.map(({ namespace, name }) => `${namespace}/${name}`);
  return [diagnose('no-such-service', { problem: 'several', services })];
}

/** Service ports that no slice of their Service has a port for, though slices of it have endpoints. */
export function describeSlicePorts(services: readonly ServiceWithSlices[]): readonly Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  services.forEach(({ object, given }) => {
    if (!isProgrammed(object) || !given.some(isFilled)) return;
    const filled = given.every(isFilled) ? given : given.filter(isFilled);
    object.spec.ports.forEach((port) => {
      if (!hasPort(filled, port)) diagnostics.push(describeSlicePort(object, port, filled));
    });
  });
  return diagnostics;
}

/** Whether kube-proxy finds endpoints in the slice. */
function isFilled({ object: { addressType, endpoints } }: Sourced<EndpointSlice>): boolean {
  return endpoints.length > 0 && addressType !== 'FQDN';
}

function hasPort(slices: readonly Sourced<EndpointSlice>[], { name, protocol }: ServicePortSpec): boolean {
  return slices.some(({ object }) => object.ports.some((port) => port.name === name && port.protocol === protocol));
}

function describeSlicePort(
  service: Service,
  port: ServicePortSpec,
  slices: readonly Sourced<EndpointSlice>[],
): Diagnostic {
  const all = slices.flatMap(({ object }) => object.ports);
  const taken = new Set(service.spec.ports.map(({ name, protocol }) => `${name}/${protocol}`));
  const free = all.filter(({ name, protocol }) => !taken.has(`${name}/${protocol}`));
  const sorted = slices.toSorted((a, b) => compareText(a.object.metadata.name, b.object.metadata.name));
  const { name, protocol, port: number } = port;
  const meant = findMeantPort(port, free);
  const details = { service: labelOf(service), port: number, protocol, name, meant };
  return diagnose('unknown-slice-port', details, placeOf(meant, port, sorted) ?? sorted[0]?.source.place(['ports', 0]));
}

/** Where the slices have the port that is meant. */
function placeOf(
  meant: MeantSlicePort | undefined,
  port: ServicePortSpec,
  slices: readonly Sourced<EndpointSlice>[],
): Place | undefined {
  if (!meant) return undefined;
  const name = nameInSlice(meant, port);
  for (const { object, source } of slices) {
    const at = object.ports.findIndex((each) => each.name === name);
    if (at >= 0) return source.place(['ports', at]);
  }
  return undefined;
}

function nameInSlice(meant: MeantSlicePort, port: ServicePortSpec): string {
  switch (meant.kind) {
    case 'protocol':
      return port.name;
    case 'no-name':
    case 'other-name':
      return meant.name;
    case 'missing-name':
      return '';
  }
}

/** What to write, judged by the ports of the slices that no port of the Service uses. */
function findMeantPort(port: ServicePortSpec, free: EndpointSlice['ports']): MeantSlicePort | undefined {
  const other = free.find(({ name }) => name === port.name);
  if (other) return { kind: 'protocol', protocol: other.protocol };
  const candidates = free.filter(({ protocol }) => protocol === port.protocol).map(({ name }) => name);
  if (port.name === '') return candidates[0] ? { kind: 'no-name', name: candidates[0] } : undefined;
  const near = findNearest(
    port.name,
    candidates.filter((name) => name !== ''),
  );
  if (near !== undefined) return { kind: 'other-name', name: near };
  return candidates.includes('') ? { kind: 'missing-name' } : undefined;
}

/** Whether kube-proxy programs the endpoints of a Service. */
function isProgrammed({ spec }: Service): boolean {
  return spec.clusterIP !== 'None' && spec.type !== 'ExternalName';
}

function labelOf({ metadata }: Service): string {
  return `${metadata.namespace}/${metadata.name}`;
}
