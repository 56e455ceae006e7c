import type { Into } from '../base/findings/files.ts';
import { findExcess } from '../base/bounds.ts';
import { resolvePath } from '../base/names.ts';
import { diagnose, diagnoseFault, isError, cite, Tally, type Finding } from '../base/findings/finding.ts';
import type { ClusterFacts } from './configuration/cluster-config.ts';
import { groupBy } from '../cluster/grouping.ts';
import type { Owner, PodMaker, Sourced } from '../cluster/objects.ts';
import type { Place } from '../kernel/place.ts';
import { placeAt, type InputDocument } from './documents/document.ts';
import { findDuplicates } from './objects/find-duplicates.ts';
import {
  isForeignDocument,
  isForeignText,
  describeTemplates,
  findChartTemplate,
  findInLine,
  findTemplate,
  type Template,
} from './files/not-manifests.ts';
import {
  describeKustomizations,
  findIncomplete,
  findPatchFiles,
  isKustomization,
  describeUntaken,
  type Untaken,
} from './files/kustomizations.ts';
import { findChanging } from './files/kustomized-fields.ts';
import { emptyObjectLists, type ObjectLists, type UnreadLists } from './objects/kinds.ts';
import { createYamlReader, takeDocuments } from './documents/read-documents.ts';
import {
  createChecks,
  collectDocument,
  countSkipped,
  addObjects,
  emptyCollection,
  removeObjects,
  type CollectedObjects,
  type FaultyObject,
  type ObjectBesideRules,
} from './objects/read-objects.ts';
import { findUnreadKind } from './objects/unread-kinds.ts';
import { tooLong } from './documents/faults-and-limits.ts';
import { sortDiagnostics } from './sort-diagnostics.ts';
import type { LoadedFiles, NamedFile, TextFile } from './documents/text-file.ts';

export type Inputs = {
  readonly [List in keyof ObjectLists]: readonly ObjectLists[List][number][];
} & {
  readonly facts: readonly ClusterFacts[];
  readonly skipped: ReadonlyMap<string, number>;
  readonly podMakers: readonly PodMaker[];
  readonly besideRules: readonly ObjectBesideRules[];
  /** The kustomizations' changes as text. kpc ignores these changes. */
  readonly kustomized: readonly string[];
  /** The kustomizations' sources outside the input. */
  readonly untaken: readonly Untaken[];
  /** Whether objects with errors are left out. */
  readonly leavesOut: boolean;
  readonly unread: UnreadLists;
  readonly faulty: readonly FaultyObject[];
  /** Sorted by file, line, column and code. */
  readonly diagnostics: readonly Finding[];
  readonly files: ReadonlyMap<string, TextFile>;
};

export interface ReadOptions {
  readonly workloads?: boolean | undefined;
  /** Reads workloads although no flag requests them. Several may have the same name. */
  readonly isTolerant?: boolean | undefined;
  /** Also reads NetworkPolicies, Ingresses, Namespaces and the like, which are otherwise skipped. */
  readonly traffic?: boolean | undefined;
  readonly namespace?: string | undefined;
  /** Leaves out files with errors, with a warning. */
  readonly skipInvalid?: boolean | undefined;
  /** The files are configurations, so errors in any text of a ConfigMap count. */
  readonly areConfigs?: boolean | undefined;
  readonly isShown?: boolean | undefined;
  readonly into?: Into | undefined;
  readonly uncompiled?: readonly Finding[] | undefined;
  readonly unread?: UnreadLists | undefined;
  /** How many diagnostics to make for each code and file. Further ones are only counted. */
  readonly mostOfCode?: number | undefined;
}

/** Reads the objects in files. Never throws for bad input, because the diagnostics have all problems. */
export function collectInputs(
  { files, diagnostics, unreadable, named }: LoadedFiles,
  options: ReadOptions = {},
): Inputs {
  const collected = collectFiles(files, options, unreadable, named);
  return {
    ...collected,
    workloads: scaleWorkloads(collected),
    unread: new Set([...(options.unread ?? []), ...collected.unread]),
    diagnostics: sortDiagnostics([...diagnostics, ...collected.diagnostics]),
    files: new Map(files.map((file) => [file.name, file])),
  };
}

export function hasObjects(inputs: Inputs): boolean {
  const lists = Object.keys(emptyObjectLists()) as readonly (keyof ObjectLists)[];
  return [inputs.facts, ...lists.map((list) => inputs[list])].some(({ length }) => length > 0);
}

/** Applies autoscalers. Autoscalers do not change a workload with 0 replicas, because it is switched off on purpose. */
function scaleWorkloads({ workloads, autoscalers }: CollectedObjects): Inputs['workloads'] {
  if (autoscalers.length === 0) return workloads;
  const keyOf = (namespace: string, { kind, name }: Owner): string => `${kind} ${namespace}/${name}`;
  const byTarget = groupBy(autoscalers, ({ object: { metadata, target } }) => keyOf(metadata.namespace, target));
  return workloads.map((each) => {
    const { kind, metadata, replicas } = each.object;
    const own = byTarget.get(keyOf(metadata.namespace, { kind, name: metadata.name }));
    if (!own || replicas === undefined || replicas === 0) return each;
    const least = Math.max(...own.map(({ object }) => object.least));
    const most = Math.max(...own.map(({ object }) => object.most));
    return { ...each, object: { ...each.object, replicas: Math.min(Math.max(replicas, least), most) } };
  });
}

export function collectFiles(
  files: readonly TextFile[],
  options: ReadOptions = {},
  unreadable: readonly Finding[] = [],
  named: readonly NamedFile[] = [],
): CollectedObjects & Pick<Inputs, 'kustomized' | 'untaken' | 'leavesOut'> {
  const { skipInvalid = false, isTolerant = false, isShown = false, into = {}, uncompiled = [] } = options;
  const read = createFileReader(options);
  const excess = findExcess(files);
  const all = excess ? [] : files.map(read);
  const kustomizations = all.flatMap((reading) => reading.kustomizations);
  const patchFiles = findPatchFiles(kustomizations);
  const readings = all.filter(({ file }) => !patchFiles.has(resolvePath('.', file.name)));
  const collected = uniteReadings(readings, skipInvalid);
  const origins = new Map(files.flatMap(({ name, origin }) => (origin ? [[name, origin] as const] : [])));
  const patches = isTolerant
    ? findDuplicates(wholeWorkloadsFirst(collected), origins, kustomizations, 'unread', into)
    : [];
  removeObjects(collected, patches);
  const duplicates = findDuplicates(collected, origins, kustomizations, skipInvalid ? 'left-out' : 'refused', into);
  const templates = describeTemplates(
    readings.flatMap(({ template, areApart }) => (template && !(skipInvalid && areApart) ? template : [])),
    skipInvalid,
    into,
  );
  const wrong = [...unreadable, ...[...templates, ...duplicates].map(({ diagnostic }) => diagnostic)];
  const wrongFiles = unreadable.length + readings.filter((each) => each.file.origin && isWrong(each)).length;
  const allFiles = files.length + unreadable.length;
  if (wrongFiles > 0 && wrongFiles < allFiles)
    wrong.push(diagnose('left-out', { problem: 'advice', files: wrongFiles, all: allFiles }));
  const leftOut = [
    ...readings.flatMap((reading) => leftOutOf(reading, into)),
    ...unreadable.map((error) => ({ error })),
    ...templates.map(({ diagnostic: error, files: count }) => ({ error, files: count })),
    ...duplicates.map(({ diagnostic: error, again }) => ({ error, objects: again.length })),
    ...uncompiled.map((error) => ({ error, ...(error.place ? { of: error.place.file } : {}) })),
  ];
  if (skipInvalid) removeObjects(collected, [...duplicates, { again: objectsWith(uncompiled, collected) }]);
  const foreign = readings.filter(({ isForeign: isOther }) => isOther).map(({ file }) => file.name);
  const ofServices = [...new Set(collected.services.map(({ source }) => source.place([]).file))];
  const missing = findIncomplete(kustomizations, namesOf(files, unreadable));
  const said = [
    ...(excess ? [diagnoseFault(tooLong(excess.of, excess.most), placeAt(excess.at, 0))] : []),
    // If there are duplicate Services, report only these, because duplicate workloads have the same cause.
    ...(duplicates.length > 0 && !skipInvalid ? [] : patches.map(({ diagnostic }) => diagnostic)),
    ...(skipInvalid ? diagnoseLeftOut(leftOut) : wrong),
    ...(foreign.length > 0 ? [diagnose('skipped-files', { files: foreign })] : []),
    ...describeKustomizations(kustomizations, { missing, ofServices, isShown: isShown || skipInvalid, into }),
  ];
  const diagnostics = [...collected.diagnostics, ...said];
  const leavesOut = skipInvalid && leftOut.length > 0;
  return {
    ...collected,
    diagnostics,
    leavesOut,
    ...leftToKustomize(missing, findChanging(kustomizations, files, named)),
  };
}

function uniteReadings(readings: readonly FileReading[], skipInvalid: boolean): CollectedObjects {
  const collected = emptyCollection();
  for (const reading of readings) {
    const { found, areApart } = reading;
    if (!skipInvalid || !isWrong(reading)) addObjects(found, collected);
    else if (areApart)
      addObjects({ ...found, diagnostics: found.diagnostics.filter((each) => !isError(each)) }, collected);
  }
  return collected;
}

function namesOf(files: readonly TextFile[], unreadable: readonly Finding[]): readonly string[] {
  return [...files.map(({ name }) => name), ...unreadable.flatMap(({ place }) => place?.file ?? [])];
}

function leftToKustomize(
  missing: ReturnType<typeof findIncomplete>,
  changing: ReturnType<typeof findChanging>,
): Pick<Inputs, 'kustomized' | 'untaken'> {
  const unread = changing.flatMap(({ kustomization, unread: lacks }) =>
    lacks.length > 0 ? [{ kustomization, lacks }] : [],
  );
  return { kustomized: changing.map(({ text }) => text), untaken: [...missing, ...unread].map(describeUntaken) };
}

function objectsWith(
  errors: readonly Finding[],
  { skipped: _, unread: __, ...lists }: CollectedObjects,
): readonly object[] {
  const wrong = new Set(errors.flatMap(({ place }) => (place ? keyOfObject(place) : [])));
  if (wrong.size === 0) return [];
  return Object.values(lists as Readonly<Record<string, readonly (object | Sourced<unknown>)[]>>)
    .flat()
    .filter((each) => 'source' in each && wrong.has(keyOfObject(each.source.place([])) ?? ''));
}

export function keyOfObject({ file, object }: Place): string | undefined {
  return object === undefined ? undefined : `${object} ${file}`;
}

/** Puts patches last, because a kustomize patch looks like the workload that it changes. */
function wholeWorkloadsFirst({ workloads }: CollectedObjects): CollectedObjects {
  const partialLast = workloads.toSorted((a, b) => Number(a.object.isPartial) - Number(b.object.isPartial));
  return { ...emptyCollection(), workloads: partialLast };
}

interface LeftOut {
  readonly error: Finding;
  readonly more?: number;
  readonly files?: number;
  readonly objects?: number;
  /** The file, if only the object with the error is left out. */
  readonly of?: string;
}

/** Describes what a file's errors leave out. Templates that take up a whole file are reported together. */
function leftOutOf({ file, found, errors, areApart, template }: FileReading, into: Into): readonly LeftOut[] {
  if (areApart) {
    return errors.map((error) => {
      const unfilled = findInLine(file, error);
      const [described] = unfilled ? describeTemplates([unfilled], true, into) : [];
      return { error: described?.diagnostic ?? error, of: file.name };
    });
  }
  const [error, ...others] = found.diagnostics.filter(isError);
  return error && !template ? [{ error, more: others.length }] : [];
}

function diagnoseLeftOut(parts: readonly LeftOut[]): readonly Finding[] {
  if (parts.length === 0) return [];
  const objects = parts.reduce((sum, part) => sum + (part.objects ?? 0), 0);
  const whole = parts.filter((part) => part.objects === undefined && part.of === undefined);
  const files = whole.reduce((sum, part) => sum + (part.files ?? 1), 0);
  const partial = new Set(parts.flatMap((part) => part.of ?? [])).size;
  return [diagnose('left-out', { problem: 'all', files, partial, objects }), ...parts.map(describePart)];
}

function describePart({ error, files = 1, more = 0 }: LeftOut): Finding {
  return diagnose('left-out', { problem: 'part', error: cite(error), files, more }, error.place);
}

interface FileReading {
  readonly file: TextFile;
  readonly found: CollectedObjects;
  readonly template: Template | undefined;
  readonly kustomizations: readonly InputDocument[];
  /** Whether valid objects can be used although others have errors. */
  readonly areApart: boolean;
  readonly errors: readonly Finding[];
  /** Whether the file is clearly no manifest, so that its errors are not reported. */
  readonly isForeign: boolean;
}

function isWrong({ found, template }: FileReading): boolean {
  return template !== undefined || found.diagnostics.some(isError);
}

function createFileReader({
  workloads = false,
  traffic = false,
  areConfigs = false,
  skipInvalid = false,
  namespace = 'default',
  mostOfCode,
}: ReadOptions) {
  const checks = createChecks({ workloads, namespace, traffic, areConfigs, skipInvalid });
  const readYaml = createYamlReader();
  return (file: TextFile): FileReading => {
    const found = emptyCollection();
    const kustomizations: InputDocument[] = [];
    const template = findChartTemplate(file);
    if (template) return { file, found, template, kustomizations, areApart: false, errors: [], isForeign: false };
    const others: InputDocument[] = [];
    let objects = 0;
    const tally = new Tally(mostOfCode);
    const take = (document: InputDocument): void => {
      if (isKustomization(document)) kustomizations.push(document);
      if (isForeignDocument(document)) {
        others.push(document);
        return;
      }
      objects++;
      collectDocument(document, checks, found, tally);
    };
    const isOfNoUse = (text: string): boolean => {
      const unread = findUnreadKind(text, checks);
      if (unread === undefined) return false;
      objects++;
      countSkipped(...unread, found);
      return true;
    };
    const asked = { tally, isOfNoUse, leavesOut: skipInvalid };
    const { diagnostics: faults, areApart } = takeDocuments(file, readYaml, take, asked);
    const isRead = faults.every(({ code }) => code === 'duplicate-key');
    const isNone = (isRead && others.length > 0) || (faults.length > 0 && isForeignText(file));
    const foreign = { file, found, template, kustomizations, areApart: false, errors: [], isForeign: true };
    if (objects === 0 && isNone) return foreign;
    for (const document of others) collectDocument(document, checks, found, tally);
    const all = [...found.diagnostics, ...faults, ...tally.rest(file.name)];
    const { template: unfilled, others: rest, isWhole } = findTemplate(file, all);
    const isEmpty = objects === 0 && faults.length === 0 && !unfilled;
    if (isEmpty && file.origin) return foreign;
    const diagnostics = isEmpty ? [...rest, diagnose('empty-file', {}, placeAt(file, 0))] : [...rest];
    return {
      file,
      found: { ...found, diagnostics },
      template: unfilled,
      kustomizations,
      errors: all.filter(isError),
      areApart: areApart && !isEmpty && !isWhole,
      isForeign: false,
    };
  };
}
