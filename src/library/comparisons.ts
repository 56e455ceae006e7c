import { pathWord } from '../base/printable.ts';
import type { Shaped } from '../base/json/schema.ts';
import { diagnose, type Finding, distinct } from '../base/findings/finding.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { planChange } from '../ask/equivalence/change.ts';
import { proxyModes, type ModeSource, type ProxyMode } from '../kube-proxy/modes.ts';
import { parseRelease, type Release } from '../kube-proxy/releases.ts';
import { refuseAfter } from './refusal.ts';
import { equivalenceJson } from '../say/equivalence.ts';
import type { GateOptions } from '../input/configuration/read-settings.ts';
import type { SaidFinding } from '../say/words/said.ts';
import type { SnapshotJson } from '../say/outputs/envelope.ts';
import type { equivalence as equivalenceSchema } from '../say/outputs/compile-and-compare.ts';
import { NodeComparison, type CalledSide, type Scene } from './compare-nodes.ts';
import { nameAfter, optionsOfChange, traceWords } from './options.ts';
import { checkPacketOptions, diagnosticsOfNode, looked, openTexts, type ManifestsOfNodes } from './open.ts';
import type { LoadedInputs } from '../snapshot/open/load-texts.ts';
import { nameOfNode } from '../snapshot/open/compile-like.ts';
import { namesNoNode, openReading, type Opened } from '../snapshot/open/stored-side.ts';
import { checkOptionNames, expectSnapshot, listTexts, type NamedText } from './inputs.ts';
import { answerInOptions, diagnosticsOf, misuse } from './words.ts';
import { inOneLine } from '../say/words/words.ts';

/** A side of a comparison: a mode, release or kube-proxy configuration for which to compile the manifests, or an opened snapshot. */
export type ComparedSide = ProxyMode | Release | NamedText | Snapshot;

/** The flags of `kpc equivalence`, and its two sides. */
export interface EquivalenceOptions extends Partial<ManifestsOfNodes> {
  readonly from: ComparedSide;
  readonly to: ComparedSide;
}

/** The result of `kpc equivalence --output json` and `kpc migrate --output json`. */
export type Equivalence = Shaped<typeof equivalenceSchema>;

export interface EquivalenceResult {
  /** Whether the command would exit with status 0: packets end alike or, for migrate, nothing breaks or needs preparation. */
  readonly passed: boolean;
  /** Undefined if a diagnostic is an error. */
  readonly report: Equivalence | undefined;
  /** Both sides of each compared node. */
  readonly snapshots: readonly SnapshotJson[];
  /** What to prepare on nodes. Only for migrate. */
  readonly findings: readonly SaidFinding[];
  readonly diagnostics: readonly SaidFinding[];
  /** The facts that one side lacks and takes from the other side. */
  readonly notes: readonly string[];
}

interface Spec extends CalledSide {
  /** A `kpc trace` command for the side. The packet's flags are still to be added. */
  readonly words: (side: Snapshot) => readonly string[];
  readonly opened: Opened;
}

/**
 * Traces one packet of each class through two sides. Reports which packets end differently, grouped by cause.
 *
 * ```ts
 * import { equivalence } from 'kube-proxy-compiler';
 *
 * const manifests = { 'web.yaml': '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }' };
 * const { passed, report } = equivalence({ manifests, from: 'iptables', to: 'nftables' });
 * console.log(passed, report?.from, report?.to); // false iptables nftables
 * ```
 */
export function equivalence(options: EquivalenceOptions): EquivalenceResult {
  checkOptionNames(options, ['from', 'to', 'manifests', ...looked]);
  const { from, to, ...input } = options;
  const flags = [from, to].map(optionsOfSide);
  if (flags.every((each) => each === undefined)) checkPacketOptions({ side: from as Snapshot, ...input }, []);
  const { manifests, node } = input;
  const loaded = manifests && flags[0] && flags[1] ? openTexts({ ...input, manifests }, false).loaded : undefined;
  const asked = loaded ? { allNodes: namesNoNode(node, loaded), ...input } : input;
  const stored = [from, to].find((_, index) => !flags[index]) as Snapshot | undefined;
  const ofNode = { ...asked, node: node ?? nameOfNode(stored) };
  const old = specOf(from, ofNode, flags[0], loaded, stored);
  return compareSpecs([old, specOf(to, ofNode, flags[1], old.opened.loaded, stored)]);
}

type OptionsOfSide = Partial<ManifestsOfNodes> & Pick<GateOptions, 'sideOf'>;

/** Returns the options for a side that is a mode, release or configuration. Undefined for a snapshot. */
export function optionsOfSide(side: ComparedSide): OptionsOfSide | undefined {
  if (typeof side === 'string') {
    const mode = proxyModes.find((each) => each === side);
    if (mode) return { proxyMode: mode, sideOf: 'mode' };
    const release = parseRelease(side);
    if (release) return { kubernetesVersion: release, sideOf: 'release' };
    return misuse({ problem: 'wrong-argument', what: `"${side}"`, is: 'side' });
  }
  if ('text' in Object(side)) return { config: side as NamedText, sideOf: 'configuration' };
  expectSnapshot(side as Snapshot, 'side', 'side');
  return undefined;
}

function specOf(
  side: ComparedSide,
  input: Partial<ManifestsOfNodes>,
  flags: OptionsOfSide | undefined,
  read: LoadedInputs | undefined,
  beside: Snapshot | undefined,
): Spec {
  if (!flags) {
    const { name } = side as Snapshot;
    const opened = openReading({ side: side as Snapshot, diagnostics: [], files: new Map(), readAs: undefined });
    return { name, isPath: true, words: () => ['kpc', 'trace', pathWord(name)], opened };
  }
  const name = typeof side === 'string' ? side : (side as NamedText).name;
  return { ...compiledSpec(name, { ...input, ...flags }, read, beside), isPath: typeof side !== 'string' };
}

function compiledSpec(name: string, input: Partial<ManifestsOfNodes>, read?: LoadedInputs, beside?: Snapshot): Spec {
  const { manifests } = input;
  if (manifests === undefined) misuse({ problem: 'no-input', takes: 'both-sides' });
  const files = listTexts(manifests, 'manifests').map((each) => each.name);
  return {
    name,
    isPath: false,
    words: (side) => {
      const words = traceWords(files, input);
      const taken = side.kind === 'dump' ? {} : (side.taken ?? {});
      return [...words, ...Object.entries(taken).flatMap((each) => (words.includes(each[0]) ? [] : each))];
    },
    opened: openTexts({ ...input, manifests }, false, name, read, beside),
  };
}

function compareSpecs(
  [from, to]: readonly [Spec, Spec],
  announced?: readonly Finding[],
  modeFrom?: ModeSource,
): EquivalenceResult {
  const comparison = new NodeComparison(from.opened, to.opened, [from, to], announced);
  const nodes = [...comparison.run()];
  const diagnostics = toldOnce(nodes.flatMap(({ readings }) => readings.flatMap(diagnosticsOfNode)));
  const notes = [...new Set(nodes.flatMap((node) => node.notes.map((each) => inOneLine(diagnose('reading', each)))))];
  const traceOf = ([old, fresh]: readonly [Scene, Scene]) => ({ old: from.words(old.side), new: to.words(fresh.side) });
  const names = { from: from.name, to: to.name };
  const { report, passed = false } =
    refuseAfter(diagnostics, () => comparison.result({ ...names, modeFrom, traceOf })) ?? {};
  const findings = diagnosticsOf(report?.preparations ?? []);
  const { snapshots = [] } = report ?? {};
  const json = report && equivalenceJson(report);
  // The names of the sides are those that the commands print.
  const said = json && { ...answerInOptions(json), ...names };
  return { passed, report: said, snapshots, findings, diagnostics, notes: answerInOptions(notes) };
}

function toldOnce(diagnostics: readonly Finding[]): readonly SaidFinding[] {
  return diagnosticsOf(distinct(diagnostics));
}

/** The flags of `kpc migrate`. Compares all Nodes in the manifests, or only `node`. */
export interface MigrateOptions extends Omit<ManifestsOfNodes, 'allNodes'> {
  readonly from?: ProxyMode | undefined;
  /** The default is nftables. For an upgrade, the default is the mode that results from the upgrade. */
  readonly to?: ProxyMode | undefined;
  /** The release to upgrade to. */
  readonly toKubernetesVersion?: string | undefined;
  /** kube-proxy's configuration after the change. The default is the present configuration, in the new mode. */
  readonly toConfig?: NamedText | undefined;
}

/**
 * Reports what a change of mode or an upgrade breaks, and what to prepare for it. Throws a TypeError if the options name no change.
 *
 * ```ts
 * import { migrate } from 'kube-proxy-compiler';
 *
 * const service = '{ apiVersion: v1, kind: Service, metadata: { name: web }, spec: { ports: [{ port: 80 }] } }';
 * const slice = `{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, ports: [{ port: 80 }],
 *   metadata: { name: web-1, labels: { kubernetes.io/service-name: web } }, endpoints: [{ addresses: [10.244.1.9] }] }`;
 * const manifests = { 'service.yaml': service, 'slice.yaml': slice };
 * console.log(migrate({ manifests, from: 'iptables', to: 'nftables' }).passed); // true
 * ```
 */
export function migrate(options: MigrateOptions): EquivalenceResult {
  checkPacketOptions(options, ['from', 'to', 'toKubernetesVersion', 'toConfig']);
  const { from: _, to: __, toKubernetesVersion: ___, toConfig, ...input } = options;
  const { before, after, asked } = optionsOfChange({ ...input, toConfig });
  const { loaded } = openTexts({ ...input, ...before }, false);
  const settled =
    asked === '' ? undefined : openTexts({ ...input, ...after, proxyMode: undefined }, false, '', loaded).loaded;
  const change = planChange(options, loaded, settled);
  if (change.kind === 'refused') misuse(change.why);
  const { from, to } = change;
  const shared = { ...input, allNodes: namesNoNode(options.node, loaded) };
  const sides = [
    compiledSpec(from.words, { ...shared, ...before, ...from.options }, loaded),
    compiledSpec(nameAfter(to.words, asked), { ...shared, ...after, ...to.options }, loaded),
  ] as const;
  return compareSpecs(sides, change.announced, change.modeFrom);
}
