import type { ShownPort } from './model.ts';

export interface AssumedWorkload {
  /** "Deployment namespace/name". */
  readonly workload: string;
  readonly pods: readonly AssumedPod[];
}

export interface AssumedPod {
  readonly name: string;
  readonly node?: string | undefined;
  /** At most one of each family. */
  readonly addresses: readonly string[];
}

/** Where a Service port has no endpoint: on this node, or, if kpc chose where its Pods run, on nodes without one of them. */
export function placeWithout({ endpoints = [], service }: Pick<ShownPort, 'endpoints' | 'service'>): string {
  return isPlacedByKpc({ endpoints }) && service !== undefined
    ? `on nodes without a Pod of ${service}`
    : 'on this node';
}

/** Whether kpc chose the nodes of a Service port's endpoints. */
export function isPlacedByKpc({ endpoints = [] }: Pick<ShownPort, 'endpoints'>): boolean {
  return endpoints.length > 0 && endpoints.every(({ status }) => status?.assumed);
}
