import type { RenderedSide } from '../../base/findings/files.ts';
import { existsSync } from 'node:fs';
import { findNearest } from '../../base/names.ts';
import { isError, type Finding, keyOfFault } from '../../base/findings/finding.ts';
import { isInRevision, openTrees, revisionOf } from '../../git/revision-paths.ts';
import { isConfiguration } from '../../input/configuration/read-settings.ts';
import { TextFile } from '../../input/documents/text-file.ts';
import { findPathMistake, loadFile } from '../../input/files/load-files.ts';
import { disk, type FileTree } from '../../input/files/file-tree.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import { findWrongChange, planChange, type AskedChange } from '../../ask/equivalence/change.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import type { Flag } from '../../settings/flag.ts';
import type { ProxyFlags } from '../../settings/table.ts';
import { readManifestSide, type ManifestSide } from '../../snapshot/files/open.ts';
import { findEmptySides } from '../../snapshot/files/empty-sides.ts';
import { readStoredSide, type SideOptions } from '../../snapshot/files/read-side.ts';
import { checkoutOf, loadInputs, loadUnder } from '../../snapshot/files/read-texts.ts';
import type { LoadedInputs, VersionChoice } from '../../snapshot/open/load-texts.ts';
import {
  failedReading,
  openReading,
  type Opened,
  type Reading,
  type Recognised,
  manifests,
  namesInManifests,
  namesNoNode,
} from '../../snapshot/open/stored-side.ts';
import { factsBeside, openLike, optionsLike, takenNodes } from '../../snapshot/open/compile-like.ts';
import { compareReleases, openReleases } from '../../snapshot/open/compare-releases.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { refuseNamedTwice } from '../command-flags.ts';
import { nameAfter, optionsOfChange } from '../options.ts';
import { refuse } from '../refusal.ts';
import { ofSides, type CalledSide } from '../compare-nodes.ts';
import { readAsWords } from '../../say/grounds.ts';
import type { ArgumentsOf } from '../../base/findings/codes.ts';

export type { AskedChange };

export type FromTo<T> = readonly [from: T, to: T];

/** A side of a comparison: a path, or manifests with options of their own. */
export interface NamedSide {
  readonly name: string;
  /** Options for this side only, such as a mode. Undefined for a path. */
  readonly adds:
    | Partial<Pick<SideOptions, keyof ProxyFlags | 'kubernetesVersion' | 'config' | 'isModeUnnamed' | 'sideOf'>>
    | undefined;
}

export interface FoundSide extends NamedSide {
  readonly found: Recognised;
}

export function pathSide(name: string): NamedSide {
  return { name, adds: undefined };
}

/** Reads a side's name. Only the text that it names, on disk, in a revision or on stdin, decides whether it is a configuration. */
export async function readSide(name: string, readStdin?: SideOptions['readStdin']): Promise<NamedSide> {
  const setting = settingIn(name);
  if (setting) return { name, adds: setting };
  return {
    name,
    adds: (await holdsConfiguration(name, readStdin)) ? { config: name, sideOf: 'configuration' } : undefined,
  };
}

function settingIn(name: string): NamedSide['adds'] {
  const proxyMode = proxyModes.find((mode) => mode === name);
  if (proxyMode) return { proxyMode, sideOf: 'mode' };
  if (!/^v?1\.\d+(\.\d+)?$/.test(name) || existsSync(name)) return undefined;
  return { kubernetesVersion: name, sideOf: 'release' };
}

/** Reports whether a word is a mode or release rather than a path. */
export function namesSetting(name: string): boolean {
  return !existsSync(name) && settingIn(name) !== undefined;
}

/** The most bytes in a configuration. Larger files are manifests or dumps, and are left to the code that reads those. */
const largestConfiguration = 2 ** 20;

async function holdsConfiguration(path: string, readStdin: SideOptions['readStdin']): Promise<boolean> {
  const { trees } = await openTrees([path]);
  const stdin = path === '-' ? await readStdin?.() : undefined;
  const file = loadFile(path, stdin, trees.get(path), largestConfiguration);
  return file instanceof TextFile && file.text.length <= largestConfiguration && isConfiguration(file);
}

/** Reports whether a word names nothing: neither a mode or release, nor a path or revision. */
export function isUnknownSide({ name, adds, found }: FoundSide): boolean {
  if (adds || found.kind !== 'manifests' || name === '-' || existsSync(name)) return false;
  return revisionOf(name) === undefined && findPathMistake(name) === undefined;
}

export function nearestMode(name: string): string | undefined {
  return proxyModes.find((each) => each.startsWith(name.toLowerCase())) ?? findNearest(name, proxyModes);
}

export async function recognisePair([from, to]: FromTo<NamedSide>, options: SideOptions): Promise<FromTo<FoundSide>> {
  if (from.name === '-' && to.name === '-') refuse({ problem: 'stdin-of-two-sides' });
  const recognise = async (side: NamedSide) => {
    return { ...side, found: side.adds ? manifests : await readStoredSide(side.name, options) };
  };
  return [await recognise(from), await recognise(to)];
}

export function areStored(sides: FromTo<FoundSide>): boolean {
  return sides.every(({ found: { kind } }) => kind === 'bundle' || kind === 'dump');
}

/** Reports whether a flag affects sides without manifests: it names a dump's objects, or selects a node in a fleet. */
export function isUsefulForStored({ key, needs }: Flag, sides: FromTo<FoundSide>): boolean {
  if (key === 'file') return sides.some(({ found }) => found.kind === 'dump');
  // If these two names differ, the bundle was found in a node's folder inside the folder that the user named.
  if (needs === 'nodes') return sides.some(({ found, name }) => found.kind === 'bundle' && found.side.name !== name);
  return needs === undefined;
}

/** Refuses these flags if both sides are already compiled, because the flags then have no effect. */
export function refuseStrays(flags: readonly Flag[], sides: FromTo<FoundSide>): void {
  if (flags.length === 0 || !areStored(sides)) return;
  const because = { kind: 'both-compiled-already', paths: [sides[0].name, sides[1].name] } as const;
  refuse({ problem: 'idle-flag', flags: flags.map(({ name }) => name), because });
}

/** Refuses flags for manifests if neither side is compiled from manifests, or if each side has its own value for the flag. */
export async function refuseIdleOfSides(given: readonly Flag[], sides: FromTo<FoundSide>): Promise<void> {
  const flags = given.filter(({ needs }) => needs !== undefined);
  refuseNamedTwice(
    flags,
    sides.map(({ adds }) => adds),
  );
  if (sides.some(({ adds }) => adds)) return;
  const ofFiles = flags.filter(({ key }) => key === 'file');
  refuseStrays(
    flags.filter((each) => ofFiles.includes(each) || !isUsefulForStored(each, sides)),
    sides,
  );
  if (ofFiles.length === 0) return;
  // If a side is missing, the code that reads the side reports this.
  for (const { name } of sides) if (name !== '-' && !existsSync(name) && !(await isInRevision(name))) return;
  refuse({ problem: 'idle-flag', flags: ['-f'], because: { kind: 'no-side' } });
}

type OptionsOfRevision = (
  tree: FileTree,
  name: string,
) => Promise<
  | {
      readonly options: Partial<SideOptions>;
      readonly diagnostics: readonly Finding[];
      readonly file: TextFile;
    }
  | undefined
>;

interface PairOptions extends SideOptions {
  /** The command that makes the comparison, with its flags, as the user would type it in a shell. */
  readonly compare?: string | undefined;
  /** Undefined to compare all Nodes that both sides have, if nothing names a Node. */
  readonly allNodes?: boolean | undefined;
  /** The manifests, already loaded, for sides that are only options. */
  readonly loaded?: LoadedInputs | undefined;
}

/**
 * Opens two sides. If one side is manifests, kpc compiles it with the other side's settings and together with the manifests in `beside`. If
 * a side is only options, it uses the manifests that are given for both sides. Refuses sides that cannot be compared.
 */
export async function openPair(
  [from, to]: FromTo<FoundSide>,
  given: PairOptions,
  beside: readonly string[] = [],
  optionsOf: OptionsOfRevision = async () => undefined,
): Promise<FromTo<Opened>> {
  // Objects that kube-proxy does not read can differ only if the two sides are different inputs.
  const options = { ...given, traffic: !(from.adds && to.adds) };
  if ((from.adds || to.adds) && (options.file ?? []).length === 0) refuse({ problem: 'no-input', takes: 'both-sides' });
  if (options.allNodes && [from, to].some(({ found }) => found.kind !== 'manifests'))
    refuse({ problem: 'idle-flag', flags: ['--all-nodes'], because: { kind: 'one-node' } });
  const { compare } = options;
  const isPath = ({ adds, found }: FoundSide): boolean => !adds && found.kind === 'manifests';
  const opened = await openTrees([from, to].filter(isPath).map(({ name }) => name));
  const empty = findEmptySides([from, to], opened, options.exclude);
  let { loaded } = options;
  const into =
    compare === undefined || from.adds || to.adds
      ? options.into
      : { compare, sides: [renderedSide(from), renderedSide(to)] as const };
  const open = async (side: FoundSide, other: FoundSide): Promise<Opened | ManifestSide> => {
    const { name, adds, found } = side;
    if (adds) {
      const like = other.found.side;
      const shared = optionsLike(like, { ...options, ...adds });
      const own = await (loaded ? loadUnder(shared, loaded) : loadInputs(shared));
      loaded = own;
      const compile: ManifestSide['compile'] = ({ takenNodes: nodes }, allNodes) => {
        const whole = nodes ? own.under({ ...shared, takenNodes: nodes }, own.texts.config) : own;
        return openLike(name, whole, like, { ...shared, allNodes });
      };
      return { ...own, compile };
    }
    if (found.kind !== 'manifests') return openReading(found);
    const tree = opened.trees.get(name);
    const own = tree && (await optionsOf(tree, name));
    if (own?.diagnostics.some(isError))
      return openReading(failedReading({ files: new Map([[own.file.name, own.file]]) }, own.diagnostics));
    const asOther = { ...options, file: beside, ...own?.options, into, emptiness: empty.get(side) };
    return readManifestSide(name, other.found, asOther, other.adds);
  };
  const [one, other] = [await open(from, to), await open(to, from)];
  if (!('compile' in one && 'compile' in other)) return [compileAlone(one), compileAlone(other)];
  const allNodes = options.allNodes ?? namesNoNode(options.node, withNodes(one, other), withNodes(other, one));
  const factsOf = (side: ManifestSide, second: ManifestSide, name: string) =>
    from.adds || to.adds ? { takenNodes: takenNodes(side, second) } : factsBeside(side, second, name);
  return [one.compile(factsOf(one, other, to.name), allNodes), other.compile(factsOf(other, one, from.name), allNodes)];
}

function withNodes(side: ManifestSide, other: ManifestSide): ManifestSide {
  return takenNodes(side, other) ? { ...side, nodes: other.nodes } : side;
}

function renderedSide({ name, adds }: FoundSide): RenderedSide {
  const [checkout] = adds ? [] : checkoutOf(name);
  return checkout ?? { name, isFolder: disk.exists(name) && disk.isFolder(name) };
}

function compileAlone(side: Opened | ManifestSide): Opened {
  return 'compile' in side ? side.compile({}, false) : side;
}

/** Returns a side's name for `ofSides`. The name of a mode or release is not a path. */
export function calledSide({ name, adds }: NamedSide): CalledSide {
  return { name, isPath: !adds || adds.config !== undefined };
}

export function readPair([from, to]: FromTo<Opened>, [before, after]: FromTo<NamedSide>) {
  const readings = ofSides([from.at(''), to.at('')], [calledSide(before), calledSide(after)]);
  const [old, fresh] = readings;
  const isKept = keptBeside(before.name, fresh.diagnostics);
  return {
    sides: [old.side, fresh.side] as const,
    diagnostics: sortDiagnostics([...old.diagnostics.filter(isKept), ...fresh.diagnostics]),
    files: new Map(readings.flatMap(({ files }) => [...files])),
    ...readAsOne(readings),
  };
}

/** Returns how both sides are read if that is the same, or else a note on each. Two bundles always have notes. */
function readAsOne(readings: FromTo<Reading>) {
  const [old, fresh] = readings.map(({ readAs }) => readAs);
  if (old?.as === 'manifests' && fresh && readAsWords(old) === readAsWords(fresh)) return { bothAs: old, notes: [] };
  const notes = readings.flatMap(({ side, readAs: what }): readonly ArgumentsOf<'reading'>[] =>
    side && what ? [{ problem: 'read-as', name: side.name, what }] : [],
  );
  return { bothAs: undefined, notes };
}

/** Returns a filter for a revision's diagnostics. The filter drops warnings and notes that the new side has too. */
function keptBeside(path: string, fresh: readonly Finding[]): (each: Finding) => boolean {
  const revision = revisionOf(path);
  if (revision === undefined) return () => true;
  const words = (each: Finding): string =>
    JSON.stringify([keyOfFault(each), each.place?.file]).replaceAll(`${revision}:`, '');
  const said = new Set(fresh.map(words));
  return (each) => isError(each) || !said.has(words(each));
}

export async function nameSides(sides: FromTo<Snapshot>, options: SideOptions) {
  const { cluster, release, ...read } = namesInManifests(await loadInputs(options));
  const name = (side: Snapshot): Snapshot => (side.kind === 'dump' && cluster ? side.namedBy(cluster, release) : side);
  return { ...read, sides: [name(sides[0]), name(sides[1])] as const };
}

/** Refuses an impossible change before any input is read. */
export function expectChange(options: AskedChange & Pick<SideOptions, 'kubernetesVersion'>): void {
  const wrong = findWrongChange(options, options.kubernetesVersion);
  if (wrong) refuse(wrong);
}

export type ChangeOptions = SideOptions & AskedChange & { readonly toConfig?: string | undefined };

/** Opens a change of mode or an upgrade. Also returns the announcements about this change. Refuses any other change. */
export async function openChange(options: ChangeOptions) {
  const { before, after, asked } = optionsOfChange(options);
  const loaded = await loadInputs({ ...options, ...before });
  const settled = asked === '' ? undefined : await loadUnder({ ...options, ...after, proxyMode: undefined }, loaded);
  // If a configuration cannot be read, the code that opens the new side reports this.
  const isUnread = settled?.diagnostics.some(isError) === true;
  const change = isUnread
    ? planChange({ ...options, toConfig: undefined }, loaded)
    : planChange(options, loaded, settled);
  if (change.kind === 'refused') return refuse(change.why);
  const { from, to, announced, modeFrom } = change;
  const pair = [
    { name: from.words, adds: { ...before, ...from.options }, found: manifests },
    { name: nameAfter(to.words, asked), adds: { ...after, ...to.options }, found: manifests },
  ] as const satisfies FromTo<FoundSide>;
  const allNodes = namesNoNode(options.node, loaded);
  return { loaded, pair, announced, allNodes, modeFrom };
}

/** Opens the manifests `name` for two releases. `compare` lists the differences; undefined if a diagnostic is an error. */
export async function openUpgrade(
  name: string,
  options: SideOptions & { readonly foreign?: boolean | undefined },
  to: VersionChoice,
  toFlag: string,
) {
  const loaded = await loadInputs(options);
  const { diagnostics, pair } = openReleases(loaded, options, to, toFlag);
  return { diagnostics, files: loaded.files, compare: pair && (() => compareReleases(loaded, name, pair, options)) };
}
