// Differences between two sides that affect packets, but appear neither in the kernel nor in single traced packets.
import { groupBy } from '../../cluster/grouping.ts';
import { fullName, type Ingress } from '../../cluster/objects.ts';
import { compareText } from '../../kernel/compare.ts';
import type { Snapshot, SnapshotObjects } from '../../snapshot/snapshot.ts';
import { isUngiven, sourceFields, type ServiceChange } from './service-changes.ts';

export type BeyondKernel =
  /** How many objects of a kind differ that kube-proxy does not read. */
  | { readonly kind: 'objects'; readonly of: string; readonly count: number }
  /** How many unchanged objects of a kind lead to a Service that changed. */
  | { readonly kind: 'ways'; readonly of: string; readonly count: number }
  /** Services without endpoints on both sides that differ in the fields from which endpoints are made. */
  | { readonly kind: 'endpoints'; readonly services: readonly string[] }
  /** Services that differ in session affinity, which only affects a client's later connections. */
  | { readonly kind: 'later-connections'; readonly services: readonly string[] };

/** `changes`: how the Services of the two sides differ; undefined if one side does not record them. */
export function beyondKernel(
  from: Snapshot,
  to: Snapshot,
  changes: readonly ServiceChange[] = [],
): readonly BeyondKernel[] {
  return [
    ...(from.kind === 'manifests' && to.kind === 'manifests' ? beyondServices(from.objects, to.objects, changes) : []),
    ...namingServices(
      'endpoints',
      changedIn(sourceFields, changes).filter((name) =>
        [from, to].every((side) => side.kind !== 'dump' && isUngiven(name, side)),
      ),
    ),
    ...namingServices('later-connections', changedIn(['sessionAffinity'], changes)),
  ];
}

function beyondServices(
  from: SnapshotObjects,
  to: SnapshotObjects,
  changes: readonly ServiceChange[],
): readonly BeyondKernel[] {
  const [before, after] = [unreadObjects(from), unreadObjects(to)];
  const differing = [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [old, fresh] = [before.get(name), after.get(name)];
    return old?.text === fresh?.text ? [] : ((old ?? fresh)?.kind ?? []);
  });
  const changed = new Set(changes.map(({ service }) => service));
  const leading = to.ingresses.flatMap(({ object }) => {
    const name = keyOf(object.kind, object);
    return before.get(name)?.text === after.get(name)?.text && leadsTo(changed, object) ? [object.kind] : [];
  });
  return [...countKinds('objects', differing), ...countKinds('ways', leading)];
}

/** Objects that affect packets besides kube-proxy's rules, by kind and name. Creation times do not matter. */
function unreadObjects({ policies, ingresses, gateways, referenceGrants }: SnapshotObjects) {
  const all = [
    ...policies.map(({ object }) => ({ kind: 'NetworkPolicy', object })),
    ...ingresses.map(({ object }) => ({ kind: object.kind, object })),
    ...gateways.map(({ object }) => ({ kind: object.of === undefined ? 'Gateway' : 'ListenerSet', object })),
    ...referenceGrants.map(({ object }) => ({ kind: 'ReferenceGrant', object })),
  ];
  const named = all.map(({ kind, object }) => {
    const { metadata: _, ...fields } = object;
    return [keyOf(kind, object), { kind, text: JSON.stringify({ ...fields, created: undefined }) }] as const;
  });
  return new Map(named);
}

function keyOf(kind: string, { metadata }: Pick<Ingress, 'metadata'>): string {
  return `${kind} ${fullName(metadata)}`;
}

function leadsTo(services: ReadonlySet<string>, { routes }: Ingress): boolean {
  const backends = routes.flatMap((route) => route.backends);
  return backends.some(
    ({ service, namespace }) => service !== undefined && services.has(fullName({ namespace, name: service })),
  );
}

function countKinds(kind: 'objects' | 'ways', kinds: readonly string[]): readonly BeyondKernel[] {
  const byKind = groupBy(kinds.toSorted(compareText), (each) => each);
  return [...byKind].map(([of, own]) => ({ kind, of, count: own.length }));
}

/** The Services that differ in one of these fields. */
function changedIn(fields: readonly string[], changes: readonly ServiceChange[]): readonly string[] {
  const own = changes.filter(({ reasons }) =>
    reasons.some((reason) => reason.kind === 'field' && fields.includes(reason.field)),
  );
  return [...new Set(own.map(({ service }) => service))];
}

function namingServices(kind: 'endpoints' | 'later-connections', services: readonly string[]): readonly BeyondKernel[] {
  return services.length === 0 ? [] : [{ kind, services }];
}
