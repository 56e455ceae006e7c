import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Node } from '../cluster/objects.ts';
import { newestRelease, parseRelease, releases, type Release } from '../kube-proxy/releases.ts';

/** Which release's kube-proxy was asked for. */
export type VersionChoice =
  | { readonly kind: 'release'; readonly release: Release }
  /** The release that each node runs. */
  | { readonly kind: 'auto' }
  /** Not given: the newest, unless the input says more. */
  | { readonly kind: 'default' };

/** A reading of --kubernetes-version. With an error among the diagnostics, the choice is the default. */
export interface VersionReading {
  readonly choice: VersionChoice;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the value of --kubernetes-version, or of another flag that takes the same. */
export function parseVersionChoice(text: string | undefined, flag = '--kubernetes-version'): VersionReading {
  if (text === undefined) return { choice: { kind: 'default' }, diagnostics: [] };
  if (text === 'auto') return { choice: { kind: 'auto' }, diagnostics: [] };
  const reading = parseRelease(text);
  if (reading.kind === 'release') return { choice: reading, diagnostics: [] };
  return { choice: { kind: 'default' }, diagnostics: [diagnose('bad-kubernetes-version', { flag, value: text })] };
}

/**
 * The release to check settings by, before it is known which node is compiled for: with auto the newest that a node of
 * the input runs.
 */
export function startingRelease(choice: VersionChoice, nodes: readonly Node[]): Release {
  switch (choice.kind) {
    case 'release':
      return choice.release;
    case 'default':
      return newestRelease;
    case 'auto': {
      const run = new Set(nodes.map(releaseRunBy));
      return releases.findLast((release) => run.has(release)) ?? newestRelease;
    }
  }
}

/** The release that a Node object says that it runs; undefined if it says none that kpc follows. */
export function releaseRunBy(node: Node | undefined): Release | undefined {
  const reading = parseRelease(node?.kubernetesVersion ?? '');
  return reading.kind === 'release' ? reading.release : undefined;
}

/** The release that a Node says it runs. `said` is its own text: "v1.34.2". */
export type NodeRelease =
  | { readonly kind: 'release'; readonly release: Release; readonly said: string }
  | { readonly kind: 'unknown'; readonly diagnostic: Diagnostic };

/** The release that a node runs, by its Node object; `flag` is what asks for it. */
export function releaseOfNode(
  node: Node | undefined,
  nodeName: string,
  flag = '--kubernetes-version auto',
): NodeRelease {
  const said = node?.kubernetesVersion ?? '';
  const reading = parseRelease(said);
  if (reading.kind === 'release') return { kind: 'release', release: reading.release, said };
  return {
    kind: 'unknown',
    diagnostic: diagnose('bad-kubernetes-version', { flag, node: nodeName, version: said }),
  };
}
