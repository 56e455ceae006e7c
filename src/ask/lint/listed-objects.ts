import { fullName, type ObjectMeta, type Source } from '../../cluster/objects.ts';
import { keyOfObject, type Inputs } from '../../input/read-inputs.ts';
import type { Place } from '../../kernel/place.ts';

/** An object of the input, right or not. */
export interface ListedObject {
  readonly kind: string;
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'annotations'>;
  readonly source: Source;
}

/** The objects that may have annotations for kpc lint. */
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

/** Returns a function that finds the object of a place; undefined for a place that is in none. */
export function objectFinder(inputs: Inputs): (place: Place | undefined) => ListedObject | undefined {
  let objects: ReadonlyMap<string | undefined, ListedObject> | undefined;
  return (place) => {
    const key = place && keyOfObject(place);
    if (key === undefined) return undefined;
    objects ??= new Map(listObjects(inputs).map((each) => [keyOfObject(each.source.place([])), each]));
    return objects.get(key);
  };
}

/** "Service default/web". */
export function titleOf({ kind, metadata }: Pick<ListedObject, 'kind' | 'metadata'>): string {
  return `${kind} ${fullName(metadata)}`;
}
