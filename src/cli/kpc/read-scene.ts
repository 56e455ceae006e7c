import { existsSync, statSync } from 'node:fs';
import { printable } from '../../base/printable.ts';
import { readNamedFile } from '../../base/read-file.ts';
import { NodeMemo } from '../../compile/compile-node.ts';
import type { LoadedInputs } from '../../compile/load-texts.ts';
import { loadInputs } from '../../compile/read-texts.ts';
import { decompile } from '../../describe/decompile.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { findOwners } from '../../diff/changes/owners.ts';
import { classifyServers } from '../../diff/virtual-servers.ts';
import { modeOfState } from '../../kube-proxy/mode-of-state.ts';
import { compileAs, compileSide } from '../../sides/compile-side.ts';
import { recogniseInputs, type SideOptions, readStoredSide } from '../../sides/read-side.ts';
import { type SideReading, manifests } from '../../sides/stored-side.ts';
import { sceneOf, type Scene, onOneNode, partsOfDump } from '../../packet/trace/scene.ts';
import { type MessageOptions, reportInput, refuse } from './messages.ts';
import { type Terminal, say } from '../shared/terminal.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';

/** The options of commands that trace packets. */
export type SceneOptions = SideOptions & MessageOptions & { readonly allNodes?: boolean };

/** Manifests, to be compiled node by node: '' is the usual one. */
interface Manifests {
  readonly loaded: LoadedInputs;
  readonly compile: (node: string) => SideReading;
}

/** All nodes and sides share the input, so each of its messages is reported once: `said` are those that were. */
async function loadManifests(
  name: string,
  options: SceneOptions,
  { readStdin }: Terminal,
  said = new Set<string>(),
): Promise<Manifests> {
  const loaded = await loadInputs(options, readStdin);
  const memo = new NodeMemo();
  const compile = (node: string): SideReading => {
    const reading = compileAs(name, loaded, node === '' ? options : { ...options, node }, memo);
    const diagnostics = reading.diagnostics.filter(({ text }) => !said.has(text));
    for (const { text } of diagnostics) said.add(text);
    return { ...reading, diagnostics };
  };
  return { loaded, compile };
}

/** The nodes that are meant: each of the input's Nodes, or the usual one. Undefined if there is none, which has been reported. */
async function nodesOf(
  loaded: LoadedInputs,
  options: SceneOptions,
  terminal: Terminal,
): Promise<readonly string[] | undefined> {
  const names = [...loaded.prepared.nodes.keys()].toSorted();
  if (!options.allNodes) return [''];
  if (names.length > 0 && !loaded.diagnostics.some(isError)) return names;
  await reportInput(loaded, options, terminal);
  if (names.length === 0)
    await refuse(terminal, 'the input holds no Node', 'add what kubectl get nodes -o yaml prints');
  return undefined;
}

/**
 * The node that packets are traced on, or each of the input's Nodes; undefined if there is none, which has been
 * reported.
 */
export async function readScenes(options: SceneOptions, terminal: Terminal): Promise<readonly Scene[] | undefined> {
  const { file = [], node } = options;
  const input = await recogniseInputs(file, { node, readStdin: terminal.readStdin });
  const asked = { ...options, traffic: true, into: 'kpc describe -' };
  const source = input.kind === 'manifests' ? await loadManifests('-f', asked, terminal) : undefined;
  const nodes = source ? await nodesOf(source.loaded, options, terminal) : [''];
  const scenes: Scene[] = [];
  for (const name of nodes ?? []) {
    const scene = await sceneOfReading(source?.compile(name) ?? input, options, terminal);
    if (!scene) return undefined;
    scenes.push(scene);
  }
  return nodes && scenes;
}

/** One side of a comparison: a path, or the manifests of -f with some flags. */
interface Spec {
  readonly name: string;
  /** Undefined for a path. */
  readonly flags: SceneOptions | undefined;
}

/** Two sides, node by node. */
export interface Pairs {
  /** All nodes that are meant; one of the name '' is the usual one. */
  readonly nodes: readonly string[];
  /** The inputs of the old side, if both are manifests. */
  readonly loaded: LoadedInputs | undefined;
  /** Both sides of a node; undefined if one cannot be used, which has been reported. */
  readonly read: (node: string) => Promise<readonly [Scene, Scene] | undefined>;
}

/** A word on the command line that says how a side differs: a mode, a release, a configuration; else it is a path. */
function readSpec(name: string, options: SceneOptions): Spec {
  if (proxyModes.some((mode) => mode === name)) return { name, flags: { ...options, proxyMode: name } };
  if (/^v?1\.\d+(\.\d+)?$/.test(name) && !existsSync(name)) {
    return { name, flags: { ...options, kubernetesVersion: name } };
  }
  return { name, flags: holdsConfiguration(name) ? { ...options, config: name } : undefined };
}

function holdsConfiguration(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  const start = readNamedFile(path).subarray(0, 0x10000).toString('latin1');
  return /\bkind["']?:\s*["']?KubeProxyConfiguration\b/.test(start) && !/\bkind["']?:\s*["']?Service\b/.test(start);
}

/** Finds out what two sides are; undefined if they cannot be compared, which has been reported. */
export async function readPairs(
  from: string,
  to: string,
  options: SceneOptions,
  terminal: Terminal,
): Promise<Pairs | undefined> {
  const [old, fresh] = [readSpec(from, options), readSpec(to, options)];
  if ((old.flags || fresh.flags) && (options.file ?? []).length === 0) {
    await refuse(terminal, 'no input is named', 'add the manifests that both sides are compiled from, with -f');
    return undefined;
  }
  if (old.flags && fresh.flags) {
    const said = new Set<string>();
    const before = await loadManifests(old.name, old.flags, terminal, said);
    const after = await loadManifests(fresh.name, fresh.flags, terminal, said);
    const nodes = await nodesOf(before.loaded, options, terminal);
    const read = (node: string) => scenesOf(before.compile(node), after.compile(node), options, terminal);
    return nodes && { nodes, loaded: before.loaded, read };
  }
  if (options.allNodes) {
    await refuse(terminal, '--all-nodes: only for manifests, and a bundle or dump is of one node');
    return undefined;
  }
  const read = async () => {
    const readings = [readOne(old, fresh, options, terminal), readOne(fresh, old, options, terminal)] as const;
    return scenesOf(...(await Promise.all(readings)), options, terminal);
  };
  return { nodes: [''], loaded: undefined, read };
}

async function readOne(
  { name, flags }: Spec,
  other: Spec,
  options: SceneOptions,
  terminal: Terminal,
): Promise<SideReading> {
  if (flags) return (await loadManifests(name, flags, terminal)).compile('');
  const { readStdin } = terminal;
  const stored = await readStoredSide(name, { readStdin });
  if (stored.kind !== 'manifests') return stored;
  const beside = other.flags ? manifests : await readStoredSide(other.name, { readStdin });
  return compileSide(name, beside, { ...(other.flags ?? options), file: [] }, readStdin);
}

async function scenesOf(
  from: SideReading,
  to: SideReading,
  options: MessageOptions,
  terminal: Terminal,
): Promise<readonly [Scene, Scene] | undefined> {
  const [before, after] = [await sceneOfReading(from, options, terminal), await sceneOfReading(to, options, terminal)];
  if (!before || !after) return undefined;
  for (const { name, coverage } of [before.side, after.side]) {
    const unshown = partsOfDump.filter((part) => !coverage[part]).map((part) => partWords[part]);
    const text = `${name} does not show ${unshown.join(', ')}: assumed equal to the other side`;
    if (unshown.length > 0) await say(terminal, `note: ${printable(text)}\n`);
  }
  return onOneNode(before, after);
}

const partWords: Readonly<Record<(typeof partsOfDump)[number], string>> = {
  sets: 'IP sets',
  virtualServers: 'virtual servers',
  links: 'addresses',
  sysctls: 'sysctls',
};

/** A side that was read, as a scene; undefined if it cannot be used, which has been reported. */
async function sceneOfReading(
  reading: SideReading,
  options: MessageOptions,
  terminal: Terminal,
): Promise<Scene | undefined> {
  const { side, inputs } = reading;
  if (!(await reportInput(reading, options, terminal)) || !side) return undefined;
  const { state, labels, coverage, services, doubts } = side;
  const owners = findOwners(labels ? [labels, state] : [state]);
  const shown = services ? undefined : decompile(state, owners, classifyServers(side, side), coverage);
  for (const doubt of doubts) {
    // Other programs' tables report that themselves.
    if (doubt.kind === 'other-table') continue;
    const text = `${doubt.file} may hold more than kpc could read of it`;
    await terminal.err(`warning: ${printable(text)}\n`);
  }
  const mode = services?.settings.mode ?? shown?.mode ?? modeOfState(state);
  return sceneOf(side, owners, mode, shown?.ports ?? [], inputs);
}
