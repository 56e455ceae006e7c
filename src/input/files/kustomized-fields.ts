// Finds the parts of a kustomization that do more than list files. kpc carries out none of them.
import { hashHex } from '#hash';
import { baseName, folderOf, resolvePath } from '../../base/names.ts';
import { isObject } from '../../base/json/check.ts';
import { Tally } from '../../base/findings/finding.ts';
import type { InputDocument } from '../documents/document.ts';
import { createYamlReader, takeDocuments } from '../documents/read-documents.ts';
import type { NamedFile, TextFile } from '../documents/text-file.ts';

/** Fields that make objects that are in none of the listed files. */
const makingFields = ['helmCharts', 'helmChartInflationGenerator', 'generators'] as const;

/** The making fields, and fields that change a Service's name, namespace or Pods. */
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
  ...makingFields,
] as const;

/** Fields from which replacements may copy values into a Service, and the settings that helmCharts share. */
const sourceFields = ['configMapGenerator', 'secretGenerator', 'helmGlobals'] as const;

export function changingFieldsOf(value: unknown): readonly string[] {
  return setFields(value, changingFields);
}

export function makesObjects(value: unknown): boolean {
  return setFields(value, makingFields).length > 0;
}

function setFields(value: unknown, fields: readonly string[]): readonly string[] {
  if (!isObject(value)) return [];
  return fields.filter((name) => {
    const set = value[name];
    if (name === 'labels') return Array.isArray(set) && set.some(selects);
    if (Array.isArray(set)) return set.length > 0;
    return isObject(set) ? Object.keys(set).length > 0 : typeof set === 'string' && set !== '';
  });
}

/** Reports whether labels also apply to selectors or Pods, which they do only with these fields. */
function selects(labels: unknown): boolean {
  return isObject(labels) && (labels['includeSelectors'] === true || labels['includeTemplates'] === true);
}

/** Returns the kustomization's changes and their sources, by field; nothing if it makes no changes. */
function changesOf({ value }: InputDocument): readonly (readonly [field: string, set: unknown])[] {
  const changing = changingFieldsOf(value);
  const all = changing.length === 0 ? [] : [...changing, ...setFields(value, sourceFields)];
  return all.map((name) => [name, (value as Readonly<Record<string, unknown>>)[name]]);
}

/** Returns all words in a value that may be paths, including the path in "key=path". */
function wordsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') {
    return value === '' || value.includes('\n') ? [] : [value.slice(value.indexOf('=') + 1)];
  }
  if (Array.isArray(value)) return value.flatMap(wordsIn);
  return isObject(value) ? Object.values(value).flatMap(wordsIn) : [];
}

interface Changing {
  readonly kustomization: InputDocument;
  /**
   * The kustomization's changes as text, with digests of the files that they use. Has no paths, so that the same kustomization in another
   * folder or revision has the same text.
   */
  readonly text: string;
  /** The files that changes use but that kpc does not read, as written. */
  readonly unread: readonly string[];
}

/** `named`: files that are not in the input, with their digests. */
export function findChanging(
  kustomizations: readonly InputDocument[],
  files: readonly TextFile[],
  named: readonly NamedFile[],
): readonly Changing[] {
  const digests = new Map(named.map(({ name, digest }) => [resolvePath('.', name), digest]));
  const texts = new Map(files.map(({ name, text }) => [resolvePath('.', name), text]));
  const digestAt = (place: string): string | undefined => {
    const text = texts.get(place);
    if (text !== undefined && !digests.has(place)) digests.set(place, hashHex(text));
    return digests.get(place);
  };
  return kustomizations.flatMap((kustomization) => {
    const changes = changesOf(kustomization);
    if (changes.length === 0) return [];
    const words = [...new Set(wordsIn(changes.map(([, set]) => set)))];
    const placed = words.map((word) => ({ word, place: resolvePath(folderOf(kustomization.file.name), word) }));
    const text = JSON.stringify([changes, placed.map(({ place }) => digestAt(place) ?? '')]);
    const unread = placed.filter(({ place }) => digests.has(place) && digests.get(place) === undefined);
    return { kustomization, text, unread: unread.map(({ word }) => word) };
  });
}

/** Returns the words of a kustomization.yaml that may be paths of files that its changes use, relative to its folder. */
export function pathWordsOf(file: TextFile): readonly string[] {
  if (!isKustomizationName(file.name)) return [];
  const words = new Set<string>();
  const take = (document: InputDocument): void => {
    for (const word of wordsIn(changesOf(document).map(([, set]) => set))) words.add(word);
  };
  takeDocuments(file, createYamlReader(), take, { tally: new Tally() });
  return [...words];
}

/** Recognises kustomize's own file names, except one without .yaml or .yml, which kpc does not read. */
export function isKustomizationName(path: string): boolean {
  return /^kustomization\.ya?ml$/.test(baseName(path));
}
