import type { Diagnostic } from '../cluster/diagnostic.ts';
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
import { placeAt } from './document.ts';
import { findDuplicates } from './find-duplicates.ts';
import type { KubeProxyConfig } from './schemas/kube-proxy-configuration.ts';
import type { LoadedFiles } from './load-files.ts';
import { takeDocuments } from './read-documents.ts';
import { Checks, collectDocument, emptyCollection } from './read-objects.ts';
import type { CollectedObjects } from './read-objects.ts';
import { createParsers } from './parsers.ts';
import { sortDiagnostics } from './sort-diagnostics.ts';
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
}

/** The objects in files that have been read, be it well. Never throws for bad input: all that is wrong is in the diagnostics. */
export function collectInputs({ files, diagnostics }: LoadedFiles, { workloads }: ReadOptions = {}): Inputs {
  const collected = collectFiles(files, workloads);
  return {
    ...collected,
    diagnostics: sortDiagnostics([...diagnostics, ...collected.diagnostics]),
    files: new Map(files.map((file) => [file.name, file])),
  };
}

/** The objects in texts that have been read. */
export function collectFiles(files: readonly TextFile[], workloads = false): CollectedObjects {
  const collected = emptyCollection();
  const checks = new Checks(workloads);
  const parsers = createParsers();
  for (const file of files) {
    let isEmpty = true;
    const diagnostics = takeDocuments(file, parsers, (document) => {
      isEmpty = false;
      collectDocument(document, checks, collected);
    });
    for (const diagnostic of diagnostics) collected.diagnostics.push(diagnostic);
    if (isEmpty && diagnostics.length === 0) {
      const place = placeAt(file, 0);
      collected.diagnostics.push({ severity: 'warning', code: 'empty-file', text: 'the file holds no objects', place });
    }
  }
  for (const diagnostic of findDuplicates(collected)) collected.diagnostics.push(diagnostic);
  return collected;
}
