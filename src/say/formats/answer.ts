import type { ArgumentsOf } from '../../base/findings/codes.ts';
import { diagnose } from '../../base/findings/finding.ts';
import { formatCount, joinPhrases } from '../../base/printable.ts';
import { groupBy } from '../../cluster/grouping.ts';
import type { SnapshotJson } from '../outputs/envelope.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { assumedWithMode, snapshotsJson } from '../snapshots.ts';
import { nothingLacks, unknownWords } from '../words/answers.ts';
import { helpWithTrace, identify, sayFindings, type SaidFinding } from '../words/said.ts';
import { formatGithub, type PathOf } from './github.ts';
import { formatGitlab } from './gitlab.ts';
import { formatJson, type SaidByCommand } from './json.ts';
import { formatTestSuite, type TestCase } from './junit.ts';
import { escapeMarkdown, inlineCode, listItems } from './markdown.ts';
import { formatSarif } from './sarif.ts';

export const answerOutputs = ['text', 'json', 'markdown', 'github', 'gitlab', 'sarif', 'junit'] as const;

export type AnswerOutput = (typeof answerOutputs)[number];

/** An answer that any format can print. Each format calls only the functions that it needs. */
export interface Answered<Markdown extends string | Promise<string> = string | Promise<string>> {
  /** The command, and its messages that are not part of the answer. */
  readonly said: SaidByCommand;
  readonly text: () => string;
  /** The result for programs. Undefined if findings kept kpc from answering. */
  readonly result: () => unknown;
  readonly markdown: () => Markdown;
  /** Findings to show next to the lines of a pull request. */
  readonly findings: () => readonly SaidFinding[];
  /** The nodes that the answer is about. */
  readonly snapshots: () => readonly SnapshotJson[];
  /** Whether the answer depends on assumptions about these nodes. */
  readonly restsOnAssumed?: boolean;
  /** What the answer leaves unknown. Unset if the answer is always complete. */
  readonly lacks?: () => ArgumentsOf<'answer-lacks'>;
  /** The files that were read. A finding that concerns none of them is shown at the first of these files. */
  readonly files?: readonly string[];
  /** The name of the JUnit suite. The default is the command. */
  readonly suite?: string;
  /** What was checked, as JUnit test cases. */
  readonly cases: (findings: readonly SaidFinding[]) => readonly TestCase[];
}

export async function formatAnswer(output: AnswerOutput, answered: Answered, pathOf: PathOf): Promise<string> {
  const empty = emptySides(answered.said);
  switch (output) {
    case 'text':
      return [answered.text(), ...empty.map((text) => `${text}.\n`)].join('\n');
    case 'json':
      return formatJson({ ...answered.said, snapshots: answered.snapshots(), result: await answered.result() });
    case 'markdown':
      return [await answered.markdown(), ...empty.map((text) => `${escapeMarkdown(text)}.\n`)].join('\n');
    default:
      return formatForCi(output, answered, pathOf);
  }
}

/** Says which side was treated as empty. A reader of the answer alone would otherwise be misled. */
function emptySides({ findings }: SaidByCommand): readonly string[] {
  return findings.flatMap((each) =>
    each.code === 'reading' && each.arguments.problem === 'empty-side' ? [each.text] : [],
  );
}

/** Formats the findings for CI. Adds an entry for what the answer assumes and an entry for what it leaves unknown. */
function formatForCi(
  output: Exclude<AnswerOutput, 'text' | 'json' | 'markdown'>,
  {
    said,
    findings: find,
    snapshots,
    restsOnAssumed = true,
    lacks: findLacks,
    files = [],
    suite = said.command,
    cases,
  }: Answered,
  pathOf: PathOf,
): string {
  const of = restsOnAssumed ? assumedWithMode(snapshots()) : [];
  const assumes = of.length > 0;
  const found = findLacks?.() ?? nothingLacks;
  const changed = [...emptySides(said), ...(found.changed ?? [])];
  const open: ArgumentsOf<'answer-lacks'> = { ...found, changed };
  const { notCompared, beside = [] } = open;
  const [unknown] = unknownWords(open);
  const lacks = unknown !== undefined || notCompared.length + changed.length + beside.length > 0;
  const properties = {
    ...(assumes ? { assumed: of.join(', ') } : {}),
    ...(notCompared.length > 0 ? { notCompared: joinPhrases(notCompared) } : {}),
    ...(unknown === undefined ? {} : { unknown }),
    ...(changed.length > 0 ? { changed: changed.join(', ') } : {}),
    ...(beside.length > 0 && output === 'sarif' ? { beside: beside.join('; ') } : {}),
  };
  const notes = sayFindings([
    ...(assumes ? [diagnose('answer-assumes', { of })] : []),
    ...(lacks ? [diagnose('answer-lacks', open)] : []),
  ]);
  const findings = assumes ? find().filter(({ code }) => !saysAssumed.has(code)) : find();
  switch (output) {
    case 'github':
      return formatGithub([...notes, ...findings], pathOf);
    case 'gitlab':
      // In GitLab, every entry demands attention. An answer without findings therefore does not list its assumptions.
      return formatGitlab(identify(findings.length === 0 && !lacks ? [] : [...findings, ...notes]), files, pathOf);
    case 'sarif':
      return formatSarif(identify(findings), assumes || lacks ? properties : undefined, files, pathOf);
    case 'junit':
      return formatTestSuite(suite, cases(findings), properties);
  }
}

/** Codes of findings that only repeat the answer's assumptions about the input. */
const saysAssumed: ReadonlySet<string> = new Set(['assumed', 'default-mode']);

/** Returns the findings that kept a command from answering. `text` is empty, because people have already seen the findings. */
export function refusalOf(said: SaidByCommand, looked: readonly Snapshot[]): Answered {
  const { findings } = said;
  const errors = findings.filter(({ severity }) => severity === 'error');
  return {
    said,
    text: () => '',
    result: () => undefined,
    markdown: () => findingsMarkdown('No answer', errors),
    findings: () => findings,
    snapshots: () => snapshotsJson(looked),
    restsOnAssumed: false,
    cases: casesOf,
  };
}

/** Formats findings as a comment on a pull request, under a sentence that sums up the findings. */
export function findingsMarkdown(summary: string, findings: readonly SaidFinding[]): string {
  const items = findings.map(({ severity, code, text, help, trace, place }) => {
    const at = place && `${place.file}${place.line === undefined ? '' : `:${place.line}`}`;
    const advice = help === undefined ? '' : `<br>${escapeMarkdown(help)}`;
    const shows = trace === undefined ? '' : `<br>trace: ${inlineCode(trace.command)}`;
    return `**${severity}** ${at === undefined ? '' : `${inlineCode(at)} `}${escapeMarkdown(text)} (${code})${advice}${shows}`;
  });
  return `**${escapeMarkdown(summary)}**\n${items.length === 0 ? '' : `\n${listItems(items)}`}`;
}

/**
 * Returns a test case for each thing that was checked, and for each code and subject. A case fails if one of its findings is an error or a
 * difference.
 */
export function casesOf(findings: readonly SaidFinding[], checked: readonly TestCase[] = []): readonly TestCase[] {
  const found = [...groupBy(findings, caseName)].map(([name, own]): TestCase => {
    const [{ text: title, place }] = own;
    const lines = own.flatMap(caseLines);
    const isBad = own.some((each) => each.severity === 'error' || isDifference(each));
    return { name, place, failure: isBad ? { title, lines } : undefined, output: lines };
  });
  const all = [...checked, ...found].map((each) => [each.name, each] as const);
  return [...new Map(all).values()];
}

function isDifference(finding: SaidFinding) {
  return finding.code === 'service-differs' || finding.code === 'state-differs';
}

function caseName(finding: SaidFinding): string {
  const { code, place, about, text } = finding;
  if (code === 'service-differs') return finding.arguments.servicePort;
  if (code === 'state-differs') return text;
  return `${about?.kind === 'service' ? about.name : (place?.file ?? 'input')}: ${code}`;
}

/** Returns the finding's text. For a difference, returns the list of its parts. */
function caseLines(finding: SaidFinding): readonly string[] {
  const advice = helpWithTrace(finding)?.split('\n') ?? [];
  if (finding.code !== 'service-differs' && finding.code !== 'state-differs') return [finding.text, ...advice];
  const { what, more } = finding.arguments;
  return [...what, ...(more > 0 ? [`and ${formatCount(more)} more`] : []), ...advice];
}
