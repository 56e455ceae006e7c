import { existsSync, statSync } from 'node:fs';
import { readNamedFile } from '../../base/read-file.ts';
import { checkNodes, oneNode } from '../../compile/chosen-nodes.ts';
import { chooseNodeName, compileNode, NodeMemo } from '../../compile/compile-node.ts';
import { settleVersion, type LoadedInputs } from '../../compile/load-texts.ts';
import { loadInputs } from '../../compile/read-texts.ts';
import { isError } from '../../diagnostics/diagnostic.ts';
import { printable } from '../../base/printable.ts';
import { proxyModes } from '../../kube-proxy/modes.ts';
import { compileSide, readStoredSide, type SideOptions } from '../../sides/read-side.ts';
import { sideOfManifests, type SideReading } from '../../sides/stored-side.ts';
import { onOneNode, partsOfDump, type Scene } from '../../packet/trace/scene.ts';
import { say, type Terminal } from '../shared/terminal.ts';
import { type MessageOptions, reportInput } from './messages.ts';
import { sceneOfReading } from './read-scene.ts';
import { refuse } from '../shared/refuse.ts';

export type PairOptions = SideOptions & MessageOptions & { readonly allNodes?: boolean };

/** The same manifests by other flags. */
interface FlagSpec {
  readonly kind: 'flags';
  readonly name: string;
  readonly options: PairOptions;
}

/** What one side of a comparison is: manifests by some flags, or something that was stored. */
type Spec = FlagSpec | { readonly kind: 'path'; readonly path: string };

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
function readSpec(text: string, options: PairOptions): Spec {
  const mode = proxyModes.find((each) => each === text);
  if (mode) return { kind: 'flags', name: text, options: { ...options, proxyMode: mode } };
  if (/^v?1\.\d+(\.\d+)?$/.test(text) && !existsSync(text)) {
    return { kind: 'flags', name: text, options: { ...options, kubernetesVersion: text } };
  }
  if (holdsConfiguration(text)) return { kind: 'flags', name: text, options: { ...options, config: text } };
  return { kind: 'path', path: text };
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
  const specs = [readSpec(from, options), readSpec(to, options)] as const;
  if (specs.some(({ kind }) => kind === 'flags') && (options.file ?? []).length === 0) {
    await refuse(terminal, 'no input is named', 'add the manifests that both sides are compiled from, with -f');
    return undefined;
  }
  const [old, fresh] = specs;
  if (old.kind === 'flags' && fresh.kind === 'flags') return pairsOfManifests(old, fresh, terminal);
  if (options.allNodes) {
    await refuse(terminal, '--all-nodes: only for manifests, and a bundle or dump is of one node');
    return undefined;
  }
  return {
    nodes: [''],
    loaded: undefined,
    read: async () => {
      const readings = [readOne(old, fresh, options, terminal), readOne(fresh, old, options, terminal)] as const;
      return scenesOf(...(await Promise.all(readings)), options, terminal);
    },
  };
}

async function readOne(spec: Spec, other: Spec, given: PairOptions, terminal: Terminal): Promise<SideReading> {
  if (spec.kind === 'flags') return compileOne(spec, await loadInputs(spec.options, terminal.readStdin), undefined);
  const { path } = spec;
  const stored = await readStoredSide(path);
  if (stored.kind !== 'manifests') return stored.reading;
  const beside = other.kind === 'path' ? await readStoredSide(other.path) : ({ kind: 'manifests', name: '' } as const);
  const options = other.kind === 'path' ? given : other.options;
  return compileSide(path, beside, { ...options, file: [] }, terminal.readStdin);
}

async function pairsOfManifests(from: FlagSpec, to: FlagSpec, terminal: Terminal): Promise<Pairs | undefined> {
  const { options } = from;
  const stdin = options.file?.includes('-') ? await terminal.readStdin() : '';
  const load = async (spec: FlagSpec) => {
    const loaded = await loadInputs(spec.options, async () => stdin);
    return { spec, loaded, memo: new NodeMemo() };
  };
  const sides = [await load(from), await load(to)] as const;
  const { loaded } = sides[0];
  const names = [...loaded.prepared.nodes.keys()].sort();
  if (options.allNodes && names.length === 0 && !loaded.diagnostics.some(isError)) {
    await refuse(terminal, 'the input holds no Node', 'add what kubectl get nodes -o yaml prints');
    return undefined;
  }
  const said = new Set<string>();
  return {
    nodes: options.allNodes && names.length > 0 ? names : [chooseNodeName(options.node, loaded.prepared)],
    loaded,
    read: async (node) => {
      // Both sides and all nodes have the same input: its messages come once.
      const readOnce = (side: (typeof sides)[number]): SideReading => {
        const reading = compileOne(side.spec, side.loaded, node, side.memo);
        const diagnostics = reading.diagnostics.filter(({ text }) => !said.has(text));
        for (const { text } of diagnostics) said.add(text);
        return { ...reading, diagnostics };
      };
      return scenesOf(readOnce(sides[0]), readOnce(sides[1]), options, terminal);
    },
  };
}

function compileOne(
  { name, options }: FlagSpec,
  read: LoadedInputs,
  node: string | undefined,
  memo?: NodeMemo,
): SideReading {
  const nodeName = node ?? chooseNodeName(options.node, read.prepared);
  const { prepared, hostAddresses, diagnostics, files } = settleVersion(read, nodeName);
  const wrong = diagnostics.some(isError) ? [] : checkNodes(oneNode(nodeName, options.node), prepared);
  const found = [...wrong, ...diagnostics];
  if (found.some(isError)) return { side: undefined, diagnostics: found, files, notes: [] };
  const content = compileNode(prepared, { nodeName, hostAddresses, ipFamily: options.ipFamily }, memo);
  return { side: sideOfManifests(name, content), diagnostics: found, files, notes: [] };
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
