import type { TextFile } from '../../input/documents/text-file.ts';
import type { Manifest } from '../../bundle/manifest.ts';
import { compileLoaded, type Compilation, type NodeOptions } from './compile.ts';
import { NodeMemo } from './compile-node.ts';
import type { LoadedInputs } from './load-texts.ts';
import { type Finding, keyOfFault } from '../../base/findings/finding.ts';
import { newestRelease } from '../../kube-proxy/releases.ts';
import { describeGrounds } from '../grounds.ts';
import type { CompiledSnapshot, DumpedSnapshot, Snapshot } from '../snapshot.ts';

/** Undefined if it cannot be used. */
export interface Reading {
  readonly side: Snapshot | undefined;
  readonly diagnostics: readonly Finding[];
  /** By their names in diagnostics. */
  readonly files: LoadedInputs['files'];
  /** For people: how each input was recognised. */
  readonly notes: readonly string[];
  /** For people: the target that manifests were compiled for. */
  readonly made?: string;
  /** The facts about the node that manifests lack. Calling it compiles the node's state. */
  readonly gaps?: Compilation['gaps'];
}

/** A bundle or dump that was read, manifests still to be compiled, or something unreadable. */
export type Recognised = Reading & {
  /** Paths of manifests that were named as well. */ readonly beside: readonly string[];
} & (
    | { readonly kind: 'bundle'; readonly side: CompiledSnapshot; readonly manifest: Manifest }
    | {
        readonly kind: 'dump';
        readonly side: DumpedSnapshot;
        /** The manifests in a support bundle. */
        readonly manifests: readonly TextFile[];
        /** The dump of kpc-apply with what other tools printed on the same node. */
        readonly withMore?: (texts: ReadonlyMap<string, string>, diagnostics: readonly Finding[]) => Recognised;
      }
    | { readonly kind: 'manifests' | 'unreadable'; readonly side: undefined }
  );

/** Its nodes can be read one by one. */
export interface Opened {
  /** Undefined for a bundle or dump. */
  readonly loaded: LoadedInputs | undefined;
  /** '' means the node of the options, else the default one. */
  readonly nodes: readonly string[];
  /** Whether a flag or a configuration names the node. */
  readonly isNodeNamed?: boolean;
  readonly at: (node: string) => Reading;
}

/** A bundle or dump holds one node. */
export function openReading(reading: Reading): Opened {
  return { loaded: undefined, nodes: [''], at: () => reading };
}

type OpenedNodes = NodeOptions & { readonly allNodes?: boolean | undefined };

/** Opens the node in the options, or all Nodes. */
export function openManifests(name: string, loaded: LoadedInputs, options: OpenedNodes): Opened {
  return openNodes(loaded, options, (node, memo) => {
    const compilation = compileLoaded(loaded, { ...options, node, name }, [], memo);
    return readingOf(name, loaded, compilation, '', undefined);
  });
}

/** No diagnostic is repeated for another node. */
export function openNodes(
  loaded: LoadedInputs,
  { allNodes = false, ...options }: OpenedNodes,
  read: (node: string | undefined, memo: NodeMemo | undefined) => Reading,
): Opened {
  const nodes = allNodes ? [...loaded.nodes.keys()].toSorted() : [''];
  const memo = nodes.length > 1 ? new NodeMemo() : undefined;
  /** The node that first reported each diagnostic; reading that node again repeats it. */
  const first = new Map<string, string>();
  const at = (node: string): Reading => {
    const reading = read(node === '' ? options.node : node, memo);
    const diagnostics = reading.diagnostics.filter((each) => {
      const key = keyOfFault(each);
      return !first.has(key) || first.get(key) === node;
    });
    for (const key of diagnostics.map(keyOfFault)) first.set(key, node);
    return { ...reading, diagnostics };
  };
  const isNodeNamed = options.node !== undefined || loaded.settings.hostnameOverride !== '';
  return { loaded, nodes, isNodeNamed, at };
}

export function failedReading({ files }: Pick<Reading, 'files'>, diagnostics: Reading['diagnostics']): Reading {
  return { side: undefined, diagnostics, files, notes: [] };
}

export function readingOf(
  name: string,
  loaded: LoadedInputs,
  { snapshot, diagnostics, gaps }: Compilation,
  /** Where the mode comes from, if no flag or configuration names it. */
  modeFrom: string,
  /** Why this release was chosen, if no flag decided it. */
  reason: string | undefined,
): Reading {
  if (!snapshot) return failedReading(loaded, diagnostics);
  const made = `manifests, compiled for ${describeMade(snapshot, { modeFrom, reason })}`;
  return { ...failedReading(loaded, diagnostics), side: snapshot, made, gaps, notes: [`${name}: ${made}`] };
}

export function describeMade(
  side: CompiledSnapshot,
  /** Where the mode and the release come from, if they were not requested. */
  { modeFrom = '', reason }: { readonly modeFrom?: string; readonly reason?: string | undefined } = {},
): string {
  const why = reason === undefined ? '' : ` (${reason})`;
  const { release } = side.settings;
  const words = release === newestRelease && why === '' ? '' : `, Kubernetes ${release}${why}`;
  return `${describeGrounds(side, modeFrom)}${words}`;
}
