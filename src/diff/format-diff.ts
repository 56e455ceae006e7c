import type { Location } from '../kernel/origin.ts';
import type { ReportBlock, ReportLine } from './diff-report.ts';
import type { ServicePortDiff, SideDiff } from './diff-sides.ts';
import { isSame } from './diff-sides.ts';
import type { Side } from './side.ts';
import { describeGaps, describeReason } from './words.ts';

/** Gives a line its colour on a terminal; the text as it is elsewhere. */
export type Paint = (role: ReportLine['role'], text: string) => string;

const signs: { readonly [R in ReportLine['role']]: string } = {
  heading: '',
  title: '',
  reason: '    ',
  added: '  + ',
  removed: '  - ',
  changed: '  ~ ',
  more: '    … ',
  summary: '',
};

/** A report as text for a terminal. */
export function formatText(blocks: readonly ReportBlock[], paint: Paint): string {
  return blocks
    .map((block) => block.map(({ role, text }) => `${paint(role, `${signs[role]}${text}`)}\n`).join(''))
    .join('\n');
}

/** A report as Markdown, for a comment on a pull request: what changes in the kernel is folded away. */
export function formatMarkdown(blocks: readonly ReportBlock[]): string {
  const summary = blocks.flat().filter(({ role }) => role === 'summary');
  const parts = summary.map(({ text }) => `**${escapeMarkdown(text)}**\n`);
  for (const block of blocks) {
    const lines = block.filter(({ role }) => role !== 'summary');
    if (lines.length > 0) parts.push(formatMarkdownBlock(lines));
  }
  return parts.join('\n');
}

function formatMarkdownBlock(lines: readonly ReportLine[]): string {
  const firstKernel = lines.findIndex(({ role }) => role === 'added' || role === 'removed' || role === 'changed');
  const head = firstKernel < 0 ? lines : lines.slice(0, firstKernel);
  const kernel = firstKernel < 0 ? [] : lines.slice(firstKernel);
  const isTitle = ({ role }: ReportLine) => role === 'heading' || role === 'title';
  const items = head.filter((line) => !isTitle(line)).map(formatMarkdownLine);
  const text = [...head.filter(isTitle).map(formatMarkdownLine), ...(items.length > 0 ? ['\n', ...items] : [])].join(
    '',
  );
  if (kernel.length === 0) return text;
  const diff = kernel.map(({ role, text: words }) => `${signs[role].trim() || '…'} ${words}\n`).join('');
  return `${text}\n<details><summary>In the kernel</summary>\n\n\`\`\`diff\n${diff.replaceAll('`', "'")}\`\`\`\n\n</details>\n`;
}

function formatMarkdownLine({ role, text }: ReportLine): string {
  switch (role) {
    case 'heading':
    case 'title':
      return `### ${escapeMarkdown(text)}\n`;
    case 'more':
      return `- … ${escapeMarkdown(text)}\n`;
    case 'reason':
    case 'added':
    case 'removed':
    case 'changed':
    case 'summary':
      return `- ${escapeMarkdown(text)}\n`;
  }
}

/** Names and values are the users': they must not turn into links, tags or headings. */
function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]<>|#@]/g, '\\$&');
}

/** The whole difference for programs, without limits. */
export function toJson(from: Side, to: Side, diff: SideDiff): unknown {
  return {
    from: { kind: from.kind, name: from.name },
    to: { kind: to.kind, name: to.name },
    differs: !isSame(diff),
    notCompared: describeGaps(diff.gaps),
    servicePorts: diff.servicePorts.map(servicePortToJson),
    base: diff.base,
    foreign: diff.foreign,
    unaccounted: diff.unaccounted,
    ...(diff.leftovers.dead.length + diff.leftovers.live.length > 0 ? { leftovers: diff.leftovers } : {}),
    ...(diff.comments > 0 ? { rulesThatDifferInCommentsAlone: diff.comments } : {}),
  };
}

function servicePortToJson(port: ServicePortDiff): unknown {
  const place: Location | undefined = port.place?.locate();
  return {
    servicePort: port.label,
    ...(port.formerLabel === undefined ? {} : { formerServicePort: port.formerLabel }),
    change: port.change,
    ...(place ? { place } : {}),
    reasons: port.reasons.map((reason) => ({ ...reason, text: describeReason(reason) })),
    kernel: [...port.kernel, ...port.follows],
  };
}
