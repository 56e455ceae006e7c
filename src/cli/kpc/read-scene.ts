import { existsSync, statSync } from 'node:fs';
import { printable } from '../../base/printable.ts';
import { readNamedFile } from '../../base/read-file.ts';
import { NodeMemo } from '../../compile/compile-node.ts';
import { parseHostLinks, type LoadedInputs } from '../../compile/load-texts.ts';
import { loadInputs, readHostText } from '../../compile/read-texts.ts';
import { showsAnything } from '../../dumps/coverage.ts';
import { isForeign } from '../../dumps/dump.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { compileAs } from '../../sides/compile-as.ts';
import { compileSide } from '../../sides/compile-side.ts';
import { recogniseInputs, type NamedInput, type SideOptions, readStoredSide } from '../../sides/read-side.ts';
import { type DumpedSide, type SideReading, type StoredSide, manifests } from '../../sides/stored-side.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { revisionOf } from '../../git/revision-path.ts';
import { joinWords } from '../../base/join-words.ts';
import { describeUnshown, sceneOf, type Scene, onOneNode } from '../../trace/scene.ts';
import { describeIdleFlags, storedPath, withoutDefaultMode } from './input-options.ts';
import { type MessageOptions, reportInput, refuse } from './messages.ts';
import { type Terminal, say } from '../shared/terminal.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';

export type SceneOptions = SideOptions &
  MessageOptions & {
    readonly allNodes?: boolean;
    /** The flags on the command line that say how manifests are compiled. */
    readonly flagsOfManifests?: readonly string[];
  };

/** Flags that have a meaning for bundles and dumps, too: the namespace of names in a question, and the addresses of a dump. */
const ofAnyInput: ReadonlySet<string> = new Set(['--namespace', '--host-addresses']);

/** Manifests, compiled node by node: '' is the usual node. */
interface Manifests {
  readonly loaded: LoadedInputs;
  readonly compile: (node: string) => SideReading;
}

/** Reports each message once, though all nodes and sides read the same input: `said` holds those already reported. */
async function loadManifests(
  name: string,
  options: SceneOptions,
  { readStdin }: Terminal,
  said = new Set<string>(),
): Promise<Manifests> {
  const loaded = await loadInputs(options, readStdin);
  const memo = new NodeMemo();
  const compile = (node: string): SideReading => {
    // What is printed says which mode it is.
    const reading = withoutDefaultMode(compileAs(name, loaded, node === '' ? options : { ...options, node }, memo));
    const diagnostics = reading.diagnostics.filter(({ text }) => !said.has(text));
    for (const { text } of diagnostics) said.add(text);
    return { ...reading, diagnostics };
  };
  return { loaded, compile };
}

/** The Nodes of the input, or the usual node. Undefined if there is none; that has been reported. */
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

/** The node to trace packets on, or all Nodes of the input; undefined if there is none; that has been reported. */
export async function readScenes(options: SceneOptions, terminal: Terminal): Promise<readonly Scene[] | undefined> {
  const { file = [], node } = options;
  const named = await recogniseInputs(file, { node, readStdin: terminal.readStdin });
  // Beside manifests, a listing of flows says what exists, and the manifests what becomes of the next packet.
  const flows =
    named.kind === 'dump' && named.beside.length > 0 && !showsAnything(named.side.coverage)
      ? named.side.flows
      : undefined;
  const input = flows ? { ...manifests, beside: [] } : named;
  const flags = (options.flagsOfManifests ?? []).filter((flag) => !ofAnyInput.has(flag));
  const idle = describeIdleFlags(flags, input, { path: storedPath(file, input), node });
  if (idle !== undefined) {
    await refuse(terminal, idle);
    return undefined;
  }
  if (options.allNodes && (input.kind === 'bundle' || input.kind === 'dump')) {
    await refuse(terminal, `--all-nodes: only for manifests, and ${file[0]} is a ${input.kind} of one node`);
    return undefined;
  }
  const ofManifests = flows && named.beside;
  const asked = { ...options, ...(ofManifests && { file: ofManifests }), traffic: true, into: 'kpc describe -' };
  const source = input.kind === 'manifests' ? await loadManifests('-f', asked, terminal) : undefined;
  const stored = input.kind === 'dump' ? await withObjects(input, asked, terminal) : input;
  const nodes = source ? await nodesOf(source.loaded, options, terminal) : [''];
  const scenes: Scene[] = [];
  for (const name of nodes ?? []) {
    const read = source?.compile(name) ?? (await withHostAddresses(stored, options, terminal));
    const reading = read?.side && flows ? { ...read, side: read.side.with({ flows }) } : read;
    const scene = reading && (await sceneOfReading(reading, options, terminal));
    if (!scene) return undefined;
    scenes.push(scene);
  }
  return nodes && scenes;
}

/** A dump with the objects of the manifests beside it, or of those that its support bundle holds. */
async function withObjects(
  input: NamedInput & DumpedSide,
  options: SceneOptions,
  terminal: Terminal,
): Promise<StoredSide> {
  const { beside, manifests: texts = [] } = input;
  if (beside.length + texts.length === 0) return input;
  const { inputs, files, diagnostics } = await loadInputs({ ...options, file: beside, texts }, terminal.readStdin);
  const errors = diagnostics.filter(isError);
  const [wrong] = errors;
  // Nobody chose what a support bundle holds.
  if (wrong && beside.length === 0) {
    await terminal.err(`warning: left out its manifests: ${printable(wrong.text)}\n`);
    return input;
  }
  return {
    ...input,
    side: input.side.with({ objects: inputs }),
    files,
    diagnostics: [...input.diagnostics, ...errors],
  };
}

/**
 * Replaces the addresses of a dump with those of --host-addresses. Undefined if they cannot be read, or for a bundle,
 * which has its own; that has been reported.
 */
async function withHostAddresses(
  input: StoredSide,
  { hostAddresses: path, ...options }: SceneOptions,
  terminal: Terminal,
): Promise<SideReading | undefined> {
  if (path === undefined || !input.side) return input;
  if (input.kind !== 'dump') {
    const what = input.kind === 'bundle' ? 'a bundle has its own addresses' : 'only for manifests and dumps';
    await refuse(terminal, `--host-addresses: ${what}`);
    return undefined;
  }
  const { links, diagnostics } = parseHostLinks(readHostText(path));
  const { side } = input;
  const { state, coverage } = side;
  const reading = { ...input, diagnostics: [...input.diagnostics, ...diagnostics] };
  if (diagnostics.length === 0) {
    const covered = { ...coverage, links: true, allAddresses: undefined };
    return { ...reading, side: side.with({ state: () => ({ ...state, links }), coverage: covered }) };
  }
  await reportInput(reading, options, terminal);
  return undefined;
}

/** One side of a comparison: a path, or the manifests of -f with flags of its own. */
export interface Spec {
  readonly name: string;
  /** Flags in addition to those of both sides, such as { "--proxy-mode": "nftables" }; undefined for a path. */
  readonly adds: Readonly<Record<string, string>> | undefined;
  readonly flags: SceneOptions | undefined;
}

export interface Pairs {
  /** The new side's additional flags; undefined if it is a path. */
  readonly adds: Readonly<Record<string, string>> | undefined;
  /** '' is the usual node. */
  readonly nodes: readonly string[];
  /** The inputs of the old side, if both are manifests. */
  readonly loaded: LoadedInputs | undefined;
  /** Both sides of a node; undefined if one is unusable; that has been reported. */
  readonly read: (node: string) => Promise<readonly [Scene, Scene] | undefined>;
}

/** Reads a word that says how a side differs (a mode, a release, a configuration), or else a path. */
export function readSpec(name: string, options: SceneOptions): Spec {
  if (proxyModes.some((mode) => mode === name)) {
    return { name, adds: { '--proxy-mode': name }, flags: { ...options, proxyMode: name } };
  }
  if (/^v?1\.\d+(\.\d+)?$/.test(name) && !existsSync(name)) {
    return { name, adds: { '--kubernetes-version': name }, flags: { ...options, kubernetesVersion: name } };
  }
  if (holdsConfiguration(name)) return { name, adds: { '--config': name }, flags: { ...options, config: name } };
  return { name, adds: undefined, flags: undefined };
}

function holdsConfiguration(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  const start = readNamedFile(path).subarray(0, 0x10000).toString('latin1');
  return /\bkind["']?:\s*["']?KubeProxyConfiguration\b/.test(start) && !/\bkind["']?:\s*["']?Service\b/.test(start);
}

/** What a word can only have been meant as; undefined if it is a mode, a release, or something that there is. */
export function findMeant({ name, flags }: Spec): string | undefined {
  if (flags || name === '-' || existsSync(name) || revisionOf(name) !== undefined || /[./\\]/.test(name))
    return undefined;
  const mode = proxyModes.find((each) => each.startsWith(name.toLowerCase())) ?? findNearest(name, proxyModes);
  return mode ?? joinWords([...proxyModes, 'a release', 'a file'], 'or');
}

/** Undefined if the sides cannot be compared; that has been reported. */
export async function readPairs(
  old: Spec,
  fresh: Spec,
  options: SceneOptions,
  terminal: Terminal,
): Promise<Pairs | undefined> {
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
    return nodes && { adds: fresh.adds, nodes, loaded: before.loaded, read };
  }
  if (options.allNodes) {
    await refuse(terminal, '--all-nodes: only for manifests, and a bundle or dump is of one node');
    return undefined;
  }
  const read = async () => {
    const readings = [readOne(old, fresh, options, terminal), readOne(fresh, old, options, terminal)] as const;
    return scenesOf(...(await Promise.all(readings)), options, terminal);
  };
  return { adds: fresh.adds, nodes: [''], loaded: undefined, read };
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
  for (const note of [before, after].flatMap(describeUnshown)) await say(terminal, `note: ${printable(note)}\n`);
  return onOneNode(before, after);
}

/** Undefined if the side is unusable; that has been reported. */
async function sceneOfReading(
  reading: SideReading,
  options: MessageOptions,
  terminal: Terminal,
): Promise<Scene | undefined> {
  const { side } = reading;
  if (!(await reportInput(reading, options, terminal)) || !side) return undefined;
  // What packets alone meet, their verdict says.
  const files = side.doubts.flatMap((doubt) =>
    isForeign(doubt) || doubt.kind === 'second-listing' ? [] : [doubt.file],
  );
  for (const file of new Set(files)) {
    await terminal.err(`warning: ${printable(`${file} may hold more than kpc could read of it`)}\n`);
  }
  return sceneOf(side);
}
