import type { Diagnostic } from '../cluster/diagnostic.ts';
import { groupBy } from '../cluster/group-by.ts';
import type { ObjectMeta, Sourced } from '../cluster/objects.ts';
import type { CollectedObjects } from './read-objects.ts';

/** Errors for objects of the same kind, namespace and name: a cluster has one of them only, and nothing says which. */
export function findDuplicates({
  services,
  slices,
  endpoints,
  nodes,
  serviceCidrs,
  pods,
  workloads,
}: CollectedObjects): Diagnostic[] {
  return [
    ...duplicatesOf('Service', services),
    ...duplicatesOf('EndpointSlice', slices),
    ...duplicatesOf('Endpoints', endpoints),
    ...duplicatesOf('Node', nodes),
    ...duplicatesOf('Pod', pods),
    ...[...groupBy(workloads, ({ object }) => object.kind)].flatMap(([kind, group]) => duplicatesOf(kind, group)),
    ...duplicatesOf('ServiceCIDR', serviceCidrs),
  ];
}

/** Kinds whose objects have no namespace. */
const clusterScoped: ReadonlySet<string> = new Set(['Node', 'ServiceCIDR']);

function duplicatesOf(kind: string, objects: readonly Sourced<{ readonly metadata: ObjectMeta }>[]): Diagnostic[] {
  const seen = new Map<string, (typeof objects)[number]>();
  const diagnostics: Diagnostic[] = [];
  for (const sourced of objects) {
    const { namespace, name } = sourced.object.metadata;
    if (name === '') continue;
    const label = clusterScoped.has(kind) ? name : `${namespace}/${name}`;
    const first = seen.get(label);
    if (!first) {
      seen.set(label, sourced);
      continue;
    }
    const { file, line } = first.source.place(['metadata', 'name']).locate();
    const text = `duplicate ${kind} ${label}, first defined at ${file}:${line}`;
    const place = sourced.source.place(['metadata', 'name']);
    diagnostics.push({ severity: 'error', code: 'duplicate-object', text, place });
  }
  return diagnostics;
}
