import type { ShownPort } from './model.ts';

export interface AssumedWorkload {
  /** "Deployment namespace/name". */
  readonly workload: string;
  readonly pods: readonly AssumedPod[];
}

export interface AssumedPod {
  readonly name: string;
  readonly node?: string | undefined;
  /** One of each family at most. */
  readonly addresses: readonly string[];
}

/**
 * Where a Service port has no endpoint: on this node, or on those that none of its Pods runs on, where kpc alone chose the nodes of
 * its Pods.
 */
export function placeWithout({ endpoints = [], service }: Pick<ShownPort, 'endpoints' | 'service'>): string {
  return isPlacedByKpc({ endpoints }) && service !== undefined
    ? `on nodes without a Pod of ${service}`
    : 'on this node';
}

/** Whether kpc chose which nodes the endpoints of a Service port are on. */
export function isPlacedByKpc({ endpoints = [] }: Pick<ShownPort, 'endpoints'>): boolean {
  return endpoints.length > 0 && endpoints.every(({ status }) => status?.assumed);
}
