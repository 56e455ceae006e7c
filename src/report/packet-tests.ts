import { printable, printableJson } from '../base/printable.ts';
import { count } from '../base/format-count.ts';
import { line, type DescriptionLine } from '../describe/describe-words.ts';
import type { Location } from '../kernel/place.ts';
import type { Trace } from '../packet/trace/question.ts';
import { listTraceLines, describeTrace, traceJson } from '../packet/trace/trace-words.ts';
import type { Scene } from '../packet/trace/scene.ts';
import { formatDescription } from './colours.ts';
import { formatJson } from './format-json.ts';
import { formatTestSuite } from './junit.ts';

/** One packet of a test, with what became of it. */
export interface PacketResult {
  readonly title: string;
  readonly place: Location;
  readonly trace: Trace;
  readonly scene: Scene;
  /** How it differs from what is expected; empty if it does not. */
  readonly faults: readonly string[];
}

/** The formats of `kpc test --output`. */
export const testOutputs = ['text', 'junit', 'tap', 'json'] as const;

/** The results of `kpc test` in one of these formats. */
export function formatResults(
  results: readonly PacketResult[],
  output: (typeof testOutputs)[number],
  isColoured: boolean,
): string {
  switch (output) {
    case 'text':
      return resultsToText(results, isColoured);
    case 'junit':
      return resultsToJunit(results);
    case 'tap':
      return resultsToTap(results);
    case 'json':
      return formatJson(results.map(resultJson));
  }
}

const hasFailed = ({ faults }: PacketResult): boolean => faults.length > 0;

function resultsToText(results: readonly PacketResult[], isColoured: boolean): string {
  const failed = results.filter(hasFailed);
  const passed = results.length - failed.length;
  const isGood = failed.length === 0;
  const summary = isGood ? `${count(passed, 'packet')} as expected` : `${failed.length} failed, ${passed} as expected`;
  const blocks = failed.map((result) => [line('bad', 0, `${at(result.place)}: ${result.title}`), ...explain(result)]);
  return formatDescription([...blocks, [line(isGood ? 'good' : 'bad', 0, summary)]], isColoured);
}

/** What is not as expected, then the trace that says why. */
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
    failure: hasFailed(result) ? { title: result.faults.join('; '), lines: explainLines(result) } : undefined,
  }));
  return formatTestSuite('kpc test', cases);
}

/** TAP version 14. */
function resultsToTap(results: readonly PacketResult[]): string {
  const lines = results.flatMap((result, i) => {
    const title = printable(result.title).replaceAll(/[\\#]/g, '\\$&');
    if (!hasFailed(result)) return [`ok ${i + 1} - ${title}`];
    const text = explainLines(result).map((each) => `    ${each}`);
    const place = printableJson(JSON.stringify(at(result.place)));
    return [`not ok ${i + 1} - ${title}`, '  ---', `  at: ${place}`, '  message: |', ...text, '  ...'];
  });
  return `${['TAP version 14', `1..${results.length}`, ...lines].join('\n')}\n`;
}

function resultJson({ title, place, faults, trace, scene }: PacketResult): unknown {
  const { side, mode } = scene;
  return {
    name: title,
    passed: faults.length === 0,
    ...place,
    ...(side.services ? { node: side.services.node.name } : {}),
    ...(mode ? { mode } : {}),
    faults,
    trace: traceJson(trace, scene),
  };
}
