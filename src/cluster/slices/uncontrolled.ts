import type { Owner, Pod, Sourced, Workload } from '../objects.ts';

/** The label that the Pods and the ReplicaSet of one template of a Deployment share. */
const templateHashLabel = 'pod-template-hash';

/** What names an object that makes Pods. */
export function ownerKey(namespace: string, { kind, name }: Owner): string {
  return `${kind} ${namespace}/${name}`;
}

/**
 * The workloads whose Pods kpc assumes: those that no other workload of the input controls, as a Deployment
 * controls its ReplicaSets, and that have no Pods in the input.
 */
export function uncontrolledWorkloads(
  workloads: readonly Sourced<Workload>[],
  real: readonly Sourced<Pod>[],
): readonly Sourced<Workload>[] {
  const byKey = indexWorkloads(workloads);
  const served = new Set(real.flatMap(({ object }) => ownersOf(object, byKey)));
  return workloads.filter(({ object }) => {
    const { kind, metadata, owner } = object;
    if (owner && byKey.has(ownerKey(metadata.namespace, owner))) return false;
    return !served.has(ownerKey(metadata.namespace, { kind, name: metadata.name }));
  });
}

/** The Pods without a status that nothing in the input controls. */
export function standalonePods(
  pods: readonly Sourced<Pod>[],
  workloads: readonly Sourced<Workload>[],
): readonly Sourced<Pod>[] {
  const byKey = indexWorkloads(workloads);
  return pods.filter(
    ({ object }) => object.status === undefined && !ownersOf(object, byKey).some((key) => byKey.has(key)),
  );
}

type Workloads = ReadonlyMap<string, Workload>;

function indexWorkloads(workloads: readonly Sourced<Workload>[]): Workloads {
  return new Map(
    workloads.map(({ object }) => {
      const { kind, metadata } = object;
      return [ownerKey(metadata.namespace, { kind, name: metadata.name }), object];
    }),
  );
}

/** What controls the Pod, and what controls that: the name of an absent ReplicaSet gives its Deployment. */
function ownersOf({ metadata, owner }: Pod, byKey: Workloads): readonly string[] {
  if (!owner) return [];
  const { namespace, labels } = metadata;
  const key = ownerKey(namespace, owner);
  const above = byKey.get(key)?.owner;
  if (above) return [key, ownerKey(namespace, above)];
  const suffix = `-${labels[templateHashLabel] ?? ''}`;
  if (owner.kind !== 'ReplicaSet' || suffix === '-' || !owner.name.endsWith(suffix)) return [key];
  return [key, ownerKey(namespace, { kind: 'Deployment', name: owner.name.slice(0, -suffix.length) })];
}
