import { isError, type Finding, keyOfFault } from '../../base/findings/finding.ts';
import { openTrees } from '../../git/open-trees.ts';
import type { FileTree } from '../../input/files/file-tree.ts';
import { revisionOf } from '../../git/revision-path.ts';
import type { TextFile } from '../../input/documents/text-file.ts';
import { sortDiagnostics } from '../../input/sort-diagnostics.ts';
import type { Flag } from '../../settings/flag.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { compileSide } from '../../snapshot/files/open.ts';
import { readNames, readStoredSide, type SideOptions } from '../../snapshot/files/read-side.ts';
import { failedReading, type Reading, type Recognised } from '../../snapshot/open/opened.ts';
import { refuse } from '../refusal.ts';

/** The old and the new side of a difference. */
export type Pair<T> = readonly [from: T, to: T];

/** Finds out what two paths are. */
export async function recogniseSides(paths: Pair<string>, options: SideOptions) {
  if (paths.every((path) => path === '-')) refuse('only one side can be read from stdin');
  return [await readStoredSide(paths[0], options), await readStoredSide(paths[1], options)] as const;
}

/** Whether neither side needs compiling. */
export function areStored(sides: Pair<Recognised>): boolean {
  return sides.every(({ kind }) => kind === 'bundle' || kind === 'dump');
}

/** Whether a flag has an effect on sides without manifests: it gives a dump names, or selects a node of a fleet. */
export function isUsefulForStored({ key, needs }: Flag, paths: Pair<string>, sides: Pair<Recognised>): boolean {
  if (key === 'file') return sides.some(({ kind }) => kind === 'dump');
  // The bundle of a node was found inside the named folder.
  if (needs === 'nodes') return sides.some((side, i) => side.kind === 'bundle' && side.side.name !== paths[i]);
  return needs === undefined;
}

/** What a kpc.yaml of a side's revision says of its options; undefined if there is none. */
type OptionsOfRevision = (tree: FileTree) => Promise<
  | {
      readonly options: Partial<SideOptions>;
      readonly diagnostics: readonly Finding[];
      readonly file: TextFile;
    }
  | undefined
>;

/** Compiles the sides that are manifests, each as the other. */
export async function readSides(
  paths: Pair<string>,
  sides: Pair<Recognised>,
  options: SideOptions,
  optionsOf: OptionsOfRevision,
) {
  const finish = async (path: string, side: Recognised, other: Recognised): Promise<Reading> => {
    if (side.kind !== 'manifests') return side;
    const tree = (await openTrees([path])).trees.get(path);
    const own = tree && (await optionsOf(tree));
    if (own?.diagnostics.some(isError))
      return failedReading({ files: new Map([[own.file.name, own.file]]) }, own.diagnostics);
    return compileSide(path, other, { ...options, ...own?.options, into: 'kpc describe -' });
  };
  const [from, to] = sides;
  const readings = [await finish(paths[0], from, to), await finish(paths[1], to, from)] as const;
  return {
    sides: [readings[0].side, readings[1].side] as const,
    diagnostics: sortDiagnostics(joinDiagnostics(paths[0], ...readings)),
    files: new Map(readings.flatMap((reading) => [...reading.files])),
    /** What both were compiled for, if that is the same. */
    made: readings[0].made === readings[1].made ? readings[0].made : undefined,
    notes: readings.flatMap((reading) => reading.notes),
  };
}

/** Those of both sides, without the warnings and notes of a revision that are still true of the new side. */
function joinDiagnostics(path: string, from: Reading, to: Reading): readonly Finding[] {
  const revision = revisionOf(path);
  if (revision === undefined) return [...from.diagnostics, ...to.diagnostics];
  const words = (each: Finding): string =>
    JSON.stringify([keyOfFault(each), each.place?.file]).replaceAll(`${revision}:`, '');
  const said = new Set(to.diagnostics.map(words));
  return [...from.diagnostics.filter((each) => isError(each) || !said.has(words(each))), ...to.diagnostics];
}

/** The sides with the Services of manifests, which name what dumps show. */
export async function nameSides(sides: Pair<Snapshot>, options: SideOptions) {
  const { cluster, release, ...read } = await readNames(options);
  const name = (side: Snapshot): Snapshot => (side.kind === 'dump' && cluster ? side.namedBy(cluster, release) : side);
  return { ...read, sides: [name(sides[0]), name(sides[1])] as const };
}
