import type { Into, ToBuild } from '../../base/findings/files.ts';
import { folderOf, pathBelow } from '../../base/names.ts';
import { diagnose, placeAtLine, mostOfCode, type Finding } from '../../base/findings/finding.ts';
import type { DuplicateObject } from '../../base/findings/objects.ts';
import { ByName, groupBy } from '../../cluster/grouping.ts';
import type { ObjectMeta, Sourced } from '../../cluster/objects.ts';
import type { Location, Place } from '../../kernel/place.ts';
import type { CollectedObjects } from './read-objects.ts';
import type { InputDocument } from '../documents/document.ts';
import { findBuilder } from '../files/kustomizations.ts';
import { isPlainWord } from '../files/not-manifests.ts';
import type { FolderOrigin } from '../documents/text-file.ts';

interface Duplicate {
  readonly kind: string;
  readonly name: string;
  readonly first: Location;
  readonly place: Place;
  readonly again: object;
}

export interface DuplicateFinding {
  readonly diagnostic: Finding;
  readonly again: readonly object[];
}

/**
 * Reports objects of the same kind, namespace and name, because a cluster can have only one. Makes one error for two folders that share
 * many objects, such as a base and its rendering, and one for an object in many files. `origins` says how each file was found. Only objects
 * that are still included get advice on excluding them. Objects in `unread` get only a warning, because kpc leaves them out anyway.
 */
export function findDuplicates(
  { services, slices, endpoints, nodes, serviceCidrs, pods, workloads }: CollectedObjects,
  origins: ReadonlyMap<string, FolderOrigin>,
  kustomizations: readonly InputDocument[],
  fate: 'refused' | 'left-out' | 'unread',
  into: Into,
): readonly DuplicateFinding[] {
  const all = [
    ...duplicatesOf('Service', services),
    ...duplicatesOf('EndpointSlice', slices),
    ...duplicatesOf('Endpoints', endpoints),
    ...duplicatesOf('Node', nodes),
    ...duplicatesOf('Pod', pods),
    ...[...groupBy(workloads, ({ object }) => object.kind)].flatMap(([kind, group]) => duplicatesOf(kind, group)),
    ...duplicatesOf('ServiceCIDR', serviceCidrs),
  ];
  const pairs = [...groupBy(all, (duplicate) => JSON.stringify(pairOf(duplicate))).values()];
  // Report an object once if it is in many files that share no other object.
  const alone = groupBy(
    pairs.flatMap((group) => (group.length === 1 ? group : [])),
    ({ kind, name }) => `${kind} ${name}`,
  );
  const describe = (group: readonly [Duplicate, ...Duplicate[]], isOne: boolean): readonly DuplicateFinding[] => {
    if (fate !== 'refused')
      return describeGroup(group, isOne, origins, undefined, fate === 'unread' ? { isUnread: true } : {});
    const [{ first, place }] = group;
    const folder = findBuilder(kustomizations, first.file) ?? findBuilder(kustomizations, place.file);
    return describeGroup(group, isOne, origins, folder === undefined ? {} : { build: { folder, into } });
  };
  return [
    ...pairs.flatMap((group) => (group.length > 1 ? describe(group, false) : [])),
    ...[...alone.values()].flatMap((group) => describe(group, true)),
  ];
}

/** Returns two places with the same objects: two folders, or two files in one folder. */
function pairOf({ first, place }: Duplicate): readonly [first: string, second: string] {
  const folders = [folderOf(first.file), folderOf(place.file)] as const;
  return folders[0] === folders[1] ? [first.file, place.file] : folders;
}

function describeGroup(
  group: readonly [Duplicate, ...Duplicate[]],
  isOne: boolean,
  origins: ReadonlyMap<string, FolderOrigin>,
  advice: { readonly build?: ToBuild } | undefined,
  unread: Pick<DuplicateObject, 'isUnread'> = {},
): readonly DuplicateFinding[] {
  const [otherFolder, folder] = pairOf(group[0]);
  // Only files found in a folder can be excluded, not files that the user named.
  const origin = otherFolder === folder ? undefined : origins.get(group[0].place.file);
  const pattern = origin && pathBelow(origin.folder, folder);
  const leaveOut = origin && advice && { ...advice, pattern: pattern && isPlainWord(pattern) ? pattern : undefined };
  const describe = (
    { kind, name, first: { file, line }, place }: Duplicate,
    several: Pick<DuplicateObject, 'among' | 'files'> = {},
  ) => diagnose('duplicate-object', { kind, name, first: { file, line }, ...several, leaveOut, ...unread }, place);
  if (isOne && group.length > 1) {
    const files = new Set(group.flatMap(({ first, place }) => [first.file, place.file])).size;
    return [{ diagnostic: describe(group[0], { files }), again: group.map(({ again }) => again) }];
  }
  if (group.length === 1 || !origin) {
    const rest = group.slice(mostOfCode);
    const severity = unread.isUnread ? 'warning' : 'error';
    const sum = diagnose(
      'not-shown',
      { severity, count: rest.length, of: 'duplicate-object' },
      placeAtLine(group[0].place.file),
    );
    return [
      ...group.slice(0, mostOfCode).map((each) => ({ diagnostic: describe(each), again: [each.again] })),
      ...(rest.length > 0 ? [{ diagnostic: sum, again: rest.map(({ again }) => again) }] : []),
    ];
  }
  const diagnostic = describe(group[0], { among: { more: group.length - 1, folder, otherFolder } });
  return [{ diagnostic, again: group.map(({ again }) => again) }];
}

const clusterScoped: ReadonlySet<string> = new Set(['Node', 'ServiceCIDR']);

function duplicatesOf(
  kind: string,
  objects: readonly Sourced<{ readonly metadata: ObjectMeta }>[],
): readonly Duplicate[] {
  const seen = new ByName<(typeof objects)[number]>();
  const isNamespaced = !clusterScoped.has(kind);
  const at = ['metadata', 'name'];
  const duplicates: Duplicate[] = [];
  for (const again of objects) {
    const { name, namespace: own } = again.object.metadata;
    const namespace = isNamespaced ? own : '';
    const first = name === '' ? again : seen.get(namespace, name);
    if (!first) seen.set(namespace, name, again);
    if (!first || first === again) continue;
    duplicates.push({
      kind,
      name: isNamespaced ? `${namespace}/${name}` : name,
      first: first.source.place(at).locate(),
      place: again.source.place(at),
      again,
    });
  }
  return duplicates;
}
