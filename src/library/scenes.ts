import { compileLoaded } from '../compile/compile.ts';
import { NodeMemo } from '../compile/compile-node.ts';
import { loadTexts, type LoadedInputs } from '../compile/load-texts.ts';
import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { sceneOf, type Scene } from '../trace/scene.ts';
import type { CompileOptions } from './compile.ts';
import { inputOptions, shownOptions, textsOf } from './inputs.ts';
import { checkOptionNames } from './texts.ts';

/** Manifests to send packets over: compiled as `kpc trace` compiles them, with what they lack assumed. */
export interface ManifestsOfNodes extends Omit<CompileOptions, 'allowEmpty'> {
  /** On each Node of the manifests. */
  readonly allNodes?: boolean | undefined;
}

/** Where packets are sent: manifests, or a side that was compiled, or read from a bundle or a dump. */
export type PacketInput = ManifestsOfNodes | { readonly side: Snapshot };

const ofManifests: readonly string[] = [
  ...inputOptions.filter((name) => name !== 'allowEmpty'),
  ...(['node', 'allNodes', 'hostAddresses'] as const),
];

/** Throws for an option that is unknown, or that has no effect on a side. */
export function checkPacketOptions(options: PacketInput, others: readonly string[]): void {
  checkOptionNames(options, ['side', ...ofManifests, ...others]);
  if (!('side' in options)) return;
  const idle = Object.keys(options).find((name) => name !== 'side' && !others.includes(name));
  if (idle !== undefined) throw new TypeError(`option "${idle}" is only for manifests: a side is compiled already`);
}

/** Nodes, or why there are none. */
export interface Scenes {
  /** Undefined if a diagnostic is an error. */
  readonly scenes: readonly Scene[] | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/** Manifests, compiled node by node: '' is the usual node. */
export interface LoadedManifests {
  readonly loaded: LoadedInputs;
  readonly compile: (node: string) => Scenes;
}

/** Reads manifests once, for all nodes. */
export function loadManifests({ allNodes: _, ...options }: ManifestsOfNodes): LoadedManifests {
  const request = shownOptions({ ...options, node: options.node });
  const assume = request.assume ?? 'by-default';
  const loaded = loadTexts(textsOf(options, options.hostAddresses), { ...request, assume, traffic: true });
  const memo = new NodeMemo();
  const compile = (node: string): Scenes => {
    const named = { node: node === '' ? options.node : node, ipFamily: request.ipFamily };
    const { snapshot, gaps, diagnostics } = compileLoaded(loaded, named, [], memo);
    const said = [...gaps(), ...diagnostics];
    if (!snapshot) return { scenes: undefined, diagnostics: said };
    return { scenes: [sceneOf(snapshot)], diagnostics: said };
  };
  return { loaded, compile };
}

/** The nodes that the options name: '' is the usual one. */
export function nodesOf({ prepared }: LoadedInputs, allNodes: boolean | undefined): readonly string[] {
  return allNodes === true ? [...prepared.nodes.keys()].toSorted() : [''];
}

/** The nodes to send packets on. */
export function scenesOf(options: PacketInput): Scenes {
  if ('side' in options) return { scenes: [sceneOf(options.side)], diagnostics: [] };
  const { loaded, compile } = loadManifests(options);
  const nodes = nodesOf(loaded, options.allNodes);
  if (nodes.length === 0) {
    return { scenes: undefined, diagnostics: [...loaded.diagnostics, diagnose('no-node', { problem: 'none-chosen' })] };
  }
  return joinScenes(nodes.map(compile));
}

/** All scenes, and each diagnostic once: all nodes read the same input. */
export function joinScenes(all: readonly Scenes[]): Scenes {
  const diagnostics = new Map(all.flatMap((each) => each.diagnostics.map((one) => [keyOf(one), one] as const)));
  const found = [...diagnostics.values()];
  const scenes = all.flatMap((each) => each.scenes ?? []);
  return { scenes: found.some(isError) || all.some((each) => !each.scenes) ? undefined : scenes, diagnostics: found };
}

function keyOf({ text, place }: Diagnostic): string {
  return JSON.stringify([text, place?.locate()]);
}
