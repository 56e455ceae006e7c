import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import { existsSync, statSync } from 'node:fs';
import { readStoredDump, readStoredSide, type SideContext } from './read-side.ts';
import type { StoredSide } from './stored-side.ts';

/** What the files and folders that a command names are, taken together. */
export type NamedInput =
  | { readonly kind: 'manifests' }
  | { readonly kind: 'bundle'; readonly stored: StoredSide & { readonly kind: 'bundle' } }
  /** What was taken from one node, and manifests beside it. */
  | {
      readonly kind: 'dump';
      readonly stored: StoredSide & { readonly kind: 'dump' };
      readonly manifests: readonly string[];
    }
  | { readonly kind: 'unreadable'; readonly stored: StoredSide & { readonly kind: 'unreadable' } }
  /** Things that do not go together, in a sentence. */
  | { readonly kind: 'mixed'; readonly text: string };

/** A path with what is known of it. */
interface Recognised {
  readonly path: string;
  readonly stored: StoredSide;
}

/** Finds out by their content what the paths are. Nothing is said of what cannot be read as manifests: their reader does. */
export async function recogniseInputs(paths: readonly string[], context: SideContext): Promise<NamedInput> {
  const found: Recognised[] = [];
  for (const path of paths) {
    const stored: StoredSide = isSurelyManifests(path)
      ? { kind: 'manifests', name: path }
      : await readStoredSide(path, context);
    if (stored.kind === 'unreadable') return { kind: 'unreadable', stored };
    found.push({ path, stored });
  }
  const dumps = found.filter(({ stored }) => stored.kind === 'dump');
  const bundle = found.find(({ stored }) => stored.kind === 'bundle');
  if (bundle?.stored.kind === 'bundle') {
    const other = found.find((each) => each !== bundle);
    if (!other) return { kind: 'bundle', stored: bundle.stored };
    const text = `${bundle.path} is a bundle: describe it by itself, without ${other.path}, or compare them with kpc diff`;
    return { kind: 'mixed', text };
  }
  const [dump] = dumps;
  if (dump?.stored.kind !== 'dump') return { kind: 'manifests' };
  const manifests = found.flatMap(({ path, stored }) => (stored.kind === 'manifests' ? [path] : []));
  const stored = dumps.length === 1 ? dump.stored : joinDumps(dumps, context);
  if (stored.kind !== 'dump') return { kind: 'unreadable', stored };
  return { kind: 'dump', stored, manifests };
}

/** What is wrong with paths of which one is something else than manifests; undefined where each may be some. */
export async function describeNoManifests(
  paths: readonly string[],
  context: SideContext,
): Promise<Diagnostic | undefined> {
  for (const path of paths) {
    if (isSurelyManifests(path)) continue;
    const stored = await readStoredSide(path, context);
    switch (stored.kind) {
      case 'bundle':
      case 'dump':
        return diagnose('no-manifests', { what: stored.kind, path });
      case 'unreadable': {
        const [reason] = stored.reading.diagnostics;
        if (reason) return reason;
        break;
      }
      case 'manifests':
        break;
      default:
        stored satisfies never;
    }
  }
  return undefined;
}

/** Several files that were taken from one node are one dump. */
function joinDumps(
  dumps: readonly Recognised[],
  { stdin }: SideContext,
): StoredSide & { readonly kind: 'dump' | 'unreadable' } {
  const [first] = dumps;
  const paths = dumps.map(({ path }) => path);
  const joined = readStoredDump(paths, stdin);
  if (joined) return joined;
  if (first?.stored.kind === 'dump') return first.stored;
  throw new Error('no dump among the paths');
}

/** Manifests are large, and their names tell. */
function isSurelyManifests(path: string): boolean {
  return path !== '-' && (!existsSync(path) || (/\.ya?ml$/i.test(path) && !statSync(path).isDirectory()));
}
