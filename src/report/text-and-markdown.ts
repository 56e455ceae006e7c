import type { ReportBlock, ReportLine } from '../diff/diff-report.ts';

/** Gives a line its colour on a terminal; the text as it is elsewhere. */
export type Paint = (role: ReportLine['role'], text: string) => string;

/** What each line begins with, by its role. */
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
  const titles = head.filter(isTitle).map(({ text }) => `### ${escapeMarkdown(text)}\n`);
  const items = head
    .filter((line) => !isTitle(line))
    .map(({ role, text }) => `- ${role === 'more' ? '… ' : ''}${escapeMarkdown(text)}\n`);
  const text = [...titles, ...(items.length > 0 ? ['\n', ...items] : [])].join('');
  if (kernel.length === 0) return text;
  const diff = kernel.map(({ role, text: words }) => `${signs[role].trim() || '…'} ${words}\n`).join('');
  return `${text}\n<details><summary>In the kernel</summary>\n\n\`\`\`diff\n${diff.replaceAll('`', "'")}\`\`\`\n\n</details>\n`;
}

/** Names and values are the users': they must not turn into links, tags or headings. */
export function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]<>|#@]/g, '\\$&');
}
