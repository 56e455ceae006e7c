import { baseName, folderOf, resolvePath } from '../../base/file-names.ts';
import { isObject } from '../../base/json-shape.ts';
import { diagnose, type Diagnostic } from '../../diagnostics/diagnostic.ts';
import type { InputDocument } from '../documents/document.ts';
import type { TextFile } from '../documents/text-file.ts';
import { isPlain } from './templates.ts';

/** Whether a document says how kustomize builds objects of others. Beside them, in a file of this name, it needs no kind. */
export function isKustomization({ file, value }: InputDocument): boolean {
  if (!isObject(value)) return false;
  const { apiVersion, kind } = value;
  if (kind === undefined) return /^kustomization\.ya?ml$/.test(baseName(file.name));
  const isOfKustomize = apiVersion === undefined || String(apiVersion).startsWith('kustomize.config.k8s.io/');
  return isOfKustomize && (kind === 'Kustomization' || kind === 'Component');
}

/**
 * A warning for the first kustomization that makes Services different from what kpc reads in `files`: with other names,
 * or with other Pods behind them. One that only lists them, or only chooses images, makes no difference. What a
 * component changes counts as a change of the kustomization that names it.
 */
export function describeKustomizations(
  kustomizations: readonly InputDocument[],
  files: readonly string[],
  into: string,
): readonly Diagnostic[] {
  /** The files, and all folders that they are in. */
  const places = new Set<string>();
  for (const file of files) {
    for (let place = resolvePath('.', file); !places.has(place); place = folderOf(place)) places.add(place);
  }
  const [first, ...others] = kustomizations.filter(({ file, value }) => {
    const { kind, resources, bases } = value as Readonly<Record<string, unknown>>;
    const takes = [resources, bases].flat().some((entry) => {
      return typeof entry === 'string' && places.has(resolvePath(folderOf(file.name), entry));
    });
    return kind !== 'Component' && takes && changesOf(value).length > 0;
  });
  if (!first) return [];
  const fields = changesOf(first.value);
  const details = { fields, more: others.length, folderWord: wordOf(folderOf(first.file.name)), into };
  return [diagnose('kustomized', details, first.source.keyPlace(fields.slice(0, 1)))];
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

/** Files that charts and kustomize have beside their manifests. */
const otherFiles = /^(?:Chart\.(?:ya?ml|lock)|values[^/]*\.ya?ml|kustomization\.ya?ml)$/;

/**
 * Whether a document of a folder's file is plainly another program's: no mapping, or one that has nothing that marks an
 * object of Kubernetes. One that has some of it, and lacks its kind, is a mistake to report.
 */
export function isForeign({ file, value }: InputDocument): boolean {
  if (!file.origin) return false;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
  const { apiVersion, kind } = value as Readonly<Record<string, unknown>>;
  if (isWord(apiVersion) && isWord(kind)) return false;
  if (otherFiles.test(baseName(file.name))) return true;
  const hasShape = Object.hasOwn(value, 'metadata') || Object.hasOwn(value, 'spec') || Object.hasOwn(value, 'items');
  return !hasShape && !(isWord(apiVersion) && Object.hasOwn(value, 'kind'));
}

function isWord(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Whether a folder's file that cannot be read as YAML is not for Kubernetes: nothing in it looks like an object. */
export function isForeignText({ origin, text }: TextFile): boolean {
  return (
    origin !== undefined && !/^[ \t-]*["']?(?:apiVersion|kind)["']?[ \t]*:/m.test(text) && !/"kind"\s*:/.test(text)
  );
}

/** What makes objects of a file of a chart or of kustomize that was named itself; undefined for any other. */
export function findMaker(name: string): 'helm' | 'kustomize' | undefined {
  const file = baseName(name);
  if (/^kustomization\.ya?ml$/.test(file)) return 'kustomize';
  return otherFiles.test(file) ? 'helm' : undefined;
}
