import { reportDiff } from '../../src/say/diff-report.ts';
import { diffSides } from '../../src/ask/diff/diff-sides.ts';
import type { Snapshot } from '../../src/snapshot/snapshot.ts';
import { compareScenes } from '../../src/ask/equivalence/compare.ts';
import { effectsByService, Findings, nodeOf } from '../../src/ask/equivalence/findings.ts';
import { preparationsFor } from '../../src/ask/equivalence/change.ts';
import { formatText } from '../../src/say/formats/text.ts';
import { reportReview } from '../../src/say/diff-review.ts';
import { equivalenceAnswer } from '../../src/say/equivalence.ts';
import { onOneNode, type Scene } from '../../src/ask/trace/scene.ts';
import type { Answer, Input, Problem } from './questions.ts';
import { isDump, readBeside, type Loaded } from './read-input.ts';

/** Limit on the Service ports in a comparison of two versions, because there may be many paths to each. */
const mostAsked = 400;
const everything = { servicePorts: Infinity, lines: Infinity };

/** Compares the input with another mode or release of it, or with another text. */
export function compare(from: Input, to: Input, load: (input: Input) => Loaded): Answer {
  const { shown: old } = load(from);
  if (!old) return { kind: 'wrong', text: '' };
  if (old.kind === 'dump' && !isDump(to.text)) {
    const { side, problems } = readBeside(to, old.scene);
    return { kind: 'compare', text: side ? compareSides(old.scene.side, side) : '', problems };
  }
  const { shown: fresh, problems } = load(to);
  const isOfSettings = from.mode !== to.mode || from.release !== to.release;
  // Show the problems as the answer, because there is no second text beside which to show them.
  if (!fresh && isOfSettings) return { kind: 'wrong', text: problems.map(sentence).join('\n') };
  if (!fresh) return { kind: 'compare', text: '', problems };
  const isOfDump = old.kind === 'dump' || fresh.kind === 'dump';
  const text = isOfDump
    ? compareSides(old.scene.side, fresh.scene.side)
    : isOfSettings
      ? compareSettings(from, to, old.scene, fresh.scene)
      : compareVersions(old.scene, fresh.scene);
  // Leave out the problems of the same text, which are already shown beside it.
  return { kind: 'compare', text, problems: from.text === to.text ? [] : problems };
}

function sentence({ text, help }: Problem): string {
  return help === undefined ? text : `${text}: ${help}`;
}

/** Compares the same manifests in two modes or releases: which packets end differently. */
function compareSettings(from: Input, to: Input, old: Scene, fresh: Scene): string {
  const scenes = onOneNode(old, fresh);
  const findings = new Findings();
  const counts = compareScenes(...scenes, findings.collector(...scenes));
  const isOfModes = from.mode !== to.mode;
  const nameOf = ({ mode, release }: Input): string => (isOfModes ? mode : release);
  const report = {
    from: nameOf(from),
    to: nameOf(to),
    trace: 'no-command',
    snapshots: [],
    nodes: 1,
    standIns: 1,
    represented: [],
    asked: [nodeOf(...scenes)],
    ...counts,
    // Both sides come from the same manifests.
    beyond: [],
    // Manifests are read completely, so there are no reasons for doubt.
    reasons: [],
    findings: findings.list(),
    preparations: isOfModes ? preparationsFor(...scenes) : undefined,
  } as const;
  return equivalenceAnswer(report, true, { command: 'kpc equivalence', findings: [] }).text();
}

/** Compares two versions of the manifests, like kpc diff. */
function compareVersions(old: Scene, fresh: Scene): string {
  const [from, to] = onOneNode(old, fresh);
  const diff = diffSides(from.side, to.side, { foreign: false });
  const ports = Math.max(from.side.ports.length, to.side.ports.length);
  const packets = diff.servicePorts.length === 0 || ports > mostAsked ? undefined : effectsByService(from, to);
  const review = { from: from.side, to: to.side, diff, packets, trace: 'no-command' } as const;
  return formatText(reportReview(review, everything), true);
}

/** Compares what a node has with something else, as kpc diff compares a dump. */
function compareSides(from: Snapshot, to: Snapshot): string {
  const diff = diffSides(from, to, { foreign: false });
  return formatText(reportDiff(diff, everything), true);
}
