import { schedulers } from '../kernel/ipvs.ts';
import type { ForwardingMethod } from '../kernel/ipvs.ts';
import type { Diagnostic } from './diagnostic.ts';
import { groupBy } from './group-by.ts';
import type { Cluster, ServicePort } from './model.ts';
import type { Service, Sourced } from './objects.ts';

/** kpc's own annotations of a Service; kube-proxy knows neither. */
const schedulerAnnotation = 'kpc.dev/ipvs-scheduler';
const forwardingAnnotation = 'kpc.dev/ipvs-forwarding-method';

const forwardingMethods: readonly ForwardingMethod[] = ['masquerade', 'direct', 'tunnel'];

type Annotations = Readonly<Record<string, string>>;

/** The scheduler asked for; undefined where none is, or none that exists (which the annotations' check reports). */
export function readScheduler(annotations: Annotations): string | undefined {
  const scheduler = annotations[schedulerAnnotation];
  return schedulers.find((known) => known === scheduler);
}

/** The forwarding method asked for; undefined as for readScheduler. */
export function readForwardingMethod(annotations: Annotations): ForwardingMethod | undefined {
  const method = annotations[forwardingAnnotation];
  return forwardingMethods.find((known) => known === method);
}

/**
 * Checks kpc's annotations of all Services: values that exist, and no forwarding method that would have to change a
 * port. Only masquerading rewrites packets; a direct or tunnelled packet reaches the pod with the port it came with.
 */
export function checkAnnotations(services: readonly Sourced<Service>[], cluster: Cluster): readonly Diagnostic[] {
  const annotated = services.filter(({ object: { metadata } }) =>
    [schedulerAnnotation, forwardingAnnotation].some((name) => name in metadata.annotations),
  );
  if (annotated.length === 0) return [];
  const portsOf = groupBy(cluster.servicePorts, ({ namespace, service }) => `${namespace}/${service}`);
  return annotated.flatMap((service) => {
    const { namespace, name } = service.object.metadata;
    return [
      ...checkValue(service, schedulerAnnotation, schedulers),
      ...checkValue(service, forwardingAnnotation, forwardingMethods),
      ...checkPorts(service, portsOf.get(`${namespace}/${name}`) ?? []),
    ];
  });
}

function checkValue(
  { object, source }: Sourced<Service>,
  annotation: string,
  known: readonly string[],
): readonly Diagnostic[] {
  const value = object.metadata.annotations[annotation];
  if (value === undefined || known.includes(value)) return [];
  const text = `${annotation} is "${value}": write one of ${known.join(', ')}`;
  return [{ severity: 'error', code: 'bad-annotation', text, place: annotationPlace(source, annotation) }];
}

function checkPorts({ object, source }: Sourced<Service>, ports: readonly ServicePort[]): readonly Diagnostic[] {
  const method = readForwardingMethod(object.metadata.annotations);
  if (method === undefined || method === 'masquerade') return [];
  const place = annotationPlace(source, forwardingAnnotation);
  return [...new Set(ports.flatMap(portChanges))].map((change) => ({
    severity: 'error',
    code: 'forwarding-changes-port',
    text: `${forwardingAnnotation} is "${method}", which cannot change a port, but ${change}`,
    place,
  }));
}

/** Each port number that a packet to the Service port would have to be given on its way. */
export function portChanges(port: ServicePort): readonly string[] {
  const targets = [...new Set(port.endpoints.map((endpoint) => endpoint.port))];
  return [
    ...targets
      .filter((target) => target !== port.port)
      .map((target) => `${port.label} has port ${port.port} and its endpoints port ${target}: make them equal`),
    ...(port.nodePort === 0
      ? []
      : [
          `${port.label} has node port ${port.nodePort}: use type ClusterIP, or allocateLoadBalancerNodePorts: false with type LoadBalancer`,
        ]),
  ];
}

function annotationPlace(source: Sourced<Service>['source'], annotation: string) {
  return source.place(['metadata', 'annotations', annotation]);
}
