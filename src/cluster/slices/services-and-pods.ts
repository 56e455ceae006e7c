import type { Names } from '../by-name.ts';
import { compareText } from '../../kernel/compare-text.ts';
import type { Pod, Service, Sourced } from '../objects.ts';
import type { PodIndex } from './pod-index.ts';

/** A Service with the Pods that it selects. */
export interface Selecting {
  readonly service: Sourced<Service>;
  readonly label: string;
  readonly pods: readonly Sourced<Pod>[];
}

/** Whether the Service is among those that the input holds slices or Endpoints of. */
export function hasEndpoints({ object: { metadata } }: Sourced<Service>, given: Names): boolean {
  return given.has(metadata.namespace, metadata.name);
}

/** The Services that the endpointslice controller is for, sorted by namespace and name. */
export function findSelecting(services: readonly Sourced<Service>[], index: PodIndex): readonly Selecting[] {
  return services
    .flatMap((service): Selecting[] => {
      const { metadata, spec } = service.object;
      if (!spec.selector || spec.type === 'ExternalName') return [];
      const label = `${metadata.namespace}/${metadata.name}`;
      return [{ service, label, pods: index.select(metadata.namespace, spec.selector) }];
    })
    .toSorted((a, b) => compareText(a.label, b.label));
}
