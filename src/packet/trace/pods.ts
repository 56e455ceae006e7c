import type { ContainerPort, Pod, Service, Sourced } from '../../cluster/objects.ts';
import type { SocketAddress } from '../../kernel/socket-address.ts';

/** What is known of a Pod, or of what may be one. */
export interface KnownPod {
  /** Undefined where it is not known. */
  readonly namespace: string | undefined;
  readonly labels: KnownLabels;
  /** Its named ports; undefined where they are not known. */
  readonly ports: readonly ContainerPort[] | undefined;
  readonly nodeName: string;
}

export interface KnownLabels {
  readonly labels: Readonly<Record<string, string>>;
  /** Whether there are no others. */
  readonly isWhole: boolean;
}

/**
 * The Pods by their addresses. Of an endpoint whose Pod is not in the input, its Service's selector says some of the
 * labels. What runs in a host's network is no Pod to network plugins.
 */
export function indexPods(
  pods: readonly Sourced<Pod>[],
  services: readonly Sourced<Service>[],
  /** Service, as "namespace/name" → its endpoints. */
  endpoints: ReadonlyMap<string, readonly SocketAddress[]>,
  hosts: ReadonlySet<string>,
): ReadonlyMap<string, KnownPod> {
  const known = new Map<string, KnownPod>();
  for (const { object } of services) {
    const { metadata, spec } = object;
    if (!spec.selector) continue;
    const labels = { labels: spec.selector, isWhole: false };
    for (const { address } of endpoints.get(`${metadata.namespace}/${metadata.name}`) ?? []) {
      known.set(address.text, { namespace: metadata.namespace, labels, ports: undefined, nodeName: '' });
    }
  }
  for (const { object } of pods) {
    const { metadata, spec, status } = object;
    if (spec.hostNetwork || !status || status.ended) continue;
    const labels = { labels: metadata.labels, isWhole: true };
    const pod = { namespace: metadata.namespace, labels, ports: spec.ports, nodeName: spec.nodeName };
    for (const { text } of status.addresses) known.set(text, pod);
  }
  for (const host of hosts) known.delete(host);
  return known;
}
