import { preparationsFor, sortPreparations } from '../ask/equivalence/change.ts';
import { Comparison } from '../ask/equivalence/findings.ts';
import {
  beyondKernel,
  beyondPackets,
  beyondSettings,
  inOtherFamilies,
  namedBeyond,
  otherNodes,
  unaskedPods,
  type BeyondKernel,
} from '../ask/diff/beyond-kernel.ts';
import { beyondWords, findUnshown } from '../say/diff-report.ts';
import { diffSides } from '../ask/diff/diff-sides.ts';
import { diffServices } from '../ask/diff/service-changes.ts';
import { type Finding, placeAtLine } from '../base/findings/finding.ts';
import { chooseStandIns, packetsToPlaced, type Represented } from '../ask/equivalence/representatives.ts';
import { modesOf, needsWork, type EquivalenceReport, type Tracing } from '../say/equivalence.ts';
import type { SnapshotJson } from '../say/outputs/envelope.ts';
import { unsettledWords } from '../say/way/fate.ts';
import { snapshotWriter } from '../say/snapshots.ts';
import type { Opened, Reading } from '../snapshot/open/stored-side.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { refuse, refuseNoServices } from './refusal.ts';
import { onOneNode, pairsElsewhere, sceneOf, type Scene } from '../ask/trace/scene.ts';
import { keyOfFinding } from './open.ts';
import { unseenDifferences } from '../settings/table.ts';
import type { ModeSource } from '../kube-proxy/modes.ts';
import { modeFromWords } from '../say/grounds.ts';

/** A side's name: a path, or a word such as a mode. */
export interface CalledSide {
  readonly name: string;
  readonly isPath: boolean;
}

/** Names the side in findings that name neither a file nor a side. A finding on both sides is reported once, without a side. */
export function ofSides(
  [from, to]: readonly [Reading, Reading],
  [first, second]: readonly [CalledSide, CalledSide],
): readonly [Reading, Reading] {
  const [old, fresh] = [from, to].map(({ diagnostics }) => new Set(diagnostics.map(keyOfFinding)));
  const diagnosticsOf = (reading: Reading, side: CalledSide, beside: Set<string> | undefined) =>
    reading.diagnostics.map((each) => {
      const { name, isPath } = side;
      const isNamed = each.place !== undefined || Object.values(each.arguments).includes(name);
      if (isNamed || beside?.has(keyOfFinding(each))) return each;
      if (isPath) return { ...each, place: placeAtLine(name === '-' ? 'stdin' : name) };
      return { ...each, about: { kind: 'side', name } } as const;
    });
  return [
    { ...from, diagnostics: diagnosticsOf(from, first, fresh) },
    {
      ...to,
      diagnostics: diagnosticsOf(to, second, old).filter((each) => !old?.has(keyOfFinding(each))),
    },
  ];
}

export type { Scene };
export { equivalenceAnswer } from '../say/equivalence.ts';

interface ComparedWords extends Pick<EquivalenceReport, 'from' | 'to'> {
  readonly modeFrom?: ModeSource | undefined;
  readonly traceOf: (scenes: readonly [Scene, Scene]) => Tracing;
}

/** Compares two inputs on a few nodes that represent all others. */
export class NodeComparison {
  readonly counts: { readonly nodes: number; readonly standIns: number };
  readonly #sides: readonly [Opened, Opened];
  readonly #called: readonly [CalledSide, CalledSide];
  readonly #lone: readonly string[];
  readonly #announced: readonly Finding[] | undefined;
  readonly #standIns: ReturnType<typeof chooseStandIns>['standIns'];
  readonly #represented: readonly Represented[];
  readonly #comparison = new Comparison();
  #preparations: readonly Finding[] | undefined;
  readonly #snapshots: SnapshotJson[] = [];
  #elsewhere = 0;
  #last: readonly [Scene, Scene] | undefined;

  /** `announced`: what to prepare for a change of mode or release. Undefined for any other comparison. */
  constructor(from: Opened, to: Opened, called: readonly [CalledSide, CalledSide], announced?: readonly Finding[]) {
    const loaded = from.loaded && to.loaded && [from.loaded, to.loaded];
    const nodes = loaded ? from.nodes.filter((node) => to.nodes.includes(node)) : [''];
    if (nodes.length === 0) refuse({ problem: 'no-shared-node', from: called[0].name, to: called[1].name });
    this.#lone = loaded ? [from, to].flatMap((side) => side.nodes.filter((node) => !nodes.includes(node))) : [];
    this.#sides = [from, to];
    this.#called = called;
    this.#announced = announced;
    const chosen = loaded && chooseStandIns(loaded, nodes);
    this.#standIns = chosen?.standIns ?? nodes.map((node) => ({ node, only: undefined }));
    this.#represented = nodes.length > 1 ? (chosen?.represented ?? []) : [];
    this.counts = { nodes: nodes.length, standIns: this.#standIns.length };
  }

  /** Compares the nodes one by one, each when its result is requested. Stops at a node that cannot be compared. */
  *run() {
    const [from, to] = this.#sides;
    const write = snapshotWriter();
    this.#last = undefined;
    for (const { node, only } of this.#standIns) {
      const readings = [from.at(node), to.at(node)] as const;
      const [before, after] = readings.map(({ side }) => side && sceneOf(side));
      if (before && after) this.#snapshots.push(write(before.side), write(after.side));
      const scenes = before && after ? onOneNode(before, after) : undefined;
      this.#last = scenes;
      yield {
        readings: ofSides(readings, this.#called),
        /** The facts that one side lacks and takes from the other side. */
        notes: scenes ? [before, after].flatMap((scene) => (scene ? findUnshown(scene) : [])) : [],
      };
      if (!scenes) return;
      this.#preparations ??= this.#announced && sortPreparations([...this.#announced, ...preparationsFor(...scenes)]);
      this.#comparison.add(scenes, only);
      if (this.counts.nodes === 1 && !from.isNodeNamed) this.#addElsewhere(...scenes, write);
    }
  }

  #addElsewhere({ side: from }: Scene, { side: to }: Scene, write: ReturnType<typeof snapshotWriter>): void {
    const only = packetsToPlaced([from, to].flatMap(({ cluster }) => cluster?.servicePorts ?? []));
    if (!only) return;
    for (const [old, fresh] of pairsElsewhere(from, to)) {
      this.#comparison.add(onOneNode(sceneOf(old), sceneOf(fresh)), only);
      this.#snapshots.push(write(old), write(fresh));
      this.#elsewhere++;
    }
  }

  /** Returns the result. To be called after the last node. Undefined if a node could not be compared. */
  result({ traceOf, modeFrom, ...names }: ComparedWords) {
    const scenes = this.#last;
    if (!scenes) return undefined;
    const compared = this.#comparison.result();
    const { side: from } = scenes[0];
    const { side: to } = scenes[1];
    const { unknown, unknownOnOne, knowsServices, reasons } = compared;
    const beyond = beyondOf(from, to);
    if (compared.findings.length === 0) refuseNoServices(from, to, 'packets', beyond.map(beyondWords));
    const report = {
      ...names,
      modeFrom: modeFromWords(modeFrom),
      preparations: this.#preparations,
      trace: traceOf(scenes),
      beyond: [
        ...beyond,
        ...unaskedPods(from, to, beyond),
        ...(this.#standIns[0]?.node === '' ? otherNodes(from, to, compared.findings.length > 0, compared.asked) : []),
        ...namedBeyond('nodes', this.#lone),
        ...inOtherFamilies(from, to),
        ...namedBeyond('settings', unseenSettings(from, to)),
      ].map(beyondWords),
      snapshots: this.#snapshots,
      ...(this.#announced ? {} : modesOf(scenes, this.#called)),
      nodes: this.counts.nodes + this.#elsewhere,
      standIns: this.counts.standIns + this.#elsewhere,
      represented: this.#elsewhere === 0 ? this.#represented : compared.asked.map((node) => ({ node, by: [node] })),
      ...compared,
    };
    // A change of mode or release passes if nothing needs work. Any other comparison passes if nothing differs.
    const passed = this.#announced ? !needsWork(report) : report.findings.length === 0;
    const unknowns = unknown + unknownOnOne;
    // The answer must rest on something known. A change passes only if something is known about a Service, or nothing is unknown.
    if (passed && (this.#announced ? unknowns > 0 && !knowsServices : unknowns === compared.classes))
      refuse({ problem: 'nothing-known', reasons: unsettledWords(reasons).toSorted() });
    return { report, passed, placeOf: (servicePort: string) => placeOfPort(to, servicePort) };
  }
}

function beyondOf(from: Snapshot, to: Snapshot): readonly BeyondKernel[] {
  if (from.kind === 'manifests' && from.objects === to.objects) return beyondSettings(from, to);
  const changes =
    from.kind === 'dump' || to.kind === 'dump'
      ? diffSides(from, to, { foreign: false }).servicePorts
      : diffServices(from, to);
  return [...beyondKernel(from, to, changes), ...beyondPackets(from, to, changes)];
}

function unseenSettings({ settings: old }: Snapshot, { settings: fresh }: Snapshot): readonly string[] {
  return old && fresh ? unseenDifferences(old, fresh, 'rules') : [];
}

function placeOfPort({ cluster }: Snapshot, servicePort: string) {
  return cluster?.servicePorts.find(({ label }) => label === servicePort)?.places?.port;
}
