import { describeFlowChange, flowChangeJson } from '../say/describe/dump.ts';
import { flowsOfChange } from '../ask/describe/read-dumped.ts';
import { reportDiff, type ReportLimits, describeGaps, sideChangeTexts } from '../say/diff-report.ts';
import { diffSides, areSidesSame, type SideDiff } from '../ask/diff/diff-sides.ts';
import { formatText } from '../say/formats/text.ts';
import { formatReviewMarkdown, lacksOf, reportReview, type Review } from '../say/diff-review.ts';
import { lines } from '../say/lines.ts';
import { answerOutputs, casesOf, type Answered } from '../say/formats/answer.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { SaidByCommand } from '../say/formats/json.ts';
import { diffToJson, makeReview, differencesFound } from '../say/differences.ts';
import { assumedWithMode, groundsOf, snapshotsJson } from '../say/snapshots.ts';
import type { difference } from '../say/outputs/compile-and-compare.ts';
import type { TraceWords } from '../say/equivalence.ts';
import { formatMarkdown } from '../say/formats/markdown.ts';
import { sayFindings } from '../say/words/said.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import { refuse, refuseNoServices } from './refusal.ts';
export { formatSideDiffs } from '../say/formats/unified.ts';

export interface Differences {
  readonly from: Snapshot;
  readonly to: Snapshot;
  readonly diff: SideDiff;
  readonly review?: Review | undefined;
  readonly flows?: ReturnType<typeof flowsOfChange>;
}

interface ComparisonStyle {
  readonly foreign: boolean;
  /** The commands that trace a packet. Undefined to compare rules instead of packets. */
  readonly trace: TraceWords | undefined;
}

/** Compares two sides. Adds what happens to packets, unless a side is a dump. For a dump, only rules are compared. */
export function compareSides(from: Snapshot, to: Snapshot, { foreign, trace }: ComparisonStyle): Differences {
  const diff = diffSides(from, to, { foreign });
  const hasPackets = trace !== undefined && from.kind !== 'dump' && to.kind !== 'dump';
  const review = hasPackets ? makeReview(from, to, diff, trace) : undefined;
  return { from, to, diff, review, flows: flowsOfChange(from, to) };
}

export { listSkipped } from '../ask/diff/beyond-kernel.ts';

export function listUncompared({ diff }: Differences): readonly string[] {
  return describeGaps(diff.gaps.filter(({ beyond }) => !beyond));
}

/** Refuses two sides that show no part in common. */
export function expectCompared({ from, to, diff }: Differences): void {
  if (diff.extent === 'modeless' || (areSidesSame(diff) && diff.extent === 'nothing'))
    refuse({ problem: 'nothing-in-common', from: from.name, to: to.name });
}

/** Reports whether two sides are the same. Refuses two sides that show no part in common. */
export function isUnchanged(differences: Differences): boolean {
  const { from, to, diff } = differences;
  expectCompared(differences);
  if (!areSidesSame(diff)) return false;
  refuseNoServices(from, to, 'services');
  return true;
}

export function diffResult({ from, to, diff, review, flows }: Differences): Shaped<typeof difference> {
  return { ...diffToJson(from, to, diff, review), flows: flows && flowChangeJson(flows) };
}

/** `unified`: a unified diff of the two sides' files. */
export const diffOutputs = [...answerOutputs, 'unified'] as const;

export function diffAnswer(
  { from, to, diff, review, flows }: Differences,
  { limit, isColoured = false, taken, said = noneSaid }: DiffStyle,
): Answered<string> {
  const limits: ReportLimits = { servicePorts: limit, lines: limit };
  const blocks = () => [
    flows ? describeFlowChange(flows, limit) : [],
    ...(review
      ? reportReview(review, limits)
      : [lines('plain', 0, ...sideChangeTexts({ from, to })), ...reportDiff(diff, limits)]),
  ];
  const snapshots = () => snapshotsJson([from, to]);
  // A comment on a pull request is read without its context, so it names the node, mode and families. It also names flags from kpc.yaml,
  // because these may hide a difference.
  const beside = () => [
    lines('plain', 0, ...groundsOf(snapshots())),
    lines('plain', 0, ...(taken ?? []).map((words) => `Flags ${words}`)),
  ];
  return {
    said,
    text: () => {
      const parts = assumedWithMode(snapshots());
      return formatText(
        [...blocks(), lines('plain', 0, parts.length > 0 && `assumed: ${parts.join(', ')}`)],
        isColoured,
      );
    },
    markdown: () =>
      review ? formatReviewMarkdown(review, limits, beside()) : formatMarkdown([...blocks(), ...beside()]),
    result: () => diffResult({ from, to, diff, review, flows }),
    findings: () => sayFindings(differencesFound(diff)),
    snapshots,
    lacks: () => lacksOf({ from, to, diff }, review),
    cases: (findings) =>
      casesOf(
        findings,
        to.ports.map(({ label }) => ({ name: label })),
      ),
  };
}

const noneSaid: SaidByCommand = { command: 'kpc diff', findings: [] };

interface DiffStyle {
  readonly limit: number;
  readonly isColoured?: boolean;
  readonly taken?: readonly string[] | undefined;
  readonly said?: SaidByCommand;
}
