import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { ClusterFacts } from './configuration/cluster-config.ts';
import { placeAt, type InputDocument } from './documents/document.ts';
import { findDuplicates } from './objects/find-duplicates.ts';
import { describeKustomizations, isForeign, isForeignText, isKustomization } from './files/beside-manifests.ts';
import type { ObjectLists } from './objects/kinds.ts';
import type { LoadedFiles } from './files/load-files.ts';
import { createYamlReader, takeDocuments } from './documents/read-documents.ts';
import {
  createChecks,
  collectDocument,
  addObjects,
  emptyCollection,
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
  /** Whether the files are configurations: then errors in any text of a ConfigMap count. */
  readonly areConfigs?: boolean | undefined;
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
  options: ReadOptions = {},
  unreadable: readonly Diagnostic[] = [],
): CollectedObjects {
  const { skipInvalid = false, isTolerant = false, into = readsManifests } = options;
  const read = createFileReader(options);
  const readings = files.map(read);
  const collected = emptyCollection();
  for (const reading of readings) if (!skipInvalid || !isWrong(reading)) addObjects(reading.found, collected);
  const origins = new Map(files.flatMap(({ name, origin }) => (origin ? [[name, origin] as const] : [])));
  const patches = isTolerant ? findDuplicates(workloadsOf(collected), origins, true, into) : [];
  removeObjects(collected, patches);
  const duplicates = findDuplicates(collected, origins, skipInvalid, into);
  const templates = describeTemplates(
    readings.flatMap((reading) => reading.templates),
    skipInvalid,
    into,
  );
  const wrong = [...unreadable, ...[...templates, ...duplicates].map(({ diagnostic }) => diagnostic)];
  const wrongFiles = unreadable.length + readings.filter((each) => each.file.origin && isWrong(each)).length;
  const all = files.length + unreadable.length;
  if (wrongFiles > 0 && wrongFiles < all)
    wrong.push(diagnose('left-out', { problem: 'advice', files: wrongFiles, all }));
  const leftOut = [
    ...readings.flatMap(leftOutOf),
    ...unreadable.map((error) => ({ error })),
    ...templates.map(({ diagnostic: error, files: count }) => ({ error, files: count })),
    ...duplicates.map(({ diagnostic: error, again }) => ({ error, objects: again.length })),
  ];
  if (skipInvalid) removeObjects(collected, duplicates);
  const foreign = readings.filter(({ isForeign: isOther }) => isOther).map(({ file }) => file.name);
  const ofServices = [...new Set(collected.services.map(({ source }) => source.place([]).file))];
  const kustomizations = readings.flatMap((reading) => reading.kustomizations);
  const said = [
    ...patches.map(({ diagnostic: error }) => describePart({ error })),
    ...(skipInvalid ? describeLeftOut(leftOut) : wrong),
    ...(foreign.length > 0 ? [diagnose('skipped-files', { files: foreign })] : []),
    ...describeKustomizations(kustomizations, ofServices, into),
  ];
  for (const diagnostic of said) collected.diagnostics.push(diagnostic);
  return collected;
}

/** Only the workloads. A kustomization's patch looks like the workload that it changes, so patches come last. */
function workloadsOf({ workloads }: CollectedObjects): CollectedObjects {
  const partialLast = workloads.toSorted((a, b) => Number(a.object.isPartial) - Number(b.object.isPartial));
  return { ...emptyCollection(), workloads: partialLast };
}

/** A part of the input that --skip-invalid leaves out: files, or objects of a file that others already define. */
interface LeftOut {
  /** Of one with several errors, the first. */
  readonly error: Diagnostic;
  readonly more?: number;
  readonly files?: number;
  readonly objects?: number;
}

/** The errors of a file itself; templates are reported together. */
function leftOutOf({ found, templates }: FileReading): readonly LeftOut[] {
  const [error, ...others] = found.diagnostics.filter(isError);
  return error && templates.length === 0 ? [{ error, more: others.length }] : [];
}

function describeLeftOut(parts: readonly LeftOut[]): readonly Diagnostic[] {
  if (parts.length === 0) return [];
  const objects = parts.reduce((sum, part) => sum + (part.objects ?? 0), 0);
  const files = parts.reduce((sum, part) => sum + (part.objects === undefined ? (part.files ?? 1) : 0), 0);
  return [diagnose('left-out', { problem: 'all', files, objects }), ...parts.map(describePart)];
}

function describePart({ error: { text, place }, files = 1, more = 0 }: LeftOut): Diagnostic {
  return diagnose('left-out', { problem: 'part', reason: text, files, more }, place);
}

/** What one file holds. */
interface FileReading {
  readonly file: TextFile;
  readonly found: CollectedObjects;
  readonly templates: readonly Template[];
  readonly kustomizations: readonly InputDocument[];
  /** Whether it is clearly no manifest: its errors are not reported. */
  readonly isForeign: boolean;
}

function isWrong({ found, templates }: FileReading): boolean {
  return templates.length > 0 || found.diagnostics.some(isError);
}

/** After so many errors no more objects of a file are read: a megabyte of something else may hold a million. */
const mostErrors = 2000;

/** Returns a function that reads one file after another. */
function createFileReader({
  workloads = false,
  traffic = false,
  areConfigs = false,
  namespace = 'default',
}: ReadOptions) {
  const checks = createChecks({ workloads, namespace, traffic, areConfigs });
  const readYaml = createYamlReader();
  return (file: TextFile): FileReading => {
    const found = emptyCollection();
    const kustomizations: InputDocument[] = [];
    const chartTemplate = findChartTemplate(file);
    if (chartTemplate) return { file, found, templates: [chartTemplate], kustomizations, isForeign: false };
    const others: InputDocument[] = [];
    let objects = 0;
    let checked = 0;
    let errors = 0;
    const faults = takeDocuments(file, readYaml, (document) => {
      if (errors >= mostErrors) return;
      if (isKustomization(document)) kustomizations.push(document);
      if (isForeign(document)) {
        others.push(document);
        return;
      }
      objects++;
      collectDocument(document, checks, found);
      for (; checked < found.diagnostics.length; checked++)
        if (found.diagnostics[checked]?.severity === 'error') errors++;
    });
    const isRead = faults.every(({ code }) => code === 'duplicate-key');
    const isNone = (isRead && others.length > 0) || (faults.length > 0 && isForeignText(file));
    if (objects === 0 && isNone) return { file, found, templates: [], kustomizations, isForeign: true };
    for (const document of others) collectDocument(document, checks, found);
    const { templates, others: rest } = findTemplates(file, [...found.diagnostics, ...faults]);
    const isEmpty = objects === 0 && faults.length === 0 && templates.length === 0;
    const diagnostics = isEmpty ? [...rest, diagnose('empty-file', {}, placeAt(file, 0))] : [...rest];
    return { file, found: { ...found, diagnostics }, templates, kustomizations, isForeign: false };
  };
}
