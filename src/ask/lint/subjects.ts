import { fullName, titleOfObject } from '../../cluster/objects.ts';
import { keyOfObject, type Inputs } from '../../input/read-inputs.ts';
import type { Place } from '../../kernel/place.ts';
import type { Finding } from '../../base/findings/finding.ts';
import type { LoadedInputs } from '../../snapshot/open/load-texts.ts';
import { serviceName } from '../../cluster/model.ts';

/** An object in the input, whether valid or not. */
export type ListedObject = Inputs['faulty'][number];

export function listObjects({
  services,
  slices,
  endpoints,
  nodes,
  pods,
  workloads,
  policies,
  gateways,
  namespaces,
  ingresses,
  faulty,
}: Inputs): readonly ListedObject[] {
  const lists = {
    Service: services,
    EndpointSlice: slices,
    Endpoints: endpoints,
    Node: nodes,
    Pod: pods,
    NetworkPolicy: policies,
    Gateway: gateways,
    Namespace: namespaces,
  } as const;
  return [
    ...Object.entries(lists).flatMap(([kind, list]) =>
      list.map(({ object, source }) => ({ kind, metadata: object.metadata, source })),
    ),
    ...[...workloads, ...ingresses].map(({ object, source }) => ({
      kind: object.kind,
      metadata: object.metadata,
      source,
    })),
    ...faulty,
  ];
}

function objectFinder(inputs: Inputs): (place: Place | undefined) => ListedObject | undefined {
  let objects: ReadonlyMap<string | undefined, ListedObject> | undefined;
  return (place) => {
    const key = place && keyOfObject(place);
    if (key === undefined) return undefined;
    objects ??= new Map(listObjects(inputs).map((each) => [keyOfObject(each.source.place([])), each]));
    return objects.get(key);
  };
}

export interface Subjects {
  /** Adds the subject of a finding: the Service that the arguments name, or else the object at the finding's place. */
  readonly name: (finding: Finding) => Finding;
  readonly servicesOf: (finding: Finding) => readonly string[];
  readonly isInObject: (finding: Finding) => boolean;
}

export function subjectsOf({ inputs, cluster }: LoadedInputs): Subjects {
  const objectAt = objectFinder(inputs);
  const serviceOfLabel = new Map(cluster.servicePorts.map((port) => [port.label, serviceName(port)]));
  const find = (finding: Finding): Finding['about'] => {
    const object = objectAt(finding.place);
    const { service, services, servicePort, rival } = finding.arguments as Readonly<Record<string, unknown>>;
    const [only, ...others] = Array.isArray(services) ? services.map(String) : [];
    const named = typeof service === 'string' ? service : others.length === 0 ? only : undefined;
    const label = servicePort ?? rival;
    const ofLabel = typeof label === 'string' ? serviceOfLabel.get(label) : undefined;
    const name = named ?? ofLabel ?? (object?.kind === 'Service' ? fullName(object.metadata) : undefined);
    if (name !== undefined) return { kind: 'service', name };
    return object && { kind: 'object', name: titleOfObject(object) };
  };
  return {
    name: (finding) => ({ ...finding, about: find(finding) }),
    servicesOf: ({ about, arguments: details }) => {
      // `holder` is the name of a Service, or the label of a Service port.
      const { holder } = details as Readonly<Record<string, unknown>>;
      const named = typeof holder === 'string' ? [serviceOfLabel.get(holder) ?? holder] : [];
      return about?.kind === 'service' ? [about.name, ...named] : named;
    },
    isInObject: ({ place }) => objectAt(place) !== undefined,
  };
}
