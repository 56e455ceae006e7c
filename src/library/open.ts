import { goldenHead } from '../base/names.ts';
import { findExcess } from '../base/bounds.ts';
import { loadTexts, type LoadedInputs } from '../snapshot/open/load-texts.ts';
import { diagnose, diagnoseFault, isError, placeAtLine, type Finding, keyOfFault } from '../base/findings/finding.ts';
import { isForeign } from '../dumps/dump.ts';
import { expectDumpFile, readDump } from '../dumps/read-dump.ts';
import { holdsOutput } from '../dumps/split-outputs.ts';
import type { SaidFinding } from '../say/words/said.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { openManifests, openReading, type Opened, type Reading, type Recognised } from '../snapshot/open/opened.ts';
import { manifests as asManifests, sideOfBundle, sideOfDump, sideOfGolden } from '../snapshot/open/stored-side.ts';
import { sceneOf, type Scene } from '../ask/trace/scene.ts';
import type { CompileOptions } from './compile.ts';
import { shownOptions, textsOf, checkOptionNames, mapOf, type Texts } from './inputs.ts';
import { openOptions } from './options.ts';
import { diagnosticsOf } from './words.ts';

export { sceneOf, type Scene };

/** Manifests to send packets over: compiled as `kpc trace` compiles them, with what they lack assumed. */
export interface ManifestsOfNodes extends Omit<CompileOptions, 'allowEmpty'> {
  /** On each Node of the manifests. */
  readonly allNodes?: boolean | undefined;
}

/** How texts are opened: what they are called, and the flags of `kpc describe` that say how manifests are compiled. */
export interface OpenTextsOptions extends Omit<ManifestsOfNodes, 'manifests'> {
  /** What diagnostics and differences call them. */
  readonly name?: string | undefined;
}

/** The names of these options. */
export const looked: readonly string[] = [...openOptions, 'node', 'allNodes'];

/** What texts are, and what was read of them. */
export interface OpenedTexts {
  readonly kind: Recognised['kind'];
  /** One a node, by its name; none if a diagnostic is an error. */
  readonly snapshots: readonly Snapshot[];
  readonly diagnostics: readonly SaidFinding[];
}

/**
 * Opens texts, whatever they are: manifests; the files of a bundle or a golden; or what iptables-save, ipset save, ipvsadm -Sn, nft list
 * ruleset, ip -j addr, sysctl -a and the like print on a node, in files of whatever name; other text beside that is left out.
 *
 * ```ts
 * import { describeServices, open } from 'kube-proxy-compiler';
 *
 * const [side] = open({ 'ipvsadm.txt': '-A -t 10.96.0.10:80 -s rr\\n' }).snapshots;
 * if (side?.kind === 'dump') console.log(describeServices(side).servicePorts.map(({ servicePort }) => servicePort).join()); // 10.96.0.10:80/TCP
 * ```
 */
export function open(inputs: Texts, { name = 'manifests', ...options }: OpenTextsOptions = {}): OpenedTexts {
  checkOptionNames(options, looked);
  const texts = mapOf(inputs, 'inputs');
  const found = recogniseTexts(name, texts);
  const { nodes, at } =
    found.kind === 'manifests' ? openTexts({ ...options, manifests: texts }, name) : openReading(found);
  return openedTexts(found.kind, { nodes, at });
}

/** All nodes of what was opened, with what there is to say of them. */
export function openedTexts(kind: Recognised['kind'], { nodes, at }: Pick<Opened, 'nodes' | 'at'>): OpenedTexts {
  const readings = nodes.map(at);
  const diagnostics = readings.flatMap(diagnosticsOfNode);
  const sides = readings.flatMap(({ side }) => side ?? []);
  return { kind, snapshots: diagnostics.some(isError) ? [] : sides, diagnostics: diagnosticsOf(diagnostics) };
}

/** Finds out what texts are. */
function recogniseTexts(name: string, texts: ReadonlyMap<string, string>): Recognised {
  if (texts.has(goldenHead)) return sideOfGolden(name, texts);
  if (texts.has('manifest.json')) return sideOfBundle(name, texts);
  const printed = [...texts].filter(([file, text]) => expectDumpFile(file) !== undefined || holdsOutput(text));
  const excess = findExcess(printed.map(([file, text]) => ({ file, text })));
  const dump = readDump(new Map(excess ? [] : printed));
  const faults = [
    ...(excess ? [diagnose('too-long', { of: excess.of, most: excess.most }, placeAtLine(excess.at.file))] : []),
    ...dump.faults.map((fault) => diagnoseFault(fault, placeAtLine(fault.file, fault.line))),
  ];
  return faults.length + dump.files.length === 0 ? asManifests : sideOfDump(name, dump, faults);
}

/** Where packets are sent: manifests, or a side that was compiled, or read from a bundle or a dump. */
export type PacketInput = ManifestsOfNodes | { readonly side: Snapshot };

/** Throws for an option that is unknown, or that has no effect on a side. */
export function checkPacketOptions(options: PacketInput, others: readonly string[]): void {
  checkOptionNames(options, ['side', 'manifests', ...looked, ...others]);
  if (!('side' in options)) return;
  const idle = Object.keys(options).find((name) => name !== 'side' && !others.includes(name));
  if (idle !== undefined) throw new TypeError(`option "${idle}" is only for manifests: a side is compiled already`);
}

/** Nodes, or why there are none. */
export interface Scenes {
  /** Undefined if a diagnostic is an error. */
  readonly scenes: readonly Scene[] | undefined;
  readonly diagnostics: readonly Finding[];
}

/** Reads manifests, to be compiled node by node. */
export function openTexts(
  { allNodes, ...options }: ManifestsOfNodes,
  name = 'manifests',
  /** The same manifests under other options, if they were read already. */
  read?: LoadedInputs,
): Opened & { readonly loaded: LoadedInputs } {
  const request = shownOptions({ ...options, node: options.node });
  const assume = request.assume ?? 'by-default';
  const texts = textsOf(options, options.hostAddresses);
  const asked = { ...request, assume, traffic: true } as const;
  const loaded = read ? read.under(asked, texts.config) : loadTexts(texts, asked);
  const named = { node: options.node, ipFamily: request.ipFamily, allNodes };
  return { ...openManifests(name, loaded, named), loaded };
}

/** The nodes to send packets on. */
export function scenesOf(options: PacketInput): Scenes {
  if ('side' in options) return { scenes: [sceneOf(options.side)], diagnostics: [] };
  const { loaded, nodes, at } = openTexts(options);
  if (nodes.length === 0) {
    const lack = loaded.diagnostics.some(isError) ? [] : [diagnose('no-node', { problem: 'none-chosen' })];
    return { scenes: undefined, diagnostics: [...loaded.diagnostics, ...lack] };
  }
  const readings = nodes.map(at);
  const diagnostics = new Map(readings.flatMap(diagnosticsOfNode).map((one) => [keyOf(one), one]));
  const found = [...diagnostics.values()];
  const sides = readings.flatMap(({ side }) => side ?? []);
  const isUsable = sides.length === nodes.length && !found.some(isError);
  return { scenes: isUsable ? sides.map(sceneOf) : undefined, diagnostics: found };
}

/** The files that may hold more than was read of them; what packets alone meet, their verdict says. */
export function halfReadFiles({ doubts }: Snapshot): ReadonlySet<string> {
  return new Set(doubts.flatMap((doubt) => (isForeign(doubt) || doubt.kind === 'second-listing' ? [] : [doubt.file])));
}

/** What there is to say of a node beside its snapshot. */
export function diagnosticsOfNode({ gaps = () => [], diagnostics }: Reading): readonly Finding[] {
  return withoutDefaultMode({ diagnostics: [...gaps(), ...diagnostics] }).diagnostics;
}

/** Leaves out the note about a mode that nobody named, for answers that say it themselves: `assumed.mode` of the snapshot. */
export function withoutDefaultMode<T extends { readonly diagnostics: readonly Finding[] }>(read: T): T {
  return { ...read, diagnostics: read.diagnostics.filter(({ code }) => code !== 'default-mode') };
}

/** What two diagnostics have in common that say the same of the same place. */
export function keyOf(finding: Finding): string {
  return JSON.stringify([keyOfFault(finding), finding.place?.locate()]);
}
