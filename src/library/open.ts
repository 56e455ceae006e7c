import { loadTexts, type LoadedInputs } from '../snapshot/open/load-texts.ts';
import { diagnose, isError, type Finding, keyOfFault } from '../base/findings/finding.ts';
import { isForeignDoubt } from '../dumps/dump.ts';
import type { SaidFinding } from '../say/words/said.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { openLike, optionsLike } from '../snapshot/open/compile-like.ts';
import {
  openReading,
  type Opened,
  type Reading,
  type Recognised,
  alone,
  withHostAddresses,
  withNames,
} from '../snapshot/open/stored-side.ts';
import { recogniseTexts } from '../snapshot/open/recognise-texts.ts';
import { sceneOf, type Scene } from '../ask/trace/scene.ts';
import type { CompileOptions } from './compile.ts';
import {
  shownOptions,
  readInputTexts,
  checkOptionNames,
  expectSnapshot,
  checkText,
  eachOnce,
  listTexts,
  type NamedText,
  type Texts,
} from './inputs.ts';
import { openOptions } from './options.ts';
import { diagnosticsOf, misuse } from './words.ts';

export { sceneOf, type Scene };

/** The manifests to trace packets in. They are compiled as `kpc trace` compiles them, which assumes what the manifests lack. */
export interface ManifestsOfNodes extends Omit<CompileOptions, 'allowEmpty' | 'name'> {
  /** Whether to open the manifests for each Node in them. */
  readonly allNodes?: boolean | undefined;
}

/** A name for the texts, and the flags with which `kpc describe` compiles manifests. */
export interface OpenTextsOptions extends Omit<ManifestsOfNodes, 'manifests'> {
  readonly name?: string | undefined;
}

export const looked: readonly string[] = [...openOptions, 'node', 'allNodes'];

export interface OpenedTexts {
  readonly kind: Recognised['kind'];
  /** One snapshot for each node. Empty if a diagnostic is an error. */
  readonly snapshots: readonly Snapshot[];
  readonly diagnostics: readonly SaidFinding[];
}

/**
 * Recognises and opens texts: manifests; the files of a bundle or golden; or a node's output of iptables-save, ipset save, ipvsadm -Sn,
 * nft list ruleset, ip -j addr, sysctl -a and similar tools. Manifests beside such output name what it shows. Ignores other text around
 * the output.
 *
 * ```ts
 * import { describeServices, open } from 'kube-proxy-compiler';
 *
 * const [side] = open({ 'ipvsadm.txt': '-A -t 10.96.0.10:80 -s rr\\n' }).snapshots;
 * if (side?.kind === 'dump') console.log(describeServices(side).servicePorts.map(({ servicePort }) => servicePort).join()); // 10.96.0.10:80/TCP
 * ```
 */
export function open(inputs: Texts, { name, ...options }: OpenTextsOptions = {}): OpenedTexts {
  checkOptionNames(options, looked);
  const { kind, ...opened } = openAny(listTexts(inputs, 'inputs'), options, name);
  return openedTexts(kind, opened);
}

/** Recognises texts. Compiles each node when it is requested. `beside`: texts that are always manifests, and that name a dump's objects. */
export function openAny(
  texts: readonly NamedText[],
  options: Omit<OpenTextsOptions, 'name'>,
  name?: string,
  beside: readonly NamedText[] = [],
): Opened & Pick<Recognised, 'kind'> {
  eachOnce([...texts, ...beside], 'the inputs');
  const found = recogniseTexts(name, texts);
  const { kind } = found;
  const isBeside = new Set(found.beside);
  const { hostAddresses } = options;
  const host = hostAddresses && checkText(hostAddresses, 'hostAddresses');
  const manifests = [...texts.filter((each) => kind === 'manifests' || isBeside.has(each.name)), ...beside];
  switch (kind) {
    case 'manifests':
      return { kind, ...openTexts({ ...options, manifests }, true, name) };
    case 'dump':
      return {
        kind,
        ...openReading(nameDump(withHostAddresses(found, host), manifests, beside.length > 0, options)),
      };
    case 'bundle':
    case 'unreadable':
      return { kind, ...openReading(alone(found, manifests)) };
  }
}

function nameDump(
  read: ReturnType<typeof withHostAddresses<Recognised & { readonly kind: 'dump' }>>,
  own: readonly NamedText[],
  areChosen: boolean,
  options: OpenTextsOptions,
): Reading {
  const { side } = read;
  if (!side || own.length === 0) return read;
  return withNames({ ...read, side }, openTexts({ ...options, manifests: own }, true).loaded, areChosen);
}

export function openedTexts(kind: Recognised['kind'], { nodes, at }: Pick<Opened, 'nodes' | 'at'>): OpenedTexts {
  const readings = nodes.map(at);
  const diagnostics = readings.flatMap(diagnosticsOfNode);
  const sides = readings.flatMap(({ side }) => side ?? []);
  return { kind, snapshots: diagnostics.some(isError) ? [] : sides, diagnostics: diagnosticsOf(diagnostics) };
}

export type PacketInput = ManifestsOfNodes | { readonly side: Snapshot };

/** Throws a TypeError for an unknown option. If the input is a side, also throws for an option that has no effect on a side. */
export function checkPacketOptions(options: PacketInput, others: readonly string[]): void {
  checkOptionNames(options, ['side', 'manifests', ...looked, ...others]);
  if (!('side' in options)) return;
  expectSnapshot(options.side, 'side');
  const idle = Object.keys(options).find((name) => name !== 'side' && !others.includes(name));
  if (idle === undefined) return;
  const because = { kind: 'compiled-already', path: options.side.name, of: 'snapshot' } as const;
  misuse({ problem: 'idle-flag', flags: [idle], because });
}

export interface Scenes {
  /** Undefined if a diagnostic is an error. */
  readonly scenes: readonly Scene[] | undefined;
  readonly diagnostics: readonly Finding[];
}

/** Opens manifests, and compiles each node when it is requested. `traffic`: whether to read what else affects packets, such as policies. */
export function openTexts(
  { allNodes, ...options }: ManifestsOfNodes,
  traffic: boolean,
  name = 'manifests',
  read?: LoadedInputs,
  like?: Snapshot,
): Opened & { readonly loaded: LoadedInputs } {
  const request = shownOptions({ ...options, node: options.node });
  const assume = request.assume ?? 'by-default';
  const texts = readInputTexts(options, options.hostAddresses);
  const asked = optionsLike(like, { ...request, assume, traffic });
  const loaded = read ? read.under(asked, texts.config) : loadTexts(texts, asked);
  return { ...openLike(name, loaded, like, { ...asked, allNodes }), loaded };
}

export function scenesOf(options: PacketInput): Scenes {
  if ('side' in options) return { scenes: [sceneOf(options.side)], diagnostics: findingsOfDoubts(options.side) };
  return scenesIn(openTexts(options, true));
}

export function scenesIn({ loaded, nodes, at }: Opened): Scenes {
  if (nodes.length === 0) {
    const found = loaded?.diagnostics ?? [];
    const lack = found.some(isError) ? [] : [diagnose('no-node', { problem: 'none-chosen' })];
    return { scenes: undefined, diagnostics: [...found, ...lack] };
  }
  const readings = nodes.map(at);
  const diagnostics = new Map(readings.flatMap(diagnosticsOfNode).map((one) => [keyOfFinding(one), one]));
  const found = [...diagnostics.values()];
  const sides = readings.flatMap(({ side }) => side ?? []);
  const isUsable = sides.length === nodes.length && !found.some(isError);
  return { scenes: isUsable ? sides.map(sceneOf) : undefined, diagnostics: found };
}

/** Reports what a dump may contain besides what was read. Leaves out doubts that affect only packets, because verdicts mention those. */
export function findingsOfDoubts({ doubts }: Snapshot): readonly Finding[] {
  const found = doubts.flatMap((doubt): readonly Finding[] => {
    if (isForeignDoubt(doubt) || doubt.kind === 'second-listing') return [];
    if (doubt.kind !== 'unlisted') return [diagnose('reading', { problem: 'may-hold-more', file: doubt.file })];
    const { kind: note, by, entry, lacks } = doubt;
    return [diagnose('reading', { problem: 'dump', note, by, entry, lacks })];
  });
  return [...new Map(found.map((one) => [keyOfFinding(one), one])).values()];
}

export function diagnosticsOfNode({ gaps = () => [], diagnostics, side }: Reading): readonly Finding[] {
  const doubts = side ? findingsOfDoubts(side) : [];
  return withoutDefaultMode({ diagnostics: [...gaps(), ...diagnostics, ...doubts] }).diagnostics;
}

/** Drops the note that no mode is named. Some answers state this themselves (`assumed.mode` in the snapshot). */
export function withoutDefaultMode<T extends { readonly diagnostics: readonly Finding[] }>(read: T): T {
  return { ...read, diagnostics: read.diagnostics.filter(({ code }) => code !== 'default-mode') };
}

/** Drops the note that no node is named, if each packet's sender decided the node. */
export function withoutUnnamedNode(
  diagnostics: readonly Finding[],
  sides: readonly Pick<Snapshot, 'nodeName'>[],
): readonly Finding[] {
  if (sides.length === 0 || sides.some(({ nodeName }) => nodeName === '')) return diagnostics;
  return diagnostics.filter(
    ({ code, arguments: details }) => code !== 'no-node' || details.problem !== 'compiled-for-any',
  );
}

/** Returns the same key for equal findings at the same place. */
export function keyOfFinding(finding: Finding): string {
  return JSON.stringify([keyOfFault(finding), finding.place?.locate()]);
}
