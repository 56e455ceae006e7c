import { existsSync, statSync } from 'node:fs';
import { printable } from '../../base/printable.ts';
import { readNamedFile } from '../../base/read-file.ts';
import { parseHostLinks } from '../../snapshot/open/load-texts.ts';
import { loadInputs, readHostText } from '../../snapshot/files/read-texts.ts';
import { showsAnything } from '../../dumps/coverage.ts';
import { isForeign } from '../../dumps/dump.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { compileSide } from '../../snapshot/files/compile-side.ts';
import { openManifests, openReading, type Opened, type Reading, type Recognised } from '../../snapshot/open/opened.ts';
import { recogniseInputs, type SideOptions, readStoredSide } from '../../snapshot/files/read-side.ts';
import { manifests } from '../../snapshot/open/stored-side.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { revisionOf } from '../../git/revision-path.ts';
import { joinWords } from '../../base/join-words.ts';
import { sceneOf, type Scene } from '../../trace/scene.ts';
import { describeIdleFlags, storedPath, withoutDefaultMode } from './input-options.ts';
import { type MessageOptions, reportInput, refuse } from './messages.ts';
import type { Terminal } from '../shared/terminal.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';

export type SceneOptions = SideOptions &
  MessageOptions & {
    readonly allNodes?: boolean;
    /** The flags on the command line that say how manifests are compiled. */
    readonly flagsOfManifests?: readonly string[];
  };

/** Flags that have a meaning for bundles and dumps, too: the namespace of names in a question, and the addresses of a dump. */
const ofAnyInput: ReadonlySet<string> = new Set(['--namespace', '--host-addresses']);

/** Whether --all-nodes finds Nodes; if not, that has been reported. */
async function hasNodes({ loaded, nodes }: Opened, options: SceneOptions, terminal: Terminal): Promise<boolean> {
  if (!options.allNodes || !loaded) return true;
  if (nodes.length > 0 && !loaded.diagnostics.some(isError)) return true;
  await reportInput(loaded, options, terminal);
  if (nodes.length === 0)
    await refuse(terminal, 'the input holds no Node', 'add what kubectl get nodes -o yaml prints');
  return false;
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
  const stored = input.kind === 'dump' ? await withObjects(input, asked, terminal) : input;
  const reading = stored.kind === 'manifests' ? stored : await withHostAddresses(stored, options, terminal);
  if (!reading) return undefined;
  const opened =
    stored.kind === 'manifests'
      ? openManifests('-f', await loadInputs(asked, terminal.readStdin), asked)
      : openReading(reading);
  if (!(await hasNodes(opened, options, terminal))) return undefined;
  const scenes: Scene[] = [];
  for (const name of opened.nodes) {
    const read = opened.at(name);
    if (!(await reportReading(read, options, terminal)) || !read.side) return undefined;
    scenes.push(sceneOf(flows ? read.side.with({ flows }) : read.side));
  }
  return scenes;
}

/** A dump with the objects of the manifests beside it, or of those that its support bundle holds. */
async function withObjects(
  input: Recognised & { readonly kind: 'dump' },
  options: SceneOptions,
  terminal: Terminal,
): Promise<Recognised> {
  const { beside, manifests: texts } = input;
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
  input: Recognised,
  { hostAddresses: path, ...options }: SceneOptions,
  terminal: Terminal,
): Promise<Reading | undefined> {
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
export async function openPair(
  old: Spec,
  fresh: Spec,
  options: SceneOptions,
  terminal: Terminal,
): Promise<readonly [Opened, Opened] | undefined> {
  if ((old.flags || fresh.flags) && (options.file ?? []).length === 0) {
    await refuse(terminal, 'no input is named', 'add the manifests that both sides are compiled from, with -f');
    return undefined;
  }
  if (old.flags && fresh.flags) {
    const said = new Set<string>();
    const open = async (name: string, flags: SceneOptions) =>
      openManifests(name, await loadInputs(flags, terminal.readStdin), flags, said);
    const sides = [await open(old.name, old.flags), await open(fresh.name, fresh.flags)] as const;
    return (await hasNodes(sides[0], options, terminal)) ? sides : undefined;
  }
  if (options.allNodes) {
    await refuse(terminal, '--all-nodes: only for manifests, and a bundle or dump is of one node');
    return undefined;
  }
  const [from, to] = await Promise.all([
    readOne(old, fresh, options, terminal),
    readOne(fresh, old, options, terminal),
  ]);
  return [openReading(from), openReading(to)];
}

async function readOne(
  { name, flags }: Spec,
  other: Spec,
  options: SceneOptions,
  terminal: Terminal,
): Promise<Reading> {
  const { readStdin } = terminal;
  if (flags) return openManifests(name, await loadInputs(flags, readStdin), flags).at('');
  const stored = await readStoredSide(name, { readStdin });
  if (stored.kind !== 'manifests') return stored;
  const beside = other.flags ? manifests : await readStoredSide(other.name, { readStdin });
  return compileSide(name, beside, { ...(other.flags ?? options), file: [] }, readStdin);
}

/** Returns whether a node can be used; if not, that has been reported. */
export async function reportReading(reading: Reading, options: MessageOptions, terminal: Terminal): Promise<boolean> {
  // What is printed says which mode it is.
  if (!(await reportInput(withoutDefaultMode(reading), options, terminal))) return false;
  // What packets alone meet, their verdict says.
  const files = (reading.side?.doubts ?? []).flatMap((doubt) =>
    isForeign(doubt) || doubt.kind === 'second-listing' ? [] : [doubt.file],
  );
  for (const file of new Set(files)) {
    await terminal.err(`warning: ${printable(`${file} may hold more than kpc could read of it`)}\n`);
  }
  return reading.side !== undefined;
}
