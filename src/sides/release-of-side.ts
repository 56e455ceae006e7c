import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Node } from '../cluster/objects.ts';
import { diffSides } from '../diff/diff-sides.ts';
import type { Side } from '../diff/compared-side.ts';
import { quote } from '../base/printable.ts';
import type { ProxyMode } from '../kube-proxy/modes.ts';
import {
  behavioursOf,
  concernsMode,
  newestRelease,
  releases,
  isModeOf,
  type FeatureGates,
  type Release,
} from '../kube-proxy/releases.ts';
import { releaseOfNode, releaseRunBy, type VersionChoice } from '../compile/kubernetes-version.ts';

/** What there is to tell by which release manifests are to be compiled that are compared with another side. */
export interface ReleaseClues {
  readonly nodeName: string;
  readonly node: Node | undefined;
  /** The release of the bundle on the other side. */
  readonly bundle: Release | undefined;
  /** The dump on the other side. */
  readonly dump: Side | undefined;
  readonly gates: FeatureGates;
  readonly mode: ProxyMode;
  readonly compileBy: (release: Release) => Side;
}

export type SettledRelease =
  /** `reason` says why where it was found out. */
  | { readonly kind: 'settled'; readonly release: Release; readonly reason: string | undefined }
  | { readonly kind: 'unknown'; readonly diagnostic: Diagnostic };

/** By which release manifests are compiled: what was asked for, else what the other side shows. */
export function settleRelease(choice: VersionChoice, clues: ReleaseClues): SettledRelease {
  switch (choice.kind) {
    case 'release':
      return { kind: 'settled', release: choice.release, reason: undefined };
    case 'auto': {
      const found = releaseOfNode(clues.node, clues.nodeName);
      if (found.kind === 'unknown') return found;
      return { kind: 'settled', release: found.release, reason: nodeSays(clues.nodeName) };
    }
    case 'default': {
      if (clues.dump) return { kind: 'settled', ...matchDump(clues.dump, clues) };
      return { kind: 'settled', release: clues.bundle ?? newestRelease, reason: undefined };
    }
  }
}

function nodeSays(nodeName: string): string {
  return `as the Node ${quote(nodeName)} says`;
}

/**
 * The release that a dump was taken under: the one that the Node names, unless the manifests come closer to the dump by
 * another one, the newest first. Releases that behave alike count as one.
 */
function matchDump(
  dump: Side,
  { nodeName, node, gates, mode, compileBy }: ReleaseClues,
): { readonly release: Release; readonly reason: string | undefined } {
  const named = releaseRunBy(node);
  const candidates = distinctReleases(named === undefined ? [] : [named], gates, mode);
  let best: { readonly release: Release; readonly differences: number } | undefined;
  for (const release of candidates) {
    const differences = countDifferences(dump, compileBy(release));
    if (best === undefined || differences < best.differences) best = { release, differences };
    if (differences === 0) break;
  }
  const release = best?.release ?? newestRelease;
  if (release === named) return { release, reason: nodeSays(nodeName) };
  if (named !== undefined) return { release, reason: `the dump fits it better than ${named}, which the Node names` };
  return { release, reason: release === newestRelease ? undefined : 'the dump fits it best' };
}

/** One release of each behaviour in the mode, those that are preferred first, then the newest. */
function distinctReleases(preferred: readonly Release[], gates: FeatureGates, mode: ProxyMode): readonly Release[] {
  const seen = new Set<string>();
  return [...preferred, ...releases.toReversed()].filter((release) => {
    if (!isModeOf(mode, release)) return false;
    const key = [...behavioursOf(release, gates)].filter((behaviour) => concernsMode(behaviour, mode)).join();
    return !seen.has(key) && seen.add(key);
  });
}

function countDifferences(dump: Side, compiled: Side): number {
  const { servicePorts, base } = diffSides(dump, compiled, { foreign: false });
  return servicePorts.reduce((sum, { kernel }) => sum + kernel.length, base.length);
}
