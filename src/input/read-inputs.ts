import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type {
  Endpoints,
  EndpointSlice,
  Node,
  Pod,
  Service,
  ServiceCidr,
  Sourced,
  TrafficObjects,
  Workload,
} from '../cluster/objects.ts';
import type { ClusterFacts } from './configuration/cluster-config.ts';
import { placeAt, type InputDocument } from './documents/document.ts';
import { findDuplicates } from './objects/find-duplicates.ts';
import { describeKustomizations, isKustomization } from './files/kustomizations.ts';
import type { KubeProxyConfig } from './objects/schemas/kube-proxy-configuration.ts';
import type { LoadedFiles } from './files/load-files.ts';
import { isForeign, isForeignText } from './files/no-objects.ts';
import { takeDocuments } from './documents/read-documents.ts';
import {
  Checks,
  collectDocument,
  emptyCollection,
  markCollection,
  removeObjects,
  type CollectedObjects,
} from './objects/read-objects.ts';
import { createYamlReader, type YamlReader } from './documents/yaml-reader.ts';
import { sortDiagnostics } from './sort-diagnostics.ts';
import { describeTemplates, findChartTemplate, findTemplates, type Template } from './files/templates.ts';
import type { TextFile } from './documents/text-file.ts';

/** What the inputs hold. Not to be compiled where a diagnostic is an error. */
export interface Inputs extends TrafficObjects {
  readonly services: readonly Sourced<Service>[];
  readonly slices: readonly Sourced<EndpointSlice>[];
  /** v1 Endpoints as they are: mirrorEndpoints makes slices of them. */
  readonly endpoints: readonly Sourced<Endpoints>[];
  readonly nodes: readonly Sourced<Node>[];
  readonly serviceCidrs: readonly Sourced<ServiceCidr>[];
  readonly pods: readonly Sourced<Pod>[];
  /** Empty where the options do not ask for them: they are among the skipped kinds then. */
  readonly workloads: readonly Sourced<Workload>[];
  /** kube-proxy's configuration, where the inputs happen to hold one. */
  readonly configs: readonly Sourced<KubeProxyConfig>[];
  /** What the configuration of other programs says of the cluster. */
  readonly facts: readonly ClusterFacts[];
  /** Kind → how many objects of it were skipped: kpc has no use for them. */
  readonly skipped: ReadonlyMap<string, number>;
  /** Sorted by file, line, column and code. */
  readonly diagnostics: readonly Diagnostic[];
  /** The files read, by the names that diagnostics give them. */
  readonly files: ReadonlyMap<string, TextFile>;
}

export interface ReadOptions {
  /** Whether Deployments and other workloads are read too. */
  readonly workloads?: boolean | undefined;
  /** Whether workloads are read though no flag asks for them: the input may hold several of one name. */
  readonly isTolerant?: boolean | undefined;
  /** Whether NetworkPolicies, Ingresses and Namespaces are read too; else they are among the skipped kinds. */
  readonly traffic?: boolean | undefined;
  /** Of objects that name none. */
  readonly namespace?: string | undefined;
  /** Whether files that something is wrong with are left out, which a warning says, instead of being errors. */
  readonly skipInvalid?: boolean | undefined;
  /** The command to pipe rendered manifests into. */
  readonly into?: string | undefined;
}

/** What reads rendered manifests, if nothing says better. */
export const readsManifests = 'kpc compile -f -';

/** The objects in files that have been read, be it well. Never throws for bad input: all that is wrong is in the diagnostics. */
export function collectInputs({ files, diagnostics, unreadable }: LoadedFiles, options: ReadOptions = {}): Inputs {
  const collected = collectFiles(files, options, unreadable);
  return {
    ...collected,
    diagnostics: sortDiagnostics([...diagnostics, ...collected.diagnostics]),
    files: new Map(files.map((file) => [file.name, file])),
  };
}

/** The objects in texts that have been read. */
export function collectFiles(
  files: readonly TextFile[],
  {
    workloads = false,
    traffic = false,
    namespace = 'default',
    skipInvalid = false,
    into = readsManifests,
    isTolerant = false,
  }: ReadOptions = {},
  unreadable: readonly Diagnostic[] = [],
): CollectedObjects {
  const collected = emptyCollection();
  const kustomizations: InputDocument[] = [];
  const context = { checks: new Checks(workloads, namespace, traffic), readYaml: createYamlReader(), kustomizations };
  const templates: Template[] = [];
  const foreign: string[] = [];
  const leftOut = new LeftOut();
  let wrongFiles = unreadable.length;
  for (const file of files) {
    const restore = skipInvalid ? markCollection(collected) : undefined;
    const before = collected.diagnostics.length;
    const template = findChartTemplate(file);
    const found = template ? [template] : collectFile(file, context, collected);
    if (found === 'foreign') foreign.push(file.name);
    else templates.push(...found);
    if (found === 'foreign') continue;
    const errors = collected.diagnostics.slice(before).filter(isError);
    if (file.origin && errors.length + found.length > 0) wrongFiles++;
    if (!restore) continue;
    if (errors.length + found.length > 0) restore();
    if (found.length === 0) leftOut.addFile(errors);
  }
  const origins = new Map(files.flatMap(({ name, origin }) => (origin ? [[name, origin] as const] : [])));
  const ofServices = [...new Set(collected.services.map(({ source }) => source.place([]).file))];
  // A patch of a kustomization looks like the workload that it changes: if no flag asks for workloads, it is no error.
  const patches = isTolerant
    ? findDuplicates({ ...emptyCollection(), workloads: partialLast(collected.workloads) }, origins, true, into)
    : [];
  removeObjects(collected, new Set(patches.flatMap(({ again }) => again)));
  const duplicates = findDuplicates(collected, origins, skipInvalid, into);
  const unrendered = describeTemplates(templates, skipInvalid, into);
  if (skipInvalid) {
    for (const each of unreadable) leftOut.addFile([each]);
    for (const { diagnostic, files: count } of unrendered) leftOut.addFile([diagnostic], count);
    for (const { diagnostic, again } of duplicates) leftOut.addObjects(diagnostic, again.length);
    removeObjects(collected, new Set(duplicates.flatMap(({ again }) => again)));
  }
  const all = files.length + unreadable.length;
  const wrong = [
    ...unreadable,
    ...[...unrendered, ...duplicates].map(({ diagnostic }) => diagnostic),
    ...(wrongFiles > 0 && wrongFiles < all
      ? [diagnose('left-out', { problem: 'advice', files: wrongFiles, all })]
      : []),
  ];
  const more = [
    ...patches.map(({ diagnostic: { text, place } }) =>
      diagnose('left-out', { problem: 'part', reason: text, files: 1, more: 0 }, place),
    ),
    ...(skipInvalid ? leftOut.describe() : wrong),
    ...describeForeign(foreign),
    ...describeKustomizations(kustomizations, ofServices, into),
  ];
  for (const diagnostic of more) collected.diagnostics.push(diagnostic);
  return collected;
}

/** The workloads in an order in which what a patch changes is found before the patch. */
function partialLast(workloads: CollectedObjects['workloads']): CollectedObjects['workloads'] {
  return [...workloads].sort((a, b) => Number(a.object.isPartial) - Number(b.object.isPartial));
}

/** What --skip-invalid leaves out. */
class LeftOut {
  readonly #warnings: Diagnostic[] = [];
  #files = 0;
  #objects = 0;

  /** Files that the first of these errors is about: one, or the templates of a chart. */
  addFile([first, ...others]: readonly Diagnostic[], files = 1): void {
    if (!first) return;
    this.#files += files;
    this.#warn(first, files, others.length);
  }

  /** Objects of a file that others define already. */
  addObjects(error: Diagnostic, count: number): void {
    this.#objects += count;
    this.#warn(error, 1, 0);
  }

  #warn({ text, place }: Diagnostic, files: number, more: number): void {
    this.#warnings.push(diagnose('left-out', { problem: 'part', reason: text, files, more }, place));
  }

  describe(): readonly Diagnostic[] {
    if (this.#warnings.length === 0) return [];
    return [diagnose('left-out', { problem: 'all', files: this.#files, objects: this.#objects }), ...this.#warnings];
  }
}

interface ReadingContext {
  readonly checks: Checks;
  readonly readYaml: YamlReader;
  /** Those found so far. */
  readonly kustomizations: InputDocument[];
}

/** After so many errors no more objects of a file are read: a megabyte of something else may hold a million. */
const mostErrors = 2000;

/**
 * Adds the objects of a file to the collection, and what is wrong with them. Adds nothing of what is wrong where the file is
 * no manifest, and says what it is instead.
 */
function collectFile(
  file: TextFile,
  { checks, readYaml, kustomizations }: ReadingContext,
  into: CollectedObjects,
): readonly Template[] | 'foreign' {
  const before = into.diagnostics.length;
  const others: InputDocument[] = [];
  let objects = 0;
  let errors = 0;
  const faults = takeDocuments(file, readYaml, (document) => {
    if (errors >= mostErrors) return;
    if (isKustomization(document)) kustomizations.push(document);
    if (isForeign(document)) {
      others.push(document);
    } else {
      objects++;
      const known = into.diagnostics.length;
      collectDocument(document, checks, into);
      for (let i = known; i < into.diagnostics.length; i++) if (into.diagnostics[i]?.severity === 'error') errors++;
    }
  });
  const isRead = faults.every(({ code }) => code === 'duplicate-key');
  const isNone = (isRead && others.length > 0) || (faults.length > 0 && isForeignText(file));
  if (objects === 0 && isNone) return 'foreign';
  for (const document of others) collectDocument(document, checks, into);
  for (const diagnostic of faults) into.diagnostics.push(diagnostic);
  const { templates, others: rest } = findTemplates(file, into.diagnostics.slice(before));
  if (templates.length > 0) {
    into.diagnostics.splice(before);
    for (const diagnostic of rest) into.diagnostics.push(diagnostic);
    return templates;
  }
  if (objects === 0 && faults.length === 0) {
    into.diagnostics.push(diagnose('empty-file', {}, placeAt(file, 0)));
  }
  return [];
}

/** Files of folders that belong to something else. */
function describeForeign(files: readonly string[]): readonly Diagnostic[] {
  return files.length === 0 ? [] : [diagnose('skipped-files', { files })];
}
