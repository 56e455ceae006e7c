import { diagnose, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Node, ProxySettings } from '../cluster/objects.ts';
import { checkMode } from '../input/configuration/resolve-settings.ts';
import { checkFeatureGates } from '../input/configuration/feature-gates.ts';
import { isNodePortWord } from '../kube-proxy/modes.ts';
import {
  behavioursOf,
  newestRelease,
  parseRelease,
  releaseRange,
  releases,
  type Release,
} from '../kube-proxy/releases.ts';
import { checkLoading, prepareForRelease, type Prepared } from './compile-node.ts';

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
  const release = parseRelease(text);
  if (release) return { choice: { kind: 'release', release }, diagnostics: [] };
  const expected = `a release of Kubernetes ${releaseRange}, or auto`;
  return { choice: { kind: 'default' }, diagnostics: [diagnose('bad-setting', { name: flag, value: text, expected })] };
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
  return parseRelease(node?.kubernetesVersion ?? '');
}

/** What each node of a fleet compiles from, and the errors of nodes whose release `auto` cannot find. */
export function prepareForNodes(
  prepared: Prepared,
  choice: VersionChoice,
  nodes: readonly string[],
): { readonly preparedFor: (node: string) => Prepared; readonly diagnostics: readonly Diagnostic[] } {
  if (choice.kind !== 'auto') return { preparedFor: () => prepared, diagnostics: [] };
  const ofRelease = new Map<Release, Prepared>();
  const ofNode = new Map<string, Prepared>();
  const diagnostics: Diagnostic[] = [];
  for (const node of nodes) {
    const found = releaseOfNode(prepared.nodes.get(node), node);
    if (found.kind === 'unknown') diagnostics.push(found.diagnostic);
    else {
      const known = ofRelease.get(found.release) ?? prepareForRelease(prepared, found.release);
      ofRelease.set(found.release, known);
      ofNode.set(node, known);
    }
  }
  diagnostics.push(...checkReleases(prepared, [...ofRelease.values()]));
  return { preparedFor: (node) => ofNode.get(node) ?? prepared, diagnostics };
}

/** What is wrong with the input as the kube-proxies of other releases see it than the one that it was read for. */
export function checkReleases(read: Prepared, seen: readonly Prepared[]): readonly Diagnostic[] {
  // Several releases may have the same fault.
  const said = new Set(read.diagnostics.map(({ text }) => text));
  return seen.flatMap((each) => checkRelease(read, each)).filter(({ text }) => !said.has(text) && said.add(text));
}

function checkRelease({ gates, settings }: Prepared, seen: Prepared): readonly Diagnostic[] {
  const { release } = seen.settings;
  if (release === settings.release) return [];
  return [
    ...checkMode(settings.mode, { release, gates }),
    ...checkFeatureGates(gates, release).map(({ fault }) =>
      diagnose('bad-feature-gate', { ...fault, asRelease: release }),
    ),
    ...checkNodePortWords(settings, release),
    ...checkLoading(seen),
  ];
}

function checkNodePortWords({ nodePortAddresses }: ProxySettings, release: Release): readonly Diagnostic[] {
  const behaviours = behavioursOf(release);
  if (behaviours.has('node-port-words')) return [];
  if (!nodePortAddresses.some(isNodePortWord)) return [];
  const isRead = nodePortAddresses.length === 1 && nodePortAddresses[0] === 'primary';
  if (isRead && behaviours.has('primary-node-ports')) return [];
  const seen = { field: 'nodePortAddresses', value: nodePortAddresses.join(','), release, asRelease: release };
  return [diagnose('bad-cidr', { problem: 'word-of-release', ...seen, isRead })];
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
  const release = parseRelease(said);
  if (release) return { kind: 'release', release, said };
  return {
    kind: 'unknown',
    diagnostic: diagnose('bad-kubernetes-version', { flag, node: nodeName, version: said }),
  };
}
