import { count, formatCount } from '../base/format-count.ts';
import { line, type DescriptionLine } from '../describe/describe-words.ts';
import { addressWords } from '../diff/port-facts.ts';
import type { Preparation } from '../packet/equivalence/preparations.ts';
import type { Effect, Finding, Severity } from '../packet/equivalence/findings.ts';
import { formatDescription } from './colours.ts';
import { formatJson } from './format-json.ts';
import { formatTestSuite } from './junit.ts';
import { escapeMarkdown } from './text-and-markdown.ts';

/** What was compared, and what was found. */
export interface EquivalenceReport {
  readonly from: string;
  readonly to: string;
  /** How many nodes there are, and how many represent them all. */
  readonly nodes: number;
  readonly asked: number;
  /** Classes of packets that were sent, of which neither side knows some. */
  readonly classes: number;
  readonly unknown: number;
  readonly findings: readonly Finding[];
}

const severityWords: Readonly<Record<Severity, string>> = {
  breaks: 'what worked no longer does',
  changes: 'it works in another way',
  opens: 'what failed now works',
  'fails-otherwise': 'no action needed: it works on neither side',
};

/** What a client connects to, in words. */
export const targetWords: Readonly<Record<Effect['target'], string>> = {
  ...addressWords,
  'node-port': 'node port',
  'health-check': 'health check node port',
  ping: 'ping of a Service address',
  'unserved-port': 'other port of a Service address',
  'unserved-address': 'address of no Service',
  node: 'port of the node itself',
};

const looksAway =
  'Not looked at: connections that are open while the rules change, what other hosts and network plugins do, and multicast.';

/** How many Services a line names. */
const shownServices = 5;

/** The findings in lines: one block each, those that need nothing last. */
function findingLines({ findings, asked }: EquivalenceReport): readonly (readonly DescriptionLine[])[] {
  return findings.map((finding) => [
    line(
      finding.severity === 'fails-otherwise' ? 'plain' : 'heading',
      0,
      `${finding.title}: ${severityWords[finding.severity]}`,
    ),
    ...finding.reasons.map((reason) => line('plain', 1, reason)),
    ...finding.effects.flatMap(effectLines),
    ...(finding.services.length > 0 ? [line('plain', 1, `Services: ${someOf(finding.services)}`)] : []),
    ...(asked > 1 ? [line('plain', 1, `nodes: ${someOf(finding.nodes)}`)] : []),
    ...(finding.advice === undefined ? [] : [line('good', 1, `To do: ${finding.advice}.`)]),
  ]);
}

function effectLines({ target, senders, from, to, classes, example, severity }: Effect): readonly DescriptionLine[] {
  const on = example.interface === undefined ? '' : ` --in-interface ${example.interface}`;
  const what = `${targetWords[target]}, from ${senders.join(', ')}: ${from} → ${to}`;
  return [
    line(severity === 'breaks' ? 'bad' : 'plain', 1, `${what} (${count(classes, 'class', 'classes')})`),
    line('dim', 2, `kpc trace --from ${example.from} --to ${example.to} --proto ${example.protocol}${on}`),
  ];
}

function someOf(names: readonly string[]): string {
  const more = names.length - shownServices;
  return names.slice(0, shownServices).join(', ') + (more > 0 ? ` and ${formatCount(more)} more` : '');
}

/** What to do before a change of mode, with how to check it. */
function preparationLines(preparations: readonly Preparation[]): readonly DescriptionLine[] {
  const rows = preparations.flatMap(({ what, why, check }) => [
    line('plain', 1, `${what}: ${why}`),
    line('dim', 2, check),
  ]);
  return [line('heading', 0, 'Before the change'), ...rows];
}

/** The first line: how much was compared, and how it came out. */
function summaryWords({ from, to, nodes, asked, classes, findings }: EquivalenceReport): string {
  const where = nodes > 1 ? ` on ${formatCount(nodes)} nodes, represented by ${formatCount(asked)}` : '';
  const result = findings.length === 0 ? 'no difference' : `they differ for ${count(findings.length, 'reason')}`;
  return `${from} → ${to}: ${formatCount(classes)} classes of packets${where}; ${result}`;
}

function notes({ unknown }: EquivalenceReport): readonly string[] {
  const doubt = `${count(unknown, 'class depends', 'classes depend')} on rules that kpc does not understand, on both sides: these were not compared.`;
  return [...(unknown > 0 ? [doubt] : []), looksAway];
}

/** The formats of `kpc equivalence --output`. */
export const equivalenceOutputs = ['text', 'json', 'markdown', 'junit'] as const;

/** The report in one of the formats; in text and Markdown, the preparations come first. */
export function formatEquivalence(
  report: EquivalenceReport,
  preparations: readonly Preparation[] | undefined,
  output: (typeof equivalenceOutputs)[number],
  isColoured: boolean,
): string {
  const before = preparations && preparations.length > 0 ? [preparationLines(preparations)] : [];
  const blocks = [...before, ...findingLines(report)];
  switch (output) {
    case 'text': {
      const summary = line(report.findings.length === 0 ? 'good' : 'heading', 0, summaryWords(report));
      const end = notes(report).map((text) => line('dim', 0, text));
      return formatDescription([[summary], ...blocks, end], isColoured);
    }
    case 'markdown': {
      const end = notes(report).map(escapeMarkdown).join(' ');
      return [`**${escapeMarkdown(summaryWords(report))}**\n`, ...blocks.map(markdownBlock), `${end}\n`].join('\n');
    }
    case 'junit':
      return formatJunit(report);
    case 'json':
      return formatJson({ ...report, preparations });
  }
}

/** A block in Markdown, for a pull request or a ticket. */
function markdownBlock(lines: readonly DescriptionLine[]): string {
  const [head, ...others] = lines;
  const items = others.map(({ depth, role, text }) =>
    role === 'dim'
      ? `  \`${text.replaceAll('`', "'")}\`\n`
      : `${'  '.repeat(Math.max(0, depth - 1))}- ${escapeMarkdown(text)}\n`,
  );
  return `### ${escapeMarkdown(head?.text ?? '')}\n\n${items.join('')}`;
}

/** One test case for each cause: it fails where packets end otherwise. */
function formatJunit(report: EquivalenceReport): string {
  const cases = findingLines(report).map((lines, i) => {
    const title = report.findings[i]?.title ?? '';
    return { name: title, place: undefined, failure: { title, lines: lines.slice(1).map(({ text }) => text) } };
  });
  const passed = { name: 'every class of packets ends alike', place: undefined, failure: undefined };
  return formatTestSuite(`kpc equivalence ${report.from} ${report.to}`, cases.length > 0 ? cases : [passed]);
}
