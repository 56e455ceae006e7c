import { existsSync, statSync } from 'node:fs';
import { findNearest } from '../../base/find-nearest.ts';
import { joinWords } from '../../base/join-words.ts';
import { readNamedFile } from '../../base/read-file.ts';
import { revisionOf } from '../../git/revision-path.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { compileSide } from '../../snapshot/files/open.ts';
import { readStoredSide, type SideOptions } from '../../snapshot/files/read-side.ts';
import { loadInputs } from '../../snapshot/files/read-texts.ts';
import { openManifests, openReading, type Opened, type Reading } from '../../snapshot/open/opened.ts';
import { manifests } from '../../snapshot/open/stored-side.ts';
import { refuse } from '../refusal.ts';

interface PairOptions extends SideOptions {
  readonly allNodes?: boolean;
}

/** One side of a comparison: a path, or manifests with options of its own. */
export interface NamedSide {
  readonly name: string;
  /** Options in addition to those of both sides, such as a mode; undefined for a path. */
  readonly adds: Partial<Pick<SideOptions, 'proxyMode' | 'kubernetesVersion' | 'config' | 'featureGates'>> | undefined;
}

/** Reads a word that says how a side differs (a mode, a release, a configuration), or else a path. */
export function readSide(name: string): NamedSide {
  const proxyMode = proxyModes.find((mode) => mode === name);
  if (proxyMode) return { name, adds: { proxyMode } };
  if (/^v?1\.\d+(\.\d+)?$/.test(name) && !existsSync(name)) return { name, adds: { kubernetesVersion: name } };
  return { name, adds: holdsConfiguration(name) ? { config: name } : undefined };
}

function holdsConfiguration(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  const start = readNamedFile(path).subarray(0, 0x10000).toString('latin1');
  return /\bkind["']?:\s*["']?KubeProxyConfiguration\b/.test(start) && !/\bkind["']?:\s*["']?Service\b/.test(start);
}

/** What a word can only have been meant as; undefined if it is a mode, a release, or something that there is. */
export function findMeant({ name, adds }: NamedSide): string | undefined {
  if (adds || name === '-' || existsSync(name) || revisionOf(name) !== undefined || /[./\\]/.test(name))
    return undefined;
  const mode = proxyModes.find((each) => each.startsWith(name.toLowerCase())) ?? findNearest(name, proxyModes);
  return mode ?? joinWords([...proxyModes, 'a release', 'a file'], 'or');
}

/** Opens both sides. Refuses what cannot be compared. */
export async function openPair(
  old: NamedSide,
  fresh: NamedSide,
  options: PairOptions,
): Promise<readonly [Opened, Opened]> {
  if ((old.adds || fresh.adds) && (options.file ?? []).length === 0)
    refuse('no input is named', 'add the manifests that both sides are compiled from, with -f');
  if (old.adds && fresh.adds) {
    const said = new Set<string>();
    const open = async ({ name, adds }: NamedSide) => {
      const own = { ...options, ...adds };
      return openManifests(name, await loadInputs(own), own, said);
    };
    return [await open(old), await open(fresh)];
  }
  if (options.allNodes) refuse('--all-nodes: only for manifests, and a bundle or dump is of one node');
  const [from, to] = await Promise.all([readOne(old, fresh, options), readOne(fresh, old, options)]);
  return [openReading(from), openReading(to)];
}

async function readOne({ name, adds }: NamedSide, other: NamedSide, options: PairOptions): Promise<Reading> {
  if (adds) {
    const own = { ...options, ...adds };
    return openManifests(name, await loadInputs(own), own).at('');
  }
  const stored = await readStoredSide(name, { readStdin: options.readStdin });
  if (stored.kind !== 'manifests') return stored;
  const beside = other.adds ? manifests : await readStoredSide(other.name, { readStdin: options.readStdin });
  return compileSide(name, beside, { ...options, ...other.adds, file: [] });
}
