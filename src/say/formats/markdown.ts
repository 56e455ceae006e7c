import { printable } from '../../base/printable.ts';
import type { Block, Line } from '../lines.ts';
import { signs } from './text.ts';

/** Blocks as a comment on a pull request: the summary first, changes in the kernel folded. */
export function formatMarkdown(blocks: readonly Block[]): string {
  const isSummary = ({ role }: Line) => role === 'summary';
  const parts = blocks.map((block) => block.filter((each) => !isSummary(each))).filter(({ length }) => length > 0);
  return [
    ...blocks.flatMap((block) => block.filter(isSummary)).map(({ text }) => `${bold(text)}\n`),
    ...parts.map(formatBlock),
  ].join('\n');
}

function formatBlock(block: Block): string {
  const at = block.findIndex(isChange);
  const others = at < 0 ? block : block.slice(0, at);
  const kernel = at < 0 ? [] : block.slice(at).map(kernelLine);
  const items = others.filter(({ role }) => role !== 'heading');
  const least = Math.min(...items.map(({ depth }) => depth));
  const titles = others.flatMap(({ role, text }) => (role === 'heading' ? [`### ${escapeMarkdown(text)}\n`] : []));
  const list = items.map(({ role, depth, text }) => {
    const indent = '  '.repeat(depth - least);
    return `${indent}${role === 'command' ? inlineCode(text) : `- ${escapeMarkdown(text)}`}\n`;
  });
  return [
    ...titles,
    ...(list.length > 0 && titles.length > 0 ? ['\n'] : []),
    ...list,
    ...(kernel.length > 0 ? [`\n${foldCode('In the kernel', 'diff', kernel)}`] : []),
  ].join('');
}

function isChange({ role }: Line): boolean {
  return signs[role] !== undefined;
}

/** The changes in the kernel of a block, under its title. */
export function kernelLines(block: Block): readonly string[] {
  const changes = block.filter(isChange);
  const title = block.find(({ role }) => role === 'heading');
  return changes.length === 0 ? [] : [`# ${title?.text ?? ''}`, ...changes.map(kernelLine)];
}

function kernelLine({ role, text }: Line): string {
  return `${signs[role] ?? ''}${text}`;
}

export function bold(text: string): string {
  return `**${escapeMarkdown(text)}**`;
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

/** Says what a "no difference" is about, because a comment on a pull request stands alone. */
export function groundsMarkdown(grounds: readonly string[]): string {
  return grounds.length === 0 ? '' : `\n${listItems(grounds.map(escapeMarkdown))}`;
}

/** Names the flags from kpc.yaml, because they may hide a difference from a reviewer. */
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
