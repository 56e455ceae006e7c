import { loadTexts, type LoadedInputs } from '../snapshot/open/load-texts.ts';
import { diagnose, isError, type Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { openManifests, type Opened, type Reading } from '../snapshot/open/opened.ts';
import { sceneOf, type Scene } from '../trace/scene.ts';
import type { CompileOptions } from './compile.ts';
import { shownOptions, textsOf } from './inputs.ts';
import { openOptions } from './options.ts';
import { checkOptionNames } from './texts.ts';

/** Manifests to send packets over: compiled as `kpc trace` compiles them, with what they lack assumed. */
export interface ManifestsOfNodes extends Omit<CompileOptions, 'allowEmpty'> {
  /** On each Node of the manifests. */
  readonly allNodes?: boolean | undefined;
}

/** Where packets are sent: manifests, or a side that was compiled, or read from a bundle or a dump. */
export type PacketInput = ManifestsOfNodes | { readonly side: Snapshot };

/** Throws for an option that is unknown, or that has no effect on a side. */
export function checkPacketOptions(options: PacketInput, others: readonly string[]): void {
  const ofManifests = openOptions.filter((name) => name !== 'allowEmpty');
  checkOptionNames(options, ['side', ...ofManifests, 'node', 'allNodes', ...others]);
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

/** Reads manifests, to be compiled node by node. */
export function openTexts({ allNodes, ...options }: ManifestsOfNodes): Opened & { readonly loaded: LoadedInputs } {
  const request = shownOptions({ ...options, node: options.node });
  const assume = request.assume ?? 'by-default';
  const loaded = loadTexts(textsOf(options, options.hostAddresses), { ...request, assume, traffic: true });
  const named = { node: options.node, ipFamily: request.ipFamily, allNodes };
  return { ...openManifests('manifests', loaded, named), loaded };
}

/** The nodes to send packets on. */
export function scenesOf(options: PacketInput): Scenes {
  if ('side' in options) return { scenes: [sceneOf(options.side)], diagnostics: [] };
  const { loaded, nodes, at } = openTexts(options);
  if (nodes.length === 0) {
    return { scenes: undefined, diagnostics: [...loaded.diagnostics, diagnose('no-node', { problem: 'none-chosen' })] };
  }
  const readings = nodes.map(at);
  const diagnostics = new Map(readings.flatMap(diagnosticsOfNode).map((one) => [keyOf(one), one]));
  const found = [...diagnostics.values()];
  const sides = readings.flatMap(({ side }) => side ?? []);
  const isUsable = sides.length === nodes.length && !found.some(isError);
  return { scenes: isUsable ? sides.map(sceneOf) : undefined, diagnostics: found };
}

/** What there is to say of a node. */
export function diagnosticsOfNode({ gaps = () => [], diagnostics }: Reading): readonly Diagnostic[] {
  return [...gaps(), ...diagnostics];
}

/** What two diagnostics have in common that say the same of the same place. */
export function keyOf({ text, place }: Diagnostic): string {
  return JSON.stringify([text, place?.locate()]);
}
