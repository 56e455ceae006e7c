import { baseName, folderOf, resolvePath } from '../../base/names.ts';
import { isObject } from '../../base/json/check.ts';
import { diagnose, type Finding } from '../../base/findings/finding.ts';
import type { InputDocument } from '../documents/document.ts';
import { isPlain } from './not-manifests.ts';

/** Whether a document says how kustomize builds objects of others. Beside them, in a file of this name, it needs no kind. */
export function isKustomization({ file, value }: InputDocument): boolean {
  if (!isObject(value)) return false;
  const { apiVersion, kind } = value;
  if (kind === undefined) return /^kustomization\.ya?ml$/.test(baseName(file.name));
  const isOfKustomize = apiVersion === undefined || String(apiVersion).startsWith('kustomize.config.k8s.io/');
  return isOfKustomize && (kind === 'Kustomization' || kind === 'Component');
}

/** A path in a kustomization. */
interface Taken {
  readonly written: string;
  /** As it reads from where the names of files do. */
  readonly place: string;
}

/** The paths in some fields of a kustomization. A patch may also be written in its field. */
function pathsIn({ file, value }: InputDocument, fields: readonly string[]): readonly Taken[] {
  const all = fields.flatMap((name): readonly unknown[] => {
    const set = isObject(value) ? value[name] : undefined;
    return Array.isArray(set) ? set : [];
  });
  return all.flatMap((entry) => {
    const written = isObject(entry) ? entry['path'] : entry;
    if (typeof written !== 'string' || written === '' || written.includes('\n')) return [];
    return [{ written, place: resolvePath(folderOf(file.name), written) }];
  });
}

/** What a kustomization takes objects from: files, folders and repositories. */
function resourcesOf(kustomization: InputDocument): readonly Taken[] {
  return pathsIn(kustomization, ['resources', 'bases', 'components']);
}

/** Parts of objects that kustomize puts into others: read alone, they would be objects that no cluster has. */
const patchFields = ['patches', 'patchesStrategicMerge', 'patchesJson6902', 'replacements', 'transformers'] as const;

/** The files that kustomizations list as patches. */
export function findPatchFiles(kustomizations: readonly InputDocument[]): ReadonlySet<string> {
  return new Set(kustomizations.flatMap((each) => pathsIn(each, patchFields).map(({ place }) => place)));
}

/** Files and all folders that they are in. */
function placesOf(files: readonly string[]): ReadonlySet<string> {
  const places = new Set<string>();
  for (const file of files) {
    for (let place = resolvePath('.', file); !places.has(place); place = folderOf(place)) places.add(place);
  }
  return places;
}

/** What is read of a tree with kustomizations. */
interface ReadTree {
  /** All files of the input. */
  readonly files: readonly string[];
  /** Those that hold Services. */
  readonly ofServices: readonly string[];
  /** Whether the result is only shown: then what the input lacks is a warning. */
  readonly isShown: boolean;
  /** The command to pipe rendered manifests into. */
  readonly into: string;
}

/**
 * Says which kustomizations have to be built: those that take something that the input does not hold, and those that make
 * Services different from what kpc reads, by other names or other Pods behind them. One that only lists them, or only
 * chooses images, makes no difference. What a component changes counts as a change of the kustomization that names it.
 */
export function describeKustomizations(
  kustomizations: readonly InputDocument[],
  { files, ofServices, isShown, into }: ReadTree,
): readonly Finding[] {
  const known = placesOf(files);
  const inFolders = kustomizations.filter(({ file }) => file.origin !== undefined);
  const missing = inFolders.flatMap((each) => {
    const lacks = resourcesOf(each).filter(({ place }) => !known.has(place));
    return lacks.length > 0 ? [{ kustomization: each, lacks: lacks.map(({ written }) => written) }] : [];
  });
  const serving = placesOf(ofServices);
  const changing = kustomizations.filter((each) => {
    const { kind } = each.value as Readonly<Record<string, unknown>>;
    const takes = pathsIn(each, ['resources', 'bases']).some(({ place }) => serving.has(place));
    return kind !== 'Component' && takes && changesOf(each.value).length > 0;
  });
  return [...describeMissing(missing, isShown, into), ...describeChanging(changing, into)];
}

function describeMissing(
  [first, ...others]: readonly { readonly kustomization: InputDocument; readonly lacks: readonly string[] }[],
  isShown: boolean,
  into: string,
): readonly Finding[] {
  if (!first) return [];
  const { kustomization, lacks } = first;
  const folderWord = wordOf(folderOf(kustomization.file.name));
  const details = { lacks, more: others.length, folderWord, into, isShown };
  return [diagnose('incomplete-kustomization', details, kustomization.source.place(['resources']))];
}

function describeChanging([first, ...others]: readonly InputDocument[], into: string): readonly Finding[] {
  if (!first) return [];
  const fields = changesOf(first.value);
  const details = { fields, more: others.length, folderWord: wordOf(folderOf(first.file.name)), into };
  return [diagnose('kustomized', details, first.source.keyPlace(fields.slice(0, 1)))];
}

/**
 * The folder to build for a file: of the kustomizations that take it, also through others, the one that no other of them takes.
 * Undefined if there is none, or several of these.
 */
export function findBuilder(kustomizations: readonly InputDocument[], file: string): string | undefined {
  const reaching = new Set<InputDocument>();
  for (let places = [resolvePath('.', file)]; places.length > 0;) {
    const found = kustomizations.filter(
      (each) => !reaching.has(each) && resourcesOf(each).some(({ place }) => places.includes(place)),
    );
    for (const each of found) reaching.add(each);
    places = found.map((each) => resolvePath('.', folderOf(each.file.name)));
  }
  const taken = new Set([...reaching].flatMap((each) => resourcesOf(each).map(({ place }) => place)));
  const [root, ...others] = [...reaching]
    .map((each) => folderOf(each.file.name))
    .filter((folder) => !taken.has(resolvePath('.', folder)));
  return root === undefined || others.length > 0 ? undefined : wordOf(root);
}

/** The folder to build, of all files that kustomize reads: the one that the others are in. Undefined if none is there. */
export function findOutermost(files: readonly string[]): string | undefined {
  const depth = (name: string): number => name.split('/').length;
  const [outermost] = files
    .filter((name) => /^kustomization\.ya?ml$/.test(baseName(name)))
    .toSorted((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1));
  return outermost === undefined ? undefined : wordOf(folderOf(outermost));
}

function wordOf(folder: string): string {
  return isPlain(folder) ? folder : 'FOLDER';
}

/** The fields that change what a Service is called, where it is, or which Pods it has. */
const changingFields = [
  'namePrefix',
  'nameSuffix',
  'namespace',
  'commonLabels',
  'labels',
  'replicas',
  'components',
  'patches',
  'patchesStrategicMerge',
  'patchesJson6902',
  'replacements',
  'transformers',
] as const;

function changesOf(value: unknown): readonly string[] {
  if (!isObject(value)) return [];
  return changingFields.filter((name) => {
    const set = value[name];
    if (name === 'labels') return Array.isArray(set) && set.some(selects);
    if (Array.isArray(set)) return set.length > 0;
    return isObject(set) ? Object.keys(set).length > 0 : typeof set === 'string' && set !== '';
  });
}

/** Labels reach the selectors and the Pods only where they say so. */
function selects(labels: unknown): boolean {
  return isObject(labels) && (labels['includeSelectors'] === true || labels['includeTemplates'] === true);
}
