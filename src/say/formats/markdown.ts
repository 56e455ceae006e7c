import { count, printable } from '../../base/printable.ts';
import type { Block, Line } from '../lines.ts';
import { signs } from './text.ts';

/** The most items that a block shows. Further items are folded. */
const mostItems = 6;

/** Formats blocks as a comment on a pull request. The summary comes first; commands and changes to the kernel are folded. */
export function formatMarkdown(blocks: readonly Block[], kernel: readonly Block[] = blocks): string {
  const all = blocks.flat();
  const commands = all.filter(({ role }) => role === 'command').map(({ text }) => text);
  return [
    ...all.filter(({ role }) => role === 'summary').map(({ text }) => `**${escapeMarkdown(text)}**\n`),
    ...blocks.flatMap(formatBlock),
    ...foldCode('Commands that show this', 'sh', commands),
    ...foldCode('In the kernel', 'diff', kernel.flatMap(kernelLines)),
  ].join('\n');
}

function formatBlock(block: Block): readonly string[] {
  const items = block.filter((line) => !apart.has(line.role) && !isKernel(line));
  const title = block.find(({ role }) => role === 'heading');
  const heading = title ? [`### ${escapeMarkdown(title.text)}\n`] : [];
  if (items.length === 0) return block.some(isKernel) ? [] : heading;
  const least = Math.min(...items.map(({ depth }) => depth));
  const list = items.map((item) => `${'  '.repeat(item.depth - least)}- ${itemText(item)}\n`);
  const shown = list.length > mostItems + 1 ? list.slice(0, mostItems) : list;
  const rest = list.slice(shown.length);
  return [
    ...heading,
    shown.join(''),
    ...(rest.length > 0 ? [fold(count(rest.length, 'more', 'more'), rest.join(''))] : []),
  ];
}

/** The roles of lines that are printed outside their block. */
const apart: ReadonlySet<Line['role']> = new Set(['heading', 'summary', 'command']);

const words: { readonly [R in Line['role']]?: string } = { worse: '**worse**: ', better: '**better**: ' };

function itemText({ role, text, name }: Line): string {
  const how = role === 'changed' ? '' : ` ${role}`;
  return (name === undefined ? (words[role] ?? '') : `**${escapeMarkdown(name)}**${how}: `) + escapeMarkdown(text);
}

/** Reports whether the line is a change to a kernel object. */
function isKernel({ role, name }: Line): boolean {
  return name === undefined && (role === 'added' || role === 'removed' || role === 'changed');
}

/** Returns the first kernel change of a block and all lines after it, under the block's title. */
function kernelLines(block: Block): readonly string[] {
  const at = block.findIndex(isKernel);
  const title = block.find(({ role }) => role === 'heading');
  if (at < 0) return [];
  return [`# ${title?.text ?? ''}`, ...block.slice(at).map(({ role, text }) => `${signs[role] ?? ''}${text}`)];
}

/** Returns a folded block of code. Empty if there are no lines. */
export function foldCode(title: string, language: string, code: readonly string[]): readonly string[] {
  return code.length === 0 ? [] : [fold(title, codeBlock(language, code))];
}

/** Formats a block of code. Its fence is longer than any fence in the lines, so that no text from the input can end the block. */
export function codeBlock(language: string, lines: readonly string[]): string {
  const code = lines.map((each) => `${printable(each)}\n`).join('');
  const fence = delimit(code, 3);
  return `${fence}${language}\n${code}${fence}\n`;
}

export function inlineCode(text: string): string {
  const code = printable(text);
  const [delimiter, space] = [delimit(code, 1), code.includes('`') ? ' ' : ''];
  return `${delimiter}${space}${code}${space}${delimiter}`;
}

/** Returns at least `least` backquotes, and always more than the longest run of backquotes in the text. */
function delimit(text: string, least: number): string {
  const longest = [...text.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 0);
  return '`'.repeat(Math.max(least, longest + 1));
}

function fold(title: string, content: string): string {
  return `<details><summary>${escapeMarkdown(title)}</summary>\n\n${content}\n</details>\n`;
}

/** Formats a list of items that are already Markdown. */
export function listItems(items: readonly string[]): string {
  return items.map((item) => `- ${item}\n`).join('');
}

/** Escapes names and values from users. They must not become links, tags, headings or separate lines. */
export function escapeMarkdown(text: string): string {
  return printable(text).replace(/[\\`*_[\]<>|#@]/g, '\\$&');
}
