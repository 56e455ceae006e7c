import type { Finding, Tally } from '../../base/findings/finding.ts';
import { isObject, type JsonObject } from '../../base/json/check.ts';
import { controllerAnnotations, type ObjectMeta, type PodMaker, type ObjectSource } from '../../cluster/objects.ts';
import { foundOf } from '../../base/findings/fields.ts';
import { CommonNames } from './check-values.ts';
import { readClusterFacts, unpackTexts, type ClusterFacts } from '../configuration/cluster-config.ts';
import { type InputDocument, type InputSource, subSource } from '../documents/document.ts';
import { findMaker, holdsPlaceholder } from '../files/not-manifests.ts';
import {
  actsBesideRules,
  emptyObjectLists,
  findMeantKind,
  findReader,
  type AskedKinds,
  type ObjectLists,
} from './kinds.ts';
import { findPodMaker, nameSkipped } from './unread-kinds.ts';
import { Report } from './report.ts';
import type { TextFile } from '../documents/text-file.ts';

export interface CollectedObjects extends ObjectLists {
  readonly facts: ClusterFacts[];
  readonly skipped: Map<string, number>;
  /** Lists that may be incomplete, because kpc does not read a related kind or was not allowed to read some objects. */
  readonly unread: Set<keyof ObjectLists>;
  readonly podMakers: PodMaker[];
  /** Filled only if the input is read with traffic. */
  readonly besideRules: ObjectBesideRules[];
  readonly faulty: FaultyObject[];
  readonly diagnostics: Finding[];
}

/** An object that acts beside kube-proxy's rules, with all its fields, because kpc follows few of them or none. */
export interface ObjectBesideRules {
  readonly kind: string;
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace'>;
  readonly fields: JsonObject;
}

export interface FaultyObject {
  readonly kind: string;
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'annotations'>;
  readonly source: ObjectSource;
}

export interface Checks extends AskedKinds {
  readonly names: CommonNames;
  readonly namespace: string;
  /** Whether errors in any text of a ConfigMap count. */
  readonly areConfigs: boolean;
  /** Whether objects with errors are dropped as a whole. */
  readonly skipInvalid: boolean;
}

export function createChecks(asked: Omit<Checks, 'names'>): Checks {
  return { names: new CommonNames(), ...asked };
}

export function emptyCollection(): CollectedObjects {
  return {
    ...emptyObjectLists(),
    facts: [],
    skipped: new Map(),
    unread: new Set(),
    podMakers: [],
    besideRules: [],
    faulty: [],
    diagnostics: [],
  };
}

export function addObjects({ skipped, unread, ...lists }: CollectedObjects, into: CollectedObjects): void {
  for (const [name, list] of Object.entries(lists)) {
    const target = into[name as keyof typeof lists] as unknown[];
    for (const each of list) target.push(each);
  }
  for (const list of unread) into.unread.add(list);
  for (const [kind, count] of skipped) into.skipped.set(kind, (into.skipped.get(kind) ?? 0) + count);
}

export function removeObjects(
  { skipped: _, unread: __, ...lists }: CollectedObjects,
  duplicates: readonly { readonly again: readonly object[] }[],
): void {
  const objects = new Set<unknown>(duplicates.flatMap(({ again }) => again));
  for (const list of Object.values(lists) as unknown[][]) {
    let length = 0;
    for (const each of list) if (!objects.has(each)) list[length++] = each;
    list.length = length;
  }
}

/** The limit on nested lists. kubectl nests one level, and joining such files adds a few. */
const maxListDepth = 8;

interface ObjectReading {
  readonly checks: Checks;
  readonly file: TextFile;
  readonly into: CollectedObjects;
  readonly tally: Tally;
  readonly listDepth: number;
  readonly isInText: boolean;
}

export function collectDocument(
  { file, value, source }: InputDocument,
  checks: Checks,
  into: CollectedObjects,
  tally: Tally,
): void {
  collectValue(value, source, { checks, file, into, tally, listDepth: 0, isInText: false });
}

function collectValue(value: unknown, source: InputSource, reading: ObjectReading): void {
  const report = new Report(source, reading.tally);
  const { facts, configs } = reading.into;
  const before = { facts: facts.length, configs: configs.length };
  if (isObject(value)) collectObject(value, report, reading);
  else report.add([], 'not-an-object', { problem: 'no-mapping', found: foundOf(value) });
  if (reading.checks.skipInvalid && report.hasErrors) {
    facts.length = before.facts;
    configs.length = before.configs;
  }
  for (const diagnostic of report.diagnostics) reading.into.diagnostics.push(diagnostic);
}

function collectObject(value: JsonObject, report: Report, reading: ObjectReading): void {
  const { checks, file, into } = reading;
  const { apiVersion, kind, items } = value;
  const facts = readClusterFacts(value, report.source);
  // In a cluster's ConfigMap, kubeadm has already filled in all settings.
  if (facts) into.facts.push({ ...facts, fills: facts.fills && !reading.isInText });
  if (facts && !facts.isObject) {
    if (kind === 'Cluster') collectTexts(value, report.source, reading);
    return;
  }
  if (typeof kind !== 'string' || kind === '' || typeof apiVersion !== 'string' || apiVersion === '') {
    const field = typeof kind === 'string' && kind !== '' ? 'apiVersion' : 'kind';
    const near = Object.keys(value).find((key) => key !== field && key.toLowerCase() === field.toLowerCase());
    const path = near !== undefined ? [near] : Object.hasOwn(value, field) ? [field] : [];
    const madeBy = findMaker(file.name) ?? (isOfKubectl(value) ? 'kubectl' : undefined);
    report.add(path, 'not-an-object', { problem: 'missing', field, near, madeBy });
    return;
  }
  const read = findReader(apiVersion, kind, checks);
  // A Pod without metadata has no labels, so no Service selects it.
  if (read && !(kind === 'Pod' && value['metadata'] === undefined)) {
    const named = withNamespace(value, checks.namespace);
    read(named, report, checks, into);
    if (actsBesideRules(apiVersion, kind, checks)) into.besideRules.push(withAllFields(kind, named));
    if (report.hasErrors) into.faulty.push({ kind, metadata: findMetadata(named['metadata']), source: report.source });
    return;
  }
  // Once rendered, this may be a Service, so do not skip it as an unknown kind.
  const field = holdsPlaceholder(kind) ? 'kind' : 'apiVersion';
  const written = field === 'kind' ? kind : apiVersion;
  if (holdsPlaceholder(written))
    return report.add([field], 'not-an-object', { problem: 'unrendered', field, value: written });
  if (apiVersion === 'v1' && kind === 'ConfigMap' && collectTexts(value, report.source, reading)) return;
  if (kind.endsWith('List') && (Array.isArray(items) || items === null)) {
    return collectItems(items ?? [], { apiVersion, kind }, report, reading);
  }
  const meant = findMeantKind(apiVersion, kind, checks);
  if (meant !== undefined) {
    const at = meant.startsWith(`${kind} `) ? 'apiVersion' : 'kind';
    return report.add([at], 'unknown-kind', { field: at, value: at === 'kind' ? kind : apiVersion, meant });
  }
  const named = withNamespace(value, checks.namespace);
  if (!facts) countSkipped(apiVersion, kind, into);
  if (!facts && checks.traffic && actsBesideRules(apiVersion, kind, checks))
    into.besideRules.push(withAllFields(kind, named));
  const maker = findPodMaker(value, { apiVersion, kind }, findMetadata(named['metadata']));
  if (maker) into.podMakers.push(maker);
}

/** Leaves out the status, and metadata except for annotations. */
function withAllFields(
  kind: string,
  { apiVersion: _, metadata: given, status: __, ...fields }: JsonObject,
): ObjectBesideRules {
  const metadata = findMetadata(given);
  return { kind, metadata, fields: { ...fields, annotations: controllerAnnotations(metadata) } };
}

/** Recognises what kubectl describe prints, and an error of kubectl, that are YAML by chance. */
function isOfKubectl(value: JsonObject): boolean {
  return Object.hasOwn(value, 'Name') || Object.keys(value).some((key) => /^error(?: from server.*)?$/i.test(key));
}

function findMetadata(metadata: unknown): FaultyObject['metadata'] {
  const { name, namespace, annotations } = isObject(metadata) ? metadata : {};
  const texts = Object.entries(isObject(annotations) ? annotations : {}).filter(([, text]) => typeof text === 'string');
  return {
    name: typeof name === 'string' ? name : '',
    namespace: typeof namespace === 'string' && namespace !== '' ? namespace : 'default',
    annotations: Object.fromEntries(texts) as Readonly<Record<string, string>>,
  };
}

/** Counts a skipped object. Other kinds of policies may override NetworkPolicies, whose effect is then unknown. */
export function countSkipped(apiVersion: string, kind: string, { skipped, unread }: CollectedObjects): void {
  const name = nameSkipped(apiVersion, kind);
  skipped.set(name, (skipped.get(name) ?? 0) + 1);
  if (kind.endsWith('NetworkPolicy')) unread.add('policies');
}

function collectTexts(value: JsonObject, source: InputSource, reading: ObjectReading): boolean {
  const { documents: configs, diagnostics } = unpackTexts({ file: reading.file, value, source });
  // Ignore faults in a text without a configuration.
  if (configs.length === 0 && (diagnostics.length === 0 || !reading.checks.areConfigs)) return false;
  for (const each of diagnostics)
    if (reading.tally.admits(each.code, each.severity)) reading.into.diagnostics.push(each);
  const inner = { ...reading, isInText: true };
  for (const document of configs) collectValue(document.value, document.source, inner);
  return true;
}

/** Items of a ServiceList or similar list may omit their kind. Items of kubectl's List have it. */
function collectItems(
  items: readonly unknown[],
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  report: Report,
  reading: ObjectReading,
): void {
  const listDepth = reading.listDepth + 1;
  if (listDepth > maxListDepth) return report.add([], 'too-deep', {});
  const implied = kind === 'List' ? undefined : { apiVersion, kind: kind.slice(0, -'List'.length) };
  const inner = { ...reading, listDepth };
  for (const [i, item] of items.entries()) {
    const value = implied && isObject(item) ? { ...implied, ...item } : item;
    collectValue(value, subSource(report.source, ['items', i]), inner);
  }
}

/** Returns a copy with the requested namespace filled in. Makes a copy because values may be shared. */
function withNamespace(value: JsonObject, namespace: string): JsonObject {
  const { metadata } = value;
  if (namespace === 'default' || !isObject(metadata)) return value;
  if ((metadata['namespace'] ?? '') !== '') return value;
  return { ...value, metadata: { ...metadata, namespace } };
}
