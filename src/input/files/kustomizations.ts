import type { Into } from '../../base/findings/files.ts';
import { folderOf, pathBelow, resolvePath } from '../../base/names.ts';
import { isObject } from '../../base/json/check.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import type { InputDocument } from '../documents/document.ts';
import { changingFieldsOf, isKustomizationName, makesObjects } from './kustomized-fields.ts';

/** Reports whether a document is a kustomization. In a file with kustomize's usual name, the document may omit its kind. */
export function isKustomization({ file, value }: InputDocument): boolean {
  if (!isObject(value)) return false;
  const { apiVersion, kind } = value;
  if (kind === undefined) return isKustomizationName(file.name);
  const isOfKustomize = apiVersion === undefined || String(apiVersion).startsWith('kustomize.config.k8s.io/');
  return isOfKustomize && (kind === 'Kustomization' || kind === 'Component');
}

interface Taken {
  readonly written: string;
  readonly path: string;
  /** The entry in the kustomization. */
  readonly at: readonly [field: string, index: number];
}

/** Returns the paths in some fields of a kustomization. Skips patches written inline. */
function pathsIn({ file, value }: InputDocument, fields: readonly string[]): readonly Taken[] {
  return fields.flatMap((field): readonly Taken[] => {
    const set: unknown = isObject(value) ? value[field] : undefined;
    return (Array.isArray(set) ? (set as readonly unknown[]) : []).flatMap((entry, i): readonly Taken[] => {
      const written = isObject(entry) ? entry['path'] : entry;
      if (typeof written !== 'string' || written === '' || written.includes('\n')) return [];
      return [{ written, path: resolvePath(folderOf(file.name), written), at: [field, i] }];
    });
  });
}

function resourcesOf(kustomization: InputDocument): readonly Taken[] {
  return pathsIn(kustomization, ['resources', 'bases', 'components']);
}

const patchFields = ['patches', 'patchesStrategicMerge', 'patchesJson6902', 'replacements', 'transformers'] as const;

export function findPatchFiles(kustomizations: readonly InputDocument[]): ReadonlySet<string> {
  return new Set(kustomizations.flatMap((each) => pathsIn(each, patchFields).map(({ path }) => path)));
}

function foldersAbove(files: readonly string[]): ReadonlySet<string> {
  const places = new Set<string>();
  for (const file of files) {
    for (let place = resolvePath('.', file); !places.has(place); place = folderOf(place)) places.add(place);
  }
  return places;
}

/** A kustomization in a folder that takes objects from sources outside the input. */
interface Incomplete {
  readonly kustomization: InputDocument;
  /** The sources, as written in the kustomization. */
  readonly lacks: readonly string[];
  /** The first of these sources. */
  readonly at: Taken['at'];
}

/** `files`: all files of the input. */
export function findIncomplete(
  kustomizations: readonly InputDocument[],
  files: readonly string[],
): readonly Incomplete[] {
  const known = foldersAbove(files);
  const inFolders = kustomizations.filter(({ file }) => file.origin !== undefined);
  return inFolders.flatMap((each) => {
    const [first, ...others] = resourcesOf(each).filter(({ path }) => !known.has(path));
    return first
      ? [{ kustomization: each, lacks: [first, ...others].map(({ written }) => written), at: first.at }]
      : [];
  });
}

/** A kustomization's sources outside the input, which kpc ignores. */
export interface Untaken {
  readonly folder: string;
  /** The folder's path below the input, which is the same in another copy or revision. */
  readonly below: string;
  readonly lacks: readonly string[];
}

export function describeUntaken({
  kustomization: { file },
  lacks,
}: Pick<Incomplete, 'kustomization' | 'lacks'>): Untaken {
  const folder = folderOf(file.name);
  return { folder, below: pathBelow(file.origin?.folder ?? '', folder), lacks };
}

interface ReadTree {
  readonly missing: readonly Incomplete[];
  readonly ofServices: readonly string[];
  /** Whether the result is only shown. If so, missing input is a warning. */
  readonly isShown: boolean;
  readonly into: Into;
}

/**
 * Reports kustomizations that must be built, because they use something missing from the input or change Services (names, or the Pods
 * behind them). A kustomization that only lists files or chooses images need not be built. A component's changes count for the
 * kustomization that names it.
 */
export function describeKustomizations(
  kustomizations: readonly InputDocument[],
  { missing, ofServices, isShown, into }: ReadTree,
): readonly Finding[] {
  const serving = foldersAbove(ofServices);
  const changing = kustomizations.filter((each) => {
    const { kind } = each.value as Readonly<Record<string, unknown>>;
    const takes = pathsIn(each, ['resources', 'bases']).some(({ path }) => serving.has(path));
    return kind !== 'Component' && (takes ? changingFieldsOf(each.value).length > 0 : makesObjects(each.value));
  });
  return [...diagnoseIncomplete(missing, isShown, into), ...describeChanging(changing, into)];
}

function diagnoseIncomplete(
  [first, ...others]: readonly Incomplete[],
  isShown: boolean,
  into: Into,
): readonly Finding[] {
  if (!first) return [];
  const { kustomization, lacks, at } = first;
  const folder = folderOf(kustomization.file.name);
  const details = { lacks, more: others.length, folder, into, isShown };
  return [diagnose('incomplete-kustomization', details, kustomization.source.place(at))];
}

function describeChanging([first, ...others]: readonly InputDocument[], into: Into): readonly Finding[] {
  if (!first) return [];
  const fields = changingFieldsOf(first.value);
  const details = { fields, more: others.length, folder: folderOf(first.file.name), into };
  return [diagnose('kustomized', details, first.source.keyPlace(fields.slice(0, 1)))];
}

/**
 * Returns the folder to build for a file: the folder of the outermost kustomization that includes the file. Undefined if there is none or
 * several.
 */
export function findBuilder(kustomizations: readonly InputDocument[], file: string): string | undefined {
  const reaching = new Set<InputDocument>();
  for (let places = [resolvePath('.', file)]; places.length > 0;) {
    const found = kustomizations.filter(
      (each) => !reaching.has(each) && resourcesOf(each).some(({ path }) => places.includes(path)),
    );
    for (const each of found) reaching.add(each);
    places = found.map((each) => resolvePath('.', folderOf(each.file.name)));
  }
  const taken = new Set([...reaching].flatMap((each) => resourcesOf(each).map(({ path }) => path)));
  const [root, ...others] = [...reaching]
    .map((each) => folderOf(each.file.name))
    .filter((folder) => !taken.has(resolvePath('.', folder)));
  return root === undefined || others.length > 0 ? undefined : root;
}

export function findOutermost(files: readonly string[]): string | undefined {
  const depth = (name: string): number => name.split('/').length;
  const [outermost] = files.filter(isKustomizationName).toSorted((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1));
  return outermost === undefined ? undefined : folderOf(outermost);
}
