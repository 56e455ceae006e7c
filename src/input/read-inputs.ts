import { diagnose } from '../diagnostics/diagnostic.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type {
  Endpoints,
  EndpointSlice,
  Node,
  Pod,
  Service,
  ServiceCidr,
  Sourced,
  Workload,
} from '../cluster/objects.ts';
import type { ClusterFacts } from './cluster-config.ts';
import { placeAt } from './document.ts';
import type { InputDocument } from './document.ts';
import { findDuplicates } from './find-duplicates.ts';
import { describeKustomizations, isKustomization } from './kustomizations.ts';
import type { KubeProxyConfig } from './schemas/kube-proxy-configuration.ts';
import type { LoadedFiles } from './load-files.ts';
import { isForeign, isForeignText } from './no-objects.ts';
import { takeDocuments } from './read-documents.ts';
import { Checks, collectDocument, emptyCollection } from './read-objects.ts';
import type { CollectedObjects } from './read-objects.ts';
import { createParsers } from './parsers.ts';
import type { Parsers } from './parsers.ts';
import { sortDiagnostics } from './sort-diagnostics.ts';
import { describeTemplates, findChartTemplate, findTemplate } from './templates.ts';
import type { Template } from './templates.ts';
import type { TextFile } from './text-file.ts';

/** What the inputs hold. Not to be compiled where a diagnostic is an error. */
export interface Inputs {
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
  /** Of objects that name none. */
  readonly namespace?: string | undefined;
}

/** The objects in files that have been read, be it well. Never throws for bad input: all that is wrong is in the diagnostics. */
export function collectInputs({ files, diagnostics }: LoadedFiles, options: ReadOptions = {}): Inputs {
  const collected = collectFiles(files, options);
  return {
    ...collected,
    diagnostics: sortDiagnostics([...diagnostics, ...collected.diagnostics]),
    files: new Map(files.map((file) => [file.name, file])),
  };
}

/** The objects in texts that have been read. */
export function collectFiles(
  files: readonly TextFile[],
  { workloads = false, namespace = 'default' }: Pick<ReadOptions, 'workloads' | 'namespace'> = {},
): CollectedObjects {
  const collected = emptyCollection();
  const kustomizations: InputDocument[] = [];
  const context = { checks: new Checks(workloads, namespace), parsers: createParsers(), kustomizations };
  const templates: Template[] = [];
  const foreign: string[] = [];
  for (const file of files) {
    const found = findChartTemplate(file) ?? collectFile(file, context, collected);
    if (found === 'foreign') foreign.push(file.name);
    else if (found !== undefined) templates.push(found);
  }
  const origins = new Map(files.flatMap(({ name, origin }) => (origin ? [[name, origin] as const] : [])));
  const ofServices = [...new Set(collected.services.map(({ source }) => source.place([]).file))];
  const more = [
    ...describeTemplates(templates),
    ...describeForeign(foreign),
    ...findDuplicates(collected, origins),
    ...describeKustomizations(kustomizations, ofServices),
  ];
  for (const diagnostic of more) collected.diagnostics.push(diagnostic);
  return collected;
}

interface ReadingContext {
  readonly checks: Checks;
  readonly parsers: Parsers;
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
  { checks, parsers, kustomizations }: ReadingContext,
  into: CollectedObjects,
): Template | 'foreign' | undefined {
  const before = into.diagnostics.length;
  const others: InputDocument[] = [];
  const repeated: Diagnostic[] = [];
  let objects = 0;
  let errors = 0;
  const faults = takeDocuments(file, parsers, (document, repeatedKeys) => {
    if (errors >= mostErrors) return;
    for (const diagnostic of repeatedKeys) repeated.push(diagnostic);
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
  if (objects === 0 && (faults.length === 0 ? others.length > 0 : isForeignText(file))) return 'foreign';
  for (const document of others) collectDocument(document, checks, into);
  for (const diagnostic of repeated) into.diagnostics.push(diagnostic);
  for (const diagnostic of faults) into.diagnostics.push(diagnostic);
  const template = findTemplate(file, into.diagnostics.slice(before));
  if (template) {
    // Whatever else is wrong with it is so because the template is not rendered.
    into.diagnostics.splice(before);
    return template;
  }
  if (objects === 0 && faults.length === 0) {
    into.diagnostics.push(diagnose('empty-file', {}, placeAt(file, 0)));
  }
  return undefined;
}

/** Files of folders that belong to something else. */
function describeForeign(files: readonly string[]): readonly Diagnostic[] {
  return files.length === 0 ? [] : [diagnose('skipped-files', { files })];
}
