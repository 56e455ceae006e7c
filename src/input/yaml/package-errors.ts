import type { YAMLParseError } from 'yaml';
import type { YamlProblem } from '../../diagnostics/yaml-problem.ts';
import { refuse, refuseTab } from '../syntax-fault.ts';

/** What the package says, by its code and words, and what that means to those who write manifests. */
const problems: readonly (readonly [says: RegExp, problem: YamlProblem])[] = [
  [/^MISSING_CHAR Comments/, { problem: 'no-space-before-comment' }],
  [/^MISSING_CHAR Implicit map keys|^KEY_OVER/, { problem: 'no-key-with-colon' }],
  [/^MISSING_CHAR (?:Missing , .*flow seq|Flow seq)/, { problem: 'no-comma', sign: ']' }],
  [/^MISSING_CHAR (?:Missing , .*flow map|Flow map)/, { problem: 'no-comma', sign: '}' }],
  [/^MISSING_CHAR Sequence item|^BAD_INDENT All sequence/, { problem: 'no-list-item' }],
  [/^MISSING_CHAR Tags and anchors/, { problem: 'odd-tag' }],
  [/^MISSING_CHAR Block coll|^BLOCK_AS_IMPLICIT_KEY Nested|^MULTILINE/, { problem: 'mapping-on-this-line' }],
  [/^BAD_INDENT All mapping|^BLOCK_AS_IMPLICIT_KEY/, { problem: 'no-key' }],
  [/^BAD_INDENT Flow seq/, { problem: 'flow-indent', sign: ']' }],
  [/^BAD_INDENT Flow map/, { problem: 'flow-indent', sign: '}' }],
  [/seq-(?:item-)?ind/, { problem: 'list-on-this-line' }],
  [/^UNEXPECTED_TOKEN .*at node end/, { problem: 'text-after-value' }],
  [/^UNEXPECTED_TOKEN Block scalar header/, { problem: 'text-after-block-sign' }],
  [/^TAG_RESOLVE/, { problem: 'odd-tag' }],
];

/** Refuses a text because of the first of the package's errors, if there is any. */
export function refuseError(text: string, parts: readonly { readonly errors: readonly YAMLParseError[] }[]): void {
  let first: YAMLParseError | undefined;
  for (const { errors } of parts) {
    for (const error of errors) if (!first || error.pos[0] < first.pos[0]) first = error;
  }
  if (!first) return;
  const { code, message, pos } = first;
  const [start, end] = pos;
  // kubectl reads up to a line that begins further to the left than the document.
  if (indentAt(text, skipBlanks(text, start)) < indentAt(text, skipBlanks(text, 0)))
    refuse(start, { problem: 'document-ended' });
  if (code === 'TAB_AS_INDENT') refuseTab(start);
  if (code === 'BAD_SCALAR_START') refuse(start, { problem: 'first-character', character: text.charAt(start) });
  if (code === 'BAD_DQ_ESCAPE') refuse(start, { problem: 'escape', escape: text.slice(start, start + 2) });
  const [, problem] = problems.find(([says]) => says.test(`${code} ${message}`)) ?? [];
  // The package says the same of a bracket that is not closed.
  if (problem?.problem === 'flow-indent' && !text.includes(problem.sign, start))
    refuse(start, { problem: 'no-comma', sign: problem.sign });
  let offset = start;
  // The package means the key that has no place there, or its value; its colon shows what it is.
  if (problem?.problem === 'mapping-on-this-line')
    offset = find(/:(?=\s|$)/g, text, code.startsWith('MULTI') ? end : start);
  // It means where the last value ends, or the line begins.
  if (problem?.problem === 'no-key' || problem?.problem === 'no-list-item') offset = skipBlanks(text, start);
  refuse(offset, problem ?? { problem: 'unexpected' });
}

function find(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? from;
}

/** Moves over white space and comments. */
function skipBlanks(text: string, from: number): number {
  const blanks = /(?:\s|#[^\n]*(?:\n|$))*/y;
  blanks.lastIndex = from;
  return from + (blanks.exec(text)?.[0].length ?? 0);
}

/** How far the line of an offset is indented. */
function indentAt(text: string, offset: number): number {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const indent = / */y;
  indent.lastIndex = start;
  return indent.exec(text)?.[0].length ?? 0;
}
