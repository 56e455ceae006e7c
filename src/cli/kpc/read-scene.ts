import { existsSync, statSync } from 'node:fs';
import { printable } from '../../base/printable.ts';
import { readNamedFile } from '../../base/read-file.ts';
import { compileSide, openPaths } from '../../snapshot/files/open.ts';
import { loadInputs } from '../../snapshot/files/read-texts.ts';
import { isForeign } from '../../dumps/dump.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { openManifests, openReading, type Opened, type Reading } from '../../snapshot/open/opened.ts';
import { type SideOptions, readStoredSide } from '../../snapshot/files/read-side.ts';
import { manifests } from '../../snapshot/open/stored-side.ts';
import { findNearest } from '../../base/find-nearest.ts';
import { revisionOf } from '../../git/revision-path.ts';
import { joinWords } from '../../base/join-words.ts';
import { sceneOf, type Scene } from '../../trace/scene.ts';
import { describeIdleFlags, withoutDefaultMode } from './input-options.ts';
import { type MessageOptions, reportInput, refuse } from './messages.ts';
import type { Terminal } from '../shared/terminal.ts';
import type { Flag } from '../../settings/flag.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';

export type SceneOptions = SideOptions &
  MessageOptions & {
    readonly allNodes?: boolean;
    /** The flags on the command line. */
    readonly given?: readonly Flag[];
  };

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
  const { file = [], node, hostAddresses } = options;
  const asked = { ...options, traffic: true, into: 'kpc describe -', addsFlows: true };
  const opened = await openPaths(asked, terminal.readStdin);
  const { kind, leftOut } = opened;
  // The namespace of names in the question, and the addresses of a dump, mean something here.
  const flags = (options.given ?? []).filter(({ needs }) => needs !== 'manifests-or-packets');
  const idle =
    describeIdleFlags(flags, opened, node) ??
    (options.allNodes && (kind === 'bundle' || kind === 'dump')
      ? `--all-nodes: only for manifests, and ${file[0]} is a ${kind} of one node`
      : kind === 'bundle' && hostAddresses !== undefined
        ? '--host-addresses: a bundle has its own addresses'
        : undefined);
  if (idle !== undefined) {
    await refuse(terminal, idle);
    return undefined;
  }
  if (leftOut) await terminal.err(`warning: left out its manifests: ${printable(leftOut.text)}\n`);
  if (!(await hasNodes(opened, options, terminal))) return undefined;
  const scenes: Scene[] = [];
  for (const name of opened.nodes) {
    const reading = opened.at(name);
    if (!(await reportReading(reading, options, terminal)) || !reading.side) return undefined;
    scenes.push(sceneOf(reading.side));
  }
  return scenes;
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
