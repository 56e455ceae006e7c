import type { Diagnostic } from '../../diagnostics/diagnostic.ts';
import { isObject } from '../../base/json-shape.ts';
import { findingOf } from '../../diagnostics/value-in-words.ts';
import type { FieldPath } from '../../cluster/objects.ts';
import { CommonNames } from './check-names.ts';
import { type ClusterFacts, readClusterFacts } from '../configuration/cluster-config.ts';
import { type InputDocument, type InputSource, subSource } from '../documents/document.ts';
import { isClusterConfig, unpackConfigMap } from '../configuration/read-config.ts';
import { findMaker } from '../files/beside-manifests.ts';
import { findMeantKind, findReader, isOfOtherVersion, type ObjectLists } from './kinds.ts';
import { Report } from './report.ts';
import { holdsMark } from '../files/templates.ts';
import type { TextFile } from '../documents/text-file.ts';
import { Validator } from './validate.ts';

/** The objects read so far, and what else the input told. */
export interface CollectedObjects extends ObjectLists {
  /** What the configuration of other programs says of the cluster. */
  readonly facts: ClusterFacts[];
  /** Kind → how many objects of it there were that kpc has no use for. */
  readonly skipped: Map<string, number>;
  readonly diagnostics: Diagnostic[];
}

/** What checks the objects of one run. */
export class Checks {
  readonly validator = new Validator();
  readonly names = new CommonNames();
  /** Whether workloads are read too. */
  readonly workloads: boolean;
  /** Of objects that name none. */
  readonly namespace: string;
  /** Whether NetworkPolicies, Ingresses and Namespaces are read too. */
  readonly traffic: boolean;
  /** The file that is being read. */
  file: TextFile | undefined;

  constructor(workloads: boolean, namespace: string, traffic: boolean) {
    this.workloads = workloads;
    this.namespace = namespace;
    this.traffic = traffic;
  }
}

/** Nothing collected yet. */
export function emptyCollection(): CollectedObjects {
  return {
    services: [],
    slices: [],
    endpoints: [],
    nodes: [],
    serviceCidrs: [],
    pods: [],
    workloads: [],
    policies: [],
    ingresses: [],
    namespaces: [],
    configs: [],
    facts: [],
    skipped: new Map(),
    diagnostics: [],
  };
}

/** Remembers what is collected so far; the function that it returns takes out all that was added since. */
export function markCollection(collected: CollectedObjects): () => void {
  const lists = listsOf(collected).map((list) => ({ list, length: list.length }));
  const skipped = [...collected.skipped];
  return () => {
    for (const { list, length } of lists) list.length = length;
    collected.skipped.clear();
    for (const [kind, count] of skipped) collected.skipped.set(kind, count);
  };
}

/** Takes objects out of the lists that hold them. */
export function removeObjects(collected: CollectedObjects, objects: ReadonlySet<unknown>): void {
  for (const list of listsOf(collected)) {
    let length = 0;
    for (const each of list) if (!objects.has(each)) list[length++] = each;
    list.length = length;
  }
}

function listsOf(collected: CollectedObjects): unknown[][] {
  return Object.values(collected).filter((value): value is unknown[] => Array.isArray(value));
}

/** How deep lists may stand in lists: kubectl prints one, and who puts such files together makes a few more. */
const maxListDepth = 8;

/** Adds the object of a document, or the objects of a list, to the collection. */
export function collectDocument(document: InputDocument, checks: Checks, into: CollectedObjects): void {
  checks.file = document.file;
  collectValue(document.value, document.source, checks, into, 0);
}

function collectValue(
  value: unknown,
  source: InputSource,
  checks: Checks,
  into: CollectedObjects,
  listDepth: number,
): void {
  const report = new Report(source);
  if (isObject(value)) collectObject(value, report, checks, into, listDepth);
  else report.add([], 'not-an-object', { problem: 'no-mapping', found: findingOf(value) });
  report.diagnostics.forEach((diagnostic) => into.diagnostics.push(diagnostic));
}

function collectObject(
  value: Mapping,
  report: Report,
  checks: Checks,
  into: CollectedObjects,
  listDepth: number,
): void {
  const { apiVersion, kind } = value;
  const facts = readClusterFacts(value, report.source);
  if (facts) into.facts.push(facts);
  if (facts?.configures) return;
  if (typeof kind !== 'string' || kind === '' || typeof apiVersion !== 'string' || apiVersion === '') {
    const field = typeof kind === 'string' && kind !== '' ? 'apiVersion' : 'kind';
    const place = Object.hasOwn(value, field) ? [field] : [];
    report.add(place, 'not-an-object', { problem: 'missing', field, madeBy: findMaker(report.source.place([]).file) });
    return;
  }
  const object: TypedObject = { value, apiVersion, kind };
  const read = findReader(apiVersion, kind, checks);
  // Without metadata a Pod has no labels, so that no Service selects it.
  if (read && !(kind === 'Pod' && value['metadata'] === undefined)) {
    return read(withNamespace(value, checks.namespace), report, checks, into);
  }
  // What it would be filled in with may be a Service: it is not to be skipped as another kind.
  for (const [field, written] of [['kind', kind] as const, ['apiVersion', apiVersion] as const]) {
    if (!holdsMark(written)) continue;
    report.add([field], 'not-an-object', { problem: 'unrendered', field, value: written });
    return;
  }
  if (collectConfigMap(object, report, checks, into, listDepth)) return;
  if (collectList(object, report, checks, into, listDepth)) return;
  const meant = findMeantKind(apiVersion, kind, checks);
  if (meant !== undefined) {
    const field = meant.startsWith(`${kind} `) ? 'apiVersion' : 'kind';
    report.add([field], 'unknown-kind', { field, value: field === 'kind' ? kind : apiVersion, meant });
    return;
  }
  const name = isOfOtherVersion(apiVersion, kind) ? `${kind} of ${apiVersion}` : kind;
  into.skipped.set(name, (into.skipped.get(name) ?? 0) + 1);
}

type Mapping = Readonly<Record<string, unknown>>;

interface TypedObject {
  readonly value: Mapping;
  readonly apiVersion: string;
  readonly kind: string;
}

/** Adds the configurations that a ConfigMap holds; false where it holds none. */
function collectConfigMap(
  { value, apiVersion, kind }: TypedObject,
  { source }: Report,
  checks: Checks,
  into: CollectedObjects,
  listDepth: number,
): boolean {
  if (apiVersion !== 'v1' || kind !== 'ConfigMap' || !checks.file) return false;
  const { documents, diagnostics } = unpackConfigMap({ file: checks.file, value, source });
  const configs = documents.filter((document) => document.value !== value && isClusterConfig(document));
  // What is wrong with a text that holds no configuration is nothing to kpc.
  if (configs.length === 0) return false;
  for (const diagnostic of diagnostics) into.diagnostics.push(diagnostic);
  for (const document of configs) collectValue(document.value, document.source, checks, into, listDepth);
  return true;
}

/** Adds the items of a list; false for any other object. */
function collectList(
  { value, apiVersion, kind }: TypedObject,
  report: Report,
  checks: Checks,
  into: CollectedObjects,
  listDepth: number,
): boolean {
  const { items } = value;
  if (!kind.endsWith('List') || !(Array.isArray(items) || items === null)) return false;
  if (listDepth < maxListDepth) {
    collectItems(items ?? [], apiVersion, kind, report.source, checks, into, listDepth + 1);
  } else {
    report.add([], 'too-deep', { what: 'lists', limit: maxListDepth });
  }
  return true;
}

/** The items of a ServiceList and its like may leave out their kind; those of kubectl's List have it. */
function collectItems(
  items: readonly unknown[],
  apiVersion: string,
  listKind: string,
  source: InputSource,
  checks: Checks,
  into: CollectedObjects,
  listDepth: number,
): void {
  const implied = listKind === 'List' ? undefined : { apiVersion, kind: listKind.slice(0, -'List'.length) };
  for (const [i, item] of items.entries()) {
    const path: FieldPath = ['items', i];
    const value = implied && isObject(item) ? { ...implied, ...item } : item;
    collectValue(value, subSource(source, path), checks, into, listDepth);
  }
}

/** The object in the namespace that was asked for, where it names none. A copy, for the rest of it may be shared. */
function withNamespace(value: Mapping, namespace: string): Mapping {
  const { metadata } = value;
  if (namespace === 'default' || typeof metadata !== 'object' || metadata === null) return value;
  const given = 'namespace' in metadata ? metadata.namespace : undefined;
  return given === undefined || given === null || given === ''
    ? { ...value, metadata: { ...metadata, namespace } }
    : value;
}
