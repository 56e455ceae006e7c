import { printable } from '../../base/printable.ts';
import type { ReportBlock, ReportLine } from '../diff-report.ts';

/** Colours a line for a terminal, and nothing elsewhere. */
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

export function formatText(blocks: readonly ReportBlock[], paint: Paint): string {
  return blocks
    .map((block) => block.map(({ role, text }) => `${paint(role, `${signs[role]}${text}`)}\n`).join(''))
    .join('\n');
}

/** A report in Markdown, for a comment on a pull request. Changes in the kernel are folded. */
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
  return `${text}\n${foldCode('In the kernel', 'diff', kernel.map(kernelLine))}`;
}

/** The changes in the kernel of a block, under its title. */
export function kernelLines(block: ReportBlock): readonly string[] {
  const changes = block.filter(({ role }) => role === 'added' || role === 'removed' || role === 'changed');
  const title = block.find(({ role }) => role === 'heading' || role === 'title');
  return changes.length === 0 ? [] : [`# ${title?.text ?? ''}`, ...changes.map(kernelLine)];
}

function kernelLine({ role, text }: ReportLine): string {
  return `${signs[role].trim() || '…'} ${text}`;
}

/** A folded block of code. */
export function foldCode(title: string, language: string, lines: readonly string[]): string {
  return fold(title, codeBlock(language, lines));
}

/** The fence is longer than any in the lines, so that no text of the input ends the block. */
export function codeBlock(language: string, lines: readonly string[]): string {
  const code = lines.map((each) => `${printable(each)}\n`).join('');
  const fence = delimit(code, 3);
  return `${fence}${language}\n${code}${fence}\n`;
}

/** Code within a line. */
export function inlineCode(text: string): string {
  const code = printable(text);
  const [delimiter, space] = [delimit(code, 1), code.includes('`') ? ' ' : ''];
  return `${delimiter}${space}${code}${space}${delimiter}`;
}

/** At least `least` backquotes, and more than the longest run of them in the text. */
function delimit(text: string, least: number): string {
  const longest = [...text.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 0);
  return '`'.repeat(Math.max(least, longest + 1));
}

/** Names the flags from kpc.yaml, because they may hide a difference from a reviewer. */
/** Says what a "no difference" is about, because a comment on a pull request stands alone. */
export function groundsMarkdown(grounds: readonly string[]): string {
  return grounds.length === 0 ? '' : `\n${listItems(grounds.map(escapeMarkdown))}`;
}

export function takenMarkdown(taken: readonly string[] = []): string {
  return taken.map((words) => `\nFlags ${escapeMarkdown(words)}\n`).join('');
}

export function fold(title: string, content: string): string {
  return `<details><summary>${escapeMarkdown(title)}</summary>\n\n${content}\n</details>\n`;
}

/** A list of items that are Markdown already. */
export function listItems(items: readonly string[]): string {
  return items.map((item) => `- ${item}\n`).join('');
}

/** Names and values come from users: they must not become links, tags, headings or lines. */
export function escapeMarkdown(text: string): string {
  return printable(text).replace(/[\\`*_[\]<>|#@]/g, '\\$&');
}
