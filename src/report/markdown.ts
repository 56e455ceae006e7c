import type { ReportBlock, ReportLine } from '../diff/diff-report.ts';
import { signs } from './text.ts';

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
export function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_[\]<>|#@]/g, '\\$&');
}
