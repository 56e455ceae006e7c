import { existsSync, statSync } from 'node:fs';
import { readNamedFile } from '../../base/read-file.ts';
import { chooseNodeName, NodeMemo } from '../../compile/compile-node.ts';
import type { LoadedInputs } from '../../compile/load-texts.ts';
import { loadInputs } from '../../compile/read-texts.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { printable } from '../../base/printable.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { compileAs, compileSide } from '../../sides/compile-side.ts';
import { readStoredSide, type SideOptions } from '../../sides/read-side.ts';
import { manifests, type SideReading } from '../../sides/stored-side.ts';
import { onOneNode, partsOfDump, type Scene } from '../../packet/trace/scene.ts';
import { type MessageOptions, reportInput, refuse } from './messages.ts';
import { sceneOfReading } from './read-scene.ts';
import { type Terminal, say } from '../shared/terminal.ts';

export type PairOptions = SideOptions & MessageOptions & { readonly allNodes?: boolean };

/** One side of a comparison: a path, or the manifests of -f with some flags. */
interface Spec {
  readonly name: string;
  /** Undefined for a path. */
  readonly flags: PairOptions | undefined;
}

/** Two sides, node by node. */
export interface Pairs {
  /** All nodes that are meant; one of the name '' if none has a name. */
  readonly nodes: readonly string[];
  /** The inputs of the old side, if both are manifests. */
  readonly loaded: LoadedInputs | undefined;
  /** Both sides of a node; undefined if one cannot be used, which has been reported. */
  readonly read: (node: string) => Promise<readonly [Scene, Scene] | undefined>;
}

/** A word on the command line that says how a side differs: a mode, a release, a configuration; else it is a path. */
function readSpec(name: string, options: PairOptions): Spec {
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
  options: PairOptions,
  terminal: Terminal,
): Promise<Pairs | undefined> {
  const [old, fresh] = [readSpec(from, options), readSpec(to, options)];
  if ((old.flags || fresh.flags) && (options.file ?? []).length === 0) {
    await refuse(terminal, 'no input is named', 'add the manifests that both sides are compiled from, with -f');
    return undefined;
  }
  if (old.flags && fresh.flags) return pairsOfManifests([old.name, old.flags], [fresh.name, fresh.flags], terminal);
  if (options.allNodes) {
    await refuse(terminal, '--all-nodes: only for manifests, and a bundle or dump is of one node');
    return undefined;
  }
  const read = async (): ReturnType<Pairs['read']> => {
    const readings = [readOne(old, fresh, options, terminal), readOne(fresh, old, options, terminal)] as const;
    return scenesOf(...(await Promise.all(readings)), options, terminal);
  };
  return { nodes: [''], loaded: undefined, read };
}

async function readOne(
  { name, flags }: Spec,
  other: Spec,
  options: PairOptions,
  { readStdin }: Terminal,
): Promise<SideReading> {
  if (flags) return compileAs(name, await loadInputs(flags, readStdin), flags);
  const stored = await readStoredSide(name, { readStdin });
  if (stored.kind !== 'manifests') return stored;
  const beside = other.flags ? manifests : await readStoredSide(other.name, { readStdin });
  return compileSide(name, beside, { ...(other.flags ?? options), file: [] }, readStdin);
}

async function pairsOfManifests(
  from: readonly [name: string, options: PairOptions],
  to: readonly [name: string, options: PairOptions],
  terminal: Terminal,
): Promise<Pairs | undefined> {
  const [, options] = from;
  const load = async ([name, flags]: typeof from) => {
    return { name, flags, loaded: await loadInputs(flags, terminal.readStdin), memo: new NodeMemo() };
  };
  const sides = [await load(from), await load(to)] as const;
  const { loaded } = sides[0];
  const names = [...loaded.prepared.nodes.keys()].sort();
  if (options.allNodes && names.length === 0 && !loaded.diagnostics.some(isError)) {
    await refuse(terminal, 'the input holds no Node', 'add what kubectl get nodes -o yaml prints');
    return undefined;
  }
  const said = new Set<string>();
  const nodes = options.allNodes && names.length > 0 ? names : [chooseNodeName(options.node, loaded.prepared)];
  const read = (node: string): ReturnType<Pairs['read']> => {
    // Both sides and all nodes share the input, so each message is reported once.
    const readOnce = (side: (typeof sides)[number]): SideReading => {
      const { ipFamily, node: named } = side.flags;
      const request = { node: options.allNodes ? node : named, ipFamily };
      const reading = compileAs(side.name, side.loaded, request, side.memo);
      const diagnostics = reading.diagnostics.filter(({ text }) => !said.has(text));
      for (const { text } of diagnostics) said.add(text);
      return { ...reading, diagnostics };
    };
    return scenesOf(readOnce(sides[0]), readOnce(sides[1]), options, terminal);
  };
  return { nodes, loaded, read };
}

async function scenesOf(
  from: SideReading,
  to: SideReading,
  options: MessageOptions,
  terminal: Terminal,
): Promise<readonly [Scene, Scene] | undefined> {
  if (!from.side || !to.side) {
    const files = new Map([...from.files, ...to.files]);
    await reportInput({ diagnostics: [...from.diagnostics, ...to.diagnostics], files }, options, terminal);
    return undefined;
  }
  const scenes = [await sceneOfReading(from, options, terminal), await sceneOfReading(to, options, terminal)] as const;
  if (!scenes[0] || !scenes[1]) return undefined;
  for (const { name, coverage } of [from.side, to.side]) {
    const unshown = partsOfDump.filter((part) => !coverage[part]).map((part) => partWords[part]);
    const text = `${name} does not show ${unshown.join(', ')}: assumed equal to the other side`;
    if (unshown.length > 0) await say(terminal, `note: ${printable(text)}\n`);
  }
  return onOneNode(scenes[0], scenes[1]);
}

const partWords: Readonly<Record<(typeof partsOfDump)[number], string>> = {
  sets: 'IP sets',
  virtualServers: 'virtual servers',
  links: 'addresses',
  sysctls: 'sysctls',
};
