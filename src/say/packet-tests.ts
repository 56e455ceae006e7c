import { printable, printableJson } from '../base/printable.ts';
import { count } from '../base/format-count.ts';
import { joinWords, nameSome } from '../base/join-words.ts';
import { line, type DescriptionLine } from '../ask/describe/describe-words.ts';
import { groupBy } from '../cluster/group-by.ts';
import { describeSkipped } from '../dumps/dump.ts';
import { formatSocketAddress } from '../kernel/socket-address.ts';
import { unnamedMode } from '../kube-proxy/modes.ts';
import type { Shaped } from '../base/json/schema.ts';
import type { Location } from '../kernel/place.ts';
import type { PacketResult } from '../ask/trace/packet-tests.ts';
import { listTraceLines, describeTrace, traceJson } from '../ask/trace/trace-words.ts';
import type { Scene } from '../ask/trace/scene.ts';
import { formatDescription } from './formats/description.ts';
import { formatJson, type Said } from './formats/json.ts';
import type { tested } from './outputs/trace.ts';
import { assumedSummary, snapshotsJson } from './snapshots.ts';
import { formatTestSuite } from './formats/junit.ts';

export const testOutputs = ['text', 'junit', 'tap', 'json'] as const;

export function formatResults(
  results: readonly PacketResult[],
  output: (typeof testOutputs)[number],
  isColoured: boolean,
  said: Said,
): string {
  switch (output) {
    case 'text':
      return resultsToText(results, isColoured);
    case 'junit':
      return resultsToJunit(results);
    case 'tap':
      return resultsToTap(results);
    case 'json':
      return formatJson<typeof tested>({
        ...said,
        snapshots: snapshotsJson(results.map(({ scene }) => scene.side)),
        result: { tests: results.map(resultJson) },
      });
  }
}

const hasFailed = ({ faults }: PacketResult): boolean => faults.length > 0;

function resultsToText(results: readonly PacketResult[], isColoured: boolean): string {
  const failed = results.filter(hasFailed);
  const passed = results.length - failed.length;
  const isGood = failed.length === 0;
  const summary = isGood ? `${count(passed, 'packet')} as expected` : `${failed.length} failed, ${passed} as expected`;
  const blocks = [...groupBy(failed, failureKey).values()].map((alike) => [
    ...alike.map(({ place, title }) => line('bad', 0, `${at(place)}: ${title}`)),
    ...alike.slice(0, 1).flatMap(explain),
  ]);
  const text = [summary, ...describeScenes(results.map(({ scene }) => scene))].join(', ');
  const assumed = assumedSummary(snapshotsJson(results.map(({ scene }) => scene.side)));
  const skipped = [...new Set(results.flatMap(skippedOf))].map((each) => line('plain', 0, each));
  const end = [line(isGood ? 'good' : 'bad', 0, text), ...(assumed === undefined ? [] : [line('dim', 0, assumed)])];
  return formatDescription([...blocks, [...end, ...skipped]], isColoured);
}

/** Equal for packets of one test that fail alike on one node: the trace of the first shows why. */
function failureKey({ place, faults, trace: { target }, scene: { side } }: PacketResult): string {
  return JSON.stringify([at(place), faults, formatSocketAddress(target), target.protocol, side.nodeName, side.mode]);
}

/** What is no part of a result. That of a failed one is in its trace, too. */
function skippedOf({ scene: { side } }: PacketResult): readonly string[] {
  return describeSkipped(side.doubts);
}

/** Where packets were sent: the nodes, modes and releases, as far as the inputs say them. */
function describeScenes(scenes: readonly Scene[]): readonly string[] {
  const each = <T>(values: readonly (T | undefined)[]): readonly T[] => [
    ...new Set(values.flatMap((value) => value ?? [])),
  ];
  const nodes = each(scenes.map(({ side }) => side.node?.name || undefined));
  const modes = each(
    scenes.map(({ side }) => side.mode && `${side.mode}${side.assumed?.mode ? ` ${unnamedMode}` : ''}`),
  );
  const releases = each(scenes.map(({ side }) => side.settings?.release));
  return [
    ...(nodes.length === 0 ? [] : [`on ${nameSome(nodes.map((name) => printable(name)))}`]),
    ...(modes.length === 0 ? [] : [joinWords(modes)]),
    ...(releases.length === 0 ? [] : [joinWords(releases)]),
  ];
}

function explain({ faults, trace, scene }: PacketResult): readonly DescriptionLine[] {
  const steps = listTraceLines(describeTrace(trace, scene));
  return [
    ...faults.map((text) => line('plain', 1, text)),
    ...steps.map((each) => ({ ...each, depth: each.depth + 1 })),
  ];
}

function explainLines(result: PacketResult): readonly string[] {
  return formatDescription([explain(result)], false)
    .split('\n')
    .filter((text) => text !== '');
}

function at({ file, line: row, column }: Location): string {
  return `${file}:${row}:${column}`;
}

function resultsToJunit(results: readonly PacketResult[]): string {
  const cases = results.map((result) => ({
    name: result.title,
    place: result.place,
    output: skippedOf(result),
    failure: hasFailed(result) ? { title: result.faults.join('; '), lines: explainLines(result) } : undefined,
  }));
  return formatTestSuite('kpc test', cases);
}

function resultsToTap(results: readonly PacketResult[]): string {
  const lines = results.flatMap((result, i) => {
    const title = printable(result.title).replaceAll(/[\\#]/g, '\\$&');
    if (!hasFailed(result))
      return [`ok ${i + 1} - ${title}`, ...skippedOf(result).map((each) => `# ${printable(each)}`)];
    const text = explainLines(result).map((each) => `    ${each}`);
    const place = printableJson(JSON.stringify(at(result.place)));
    return [`not ok ${i + 1} - ${title}`, '  ---', `  at: ${place}`, '  message: |', ...text, '  ...'];
  });
  return `${['TAP version 14', `1..${results.length}`, ...lines].join('\n')}\n`;
}

/** A result of `--output json`. */
export function resultJson({
  title,
  place,
  faults,
  trace,
  scene,
}: PacketResult): Shaped<typeof tested>['tests'][number] {
  return { name: title, passed: faults.length === 0, place, faults, trace: traceJson(trace, scene) };
}
