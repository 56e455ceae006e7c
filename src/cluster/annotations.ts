// kpc's own annotations, and the IPVS settings that they give a Service.
import type { PortChange } from '../base/findings/services.ts';
import { schedulers, type ForwardingMethod } from '../kernel/ipvs/ipvs.ts';
import { foundOf } from '../base/findings/fields.ts';
import { diagnose, distinct, type Finding } from '../base/findings/finding.ts';
import type { Cluster, ServicePort } from './model.ts';
import { fullName, type Service, type Sourced } from './objects.ts';

export const ownAnnotations = {
  /** On any object: the codes of findings that kpc lint accepts, such as "external-ips, open-node-port". */
  ignore: 'kpc.dev/ignore',
  scheduler: 'kpc.dev/ipvs-scheduler',
  forwarding: 'kpc.dev/ipvs-forwarding-method',
} as const;

const names: readonly string[] = Object.values(ownAnnotations);

/** Whether a name looks like kpc's but is not, such as a misspelling. */
export function isStrayAnnotation(name: string): boolean {
  return name.startsWith('kpc.dev/') && !names.includes(name);
}

const { scheduler: schedulerAnnotation, forwarding: forwardingAnnotation } = ownAnnotations;

const forwardingMethods: readonly ForwardingMethod[] = ['masquerade', 'direct', 'tunnel'];

type Annotations = Readonly<Record<string, string>>;

/** Undefined if absent or unknown; the check of annotations reports unknown ones. */
export function readScheduler(annotations: Annotations): string | undefined {
  const scheduler = annotations[schedulerAnnotation];
  return schedulers.find((known) => known === scheduler);
}

/** Undefined if absent or unknown; the check of annotations reports unknown ones. */
export function readForwardingMethod(annotations: Annotations): ForwardingMethod | undefined {
  const method = annotations[forwardingAnnotation];
  return forwardingMethods.find((known) => known === method);
}

/** Checks kpc's annotations: only masquerading can change a port; direct and tunnelled packets keep theirs. */
export function checkAnnotations(services: readonly Sourced<Service>[], cluster: Cluster): readonly Finding[] {
  const annotated = services.filter(({ object: { metadata } }) =>
    [schedulerAnnotation, forwardingAnnotation].some((name) => name in metadata.annotations),
  );
  if (annotated.length === 0) return [];
  return annotated.flatMap((service) => {
    return [
      ...checkValue(service, schedulerAnnotation, schedulers),
      ...checkValue(service, forwardingAnnotation, forwardingMethods),
      ...checkPortChanges(service, cluster.addresses.portsOf(fullName(service.object.metadata))),
    ];
  });
}

function checkValue(
  { object, source }: Sourced<Service>,
  annotation: string,
  known: readonly string[],
): readonly Finding[] {
  const value = object.metadata.annotations[annotation];
  if (value === undefined || known.includes(value)) return [];
  const details = { field: annotation, found: foundOf(value), expected: `one of ${known.join(', ')}` };
  return [diagnose('bad-value', details, annotationPlace(source, annotation))];
}

function checkPortChanges({ object, source }: Sourced<Service>, ports: readonly ServicePort[]): readonly Finding[] {
  const method = readForwardingMethod(object.metadata.annotations);
  if (method === undefined || method === 'masquerade') return [];
  const place = annotationPlace(source, forwardingAnnotation);
  const changes = ports.flatMap(portChanges);
  return distinct(changes.map((change) => diagnose('forwarding-changes-port', { method, ...change }, place)));
}

export function portChanges({ label, port, nodePort, endpoints }: ServicePort): readonly PortChange[] {
  const targets = [...new Set(endpoints.map((endpoint) => endpoint.port))].filter((target) => target !== port);
  return [...targets.map((target) => ({ label, port, target })), ...(nodePort === 0 ? [] : [{ label, nodePort }])];
}

function annotationPlace(source: Sourced<Service>['source'], annotation: string) {
  return source.place(['metadata', 'annotations', annotation]);
}
