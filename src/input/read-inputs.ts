import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { ClusterFacts } from './configuration/cluster-config.ts';
import { placeAt, type InputDocument } from './documents/document.ts';
import { findDuplicates } from './objects/find-duplicates.ts';
import { describeKustomizations, isForeign, isForeignText, isKustomization } from './files/beside-manifests.ts';
import type { ObjectLists } from './objects/kinds.ts';
import type { LoadedFiles } from './files/load-files.ts';
import { createYamlReader, takeDocuments, type YamlReader } from './documents/read-documents.ts';
import {
  createChecks,
  type Checks,
  collectDocument,
  emptyCollection,
  markCollection,
  removeObjects,
  type CollectedObjects,
} from './objects/read-objects.ts';
import { sortDiagnostics } from './sort-diagnostics.ts';
import { describeTemplates, findChartTemplate, findTemplates, type Template } from './files/templates.ts';
import type { TextFile } from './documents/text-file.ts';

/** What the inputs hold. Not to be compiled where a diagnostic is an error. */
export type Inputs = {
  readonly [List in keyof ObjectLists]: readonly ObjectLists[List][number][];
} & {
  /** What the configuration of other programs says of the cluster. */
  readonly facts: readonly ClusterFacts[];
  /** Kind → how many objects of it were skipped: kpc has no use for them. */
  readonly skipped: ReadonlyMap<string, number>;
  /** Sorted by file, line, column and code. */
  readonly diagnostics: readonly Diagnostic[];
  /** The files read, by the names that diagnostics give them. */
  readonly files: ReadonlyMap<string, TextFile>;
};

/** What to read, and how strictly. */
export interface ReadOptions {
  /** Whether Deployments and other workloads are read too. */
  readonly workloads?: boolean | undefined;
  /** Whether workloads are read though no flag asks for them: the input may hold several of one name. */
  readonly isTolerant?: boolean | undefined;
  /** Whether NetworkPolicies, Ingresses and Namespaces are read too; else they are among the skipped kinds. */
  readonly traffic?: boolean | undefined;
  /** Of objects that name none. */
  readonly namespace?: string | undefined;
  /** Whether files with errors are left out with a warning. */
  readonly skipInvalid?: boolean | undefined;
  /** The command to pipe rendered manifests into. */
  readonly into?: string | undefined;
}

/** What reads rendered manifests, if nothing says better. */
export const readsManifests = 'kpc compile -f -';

/** The objects in files, whether these could be read or not. Never throws for bad input: the diagnostics have all problems. */
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
  const context = {
    checks: createChecks({ workloads, namespace, traffic }),
    readYaml: createYamlReader(),
    kustomizations,
  };
  const templates: Template[] = [];
  const foreign: string[] = [];
  const leftOut: LeftOut[] = [];
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
    const [error, ...others] = errors;
    if (found.length === 0 && error) leftOut.push({ error, more: others.length, files: 1 });
  }
  const origins = new Map(files.flatMap(({ name, origin }) => (origin ? [[name, origin] as const] : [])));
  const ofServices = [...new Set(collected.services.map(({ source }) => source.place([]).file))];
  // A patch of a kustomization looks like the workload that it changes: if no flag asks for workloads, it is no error.
  const partialLast = collected.workloads.toSorted((a, b) => Number(a.object.isPartial) - Number(b.object.isPartial));
  const patches = isTolerant
    ? findDuplicates({ ...emptyCollection(), workloads: partialLast }, origins, true, into)
    : [];
  removeObjects(collected, new Set(patches.flatMap(({ again }) => again)));
  const duplicates = findDuplicates(collected, origins, skipInvalid, into);
  const unrendered = describeTemplates(templates, skipInvalid, into);
  if (skipInvalid) {
    leftOut.push(...unreadable.map((error) => ({ error, files: 1 })));
    leftOut.push(...unrendered.map(({ diagnostic: error, files: count }) => ({ error, files: count })));
    leftOut.push(...duplicates.map(({ diagnostic: error, again }) => ({ error, objects: again.length })));
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
    ...patches.map(({ diagnostic: error }) => describePart({ error })),
    ...(skipInvalid ? describeLeftOut(leftOut) : wrong),
    ...(foreign.length > 0 ? [diagnose('skipped-files', { files: foreign })] : []),
    ...describeKustomizations(kustomizations, ofServices, into),
  ];
  for (const diagnostic of more) collected.diagnostics.push(diagnostic);
  return collected;
}

/** A part of the input that --skip-invalid leaves out: files, or objects of one that others define already. */
interface LeftOut {
  /** Of one with several errors, the first. */
  readonly error: Diagnostic;
  readonly more?: number;
  readonly files?: number;
  readonly objects?: number;
}

function describeLeftOut(parts: readonly LeftOut[]): readonly Diagnostic[] {
  if (parts.length === 0) return [];
  const files = parts.reduce((sum, part) => sum + (part.files ?? 0), 0);
  const objects = parts.reduce((sum, part) => sum + (part.objects ?? 0), 0);
  return [diagnose('left-out', { problem: 'all', files, objects }), ...parts.map(describePart)];
}

function describePart({ error: { text, place }, files = 1, more = 0 }: LeftOut): Diagnostic {
  return diagnose('left-out', { problem: 'part', reason: text, files, more }, place);
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
