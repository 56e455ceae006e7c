import { oddSpaces } from '../../base/odd-space.ts';
import type { YamlProblem } from '../../diagnostics/yaml-problem.ts';
import type { SyntaxFault } from '../syntax-fault.ts';

/** What the parser says where lines do not fit together. */
const ofStructure: ReadonlySet<YamlProblem['problem']> = new Set([
  'list-on-this-line',
  'mapping-on-this-line',
  'no-key',
  'no-key-with-colon',
  'no-list-item',
  'no-value',
]);

/** How many lines above the fault a character may stand that breaks them: what it breaks shows a little later. */
const mostLinesAbove = 3;

/** How many lines above are looked at for their indentation. */
const mostIndents = 1000;

const oddSpace = new RegExp(`[${oddSpaces}]`, 'g');

/** A key that begins its line, up to its colon. */
const keyAtStart = /^( *(?:- +)*)[\w./-]+$/;
const keyWithValue = /^( *(?:- +)*)[\w./-]+:[ \t]+[^\s#]/;
const keyWithoutSpace = /^( *(?:- +)*[\w./-]+:)(?![\s/])/;
const noKey = /^( *(?:- +)*)\w[^:#]*$/;
/** A key whose value begins on the next line. */
const keyAlone = /:[ \t\r]*$/;

/** A line of the text and where it starts. */
interface Line {
  readonly text: string;
  readonly start: number;
}

/** The fault as the slip that it comes of, where that can be told: the parser stumbles only over what follows from it. */
export function findSlip(text: string, fault: SyntaxFault): SyntaxFault {
  if (fault.code !== 'bad-yaml' || !ofStructure.has(fault.arguments.problem)) return fault;
  const { offset } = fault;
  return (
    findOddSpace(text, offset) ??
    (fault.arguments.problem === 'no-key-with-colon' ? findMissingSpace(lineAt(text, offset)) : undefined) ??
    (fault.arguments.problem === 'mapping-on-this-line' ? findStart(text, offset) : undefined) ??
    (fault.arguments.problem === 'no-key' || fault.arguments.problem === 'no-list-item'
      ? findOddIndent(text, offset)
      : undefined) ??
    fault
  );
}

function slip(offset: number, problem: YamlProblem): SyntaxFault {
  return { offset, code: 'bad-yaml', arguments: problem };
}

function findOddSpace(text: string, offset: number): SyntaxFault | undefined {
  const last = lineAt(text, offset);
  let { start } = last;
  for (let i = 0; i < mostLinesAbove && start > 0; i++) ({ start } = lineAt(text, start - 1));
  let found: number | undefined;
  for (const { index } of text.slice(start, last.start + last.text.length).matchAll(oddSpace)) {
    if (standsForSpace(text, start + index)) found = start + index;
  }
  if (found === undefined) return undefined;
  return slip(found, { problem: 'odd-space', codePoint: text.codePointAt(found) ?? 0 });
}

/** Whether a character stands where a space means something to YAML: at the start of a line, or behind a colon or a dash. */
function standsForSpace(text: string, offset: number): boolean {
  let at = offset - 1;
  while (text[at] === ' ') at--;
  return at < 0 || /[\n:-]/.test(text[at] ?? '');
}

function findMissingSpace(line: Line): SyntaxFault | undefined {
  const found = keyWithoutSpace.exec(line.text);
  return found ? slip(line.start + (found[1] ?? '').length - 1, { problem: 'no-space-after-colon' }) : undefined;
}

/** A key on a line of its own is taken for more of the line above, where that is no key or stands further to the left. */
function findStart(text: string, offset: number): SyntaxFault | undefined {
  const line = lineAt(text, offset);
  const key = keyAtStart.exec(text.slice(line.start, offset));
  const above = lineAbove(text, line);
  if (!key || !above) return undefined;
  const indent = (key[1] ?? '').length;
  const pair = keyWithValue.exec(above.text);
  if (pair)
    return (pair[1] ?? '').length < indent ? slip(line.start + indent, { problem: 'deeper-than-key' }) : undefined;
  const before = lineAbove(text, above);
  if (before && !keyAlone.test(before.text)) return undefined;
  const lonely = noKey.exec(above.text);
  return (
    findMissingSpace(above) ??
    (lonely ? slip(above.start + (lonely[1] ?? '').length, { problem: 'no-key-with-colon' }) : undefined)
  );
}

/** A line begins a key or an item where no mapping or list above has its keys or items. */
function findOddIndent(text: string, offset: number): SyntaxFault | undefined {
  const line = lineAt(text, offset);
  const indent = offset - line.start;
  if (!/^ *$/.test(line.text.slice(0, indent)) || !/^(?:- |[\w./-]+:[ \t\r]*)/.test(line.text.slice(indent)))
    return undefined;
  const above = lineAbove(text, line);
  const pair = above && keyWithValue.exec(above.text);
  if (pair && (pair[1] ?? '').length < indent) return slip(offset, { problem: 'deeper-than-key' });
  const steps = indentsAbove(text, line);
  return steps.has(indent) ? undefined : slip(offset, { problem: 'odd-indent' });
}

/** Where keys and items begin in the lines above, back to one that begins at the margin. */
function indentsAbove(text: string, from: Line): ReadonlySet<number> {
  const indents = new Set<number>();
  let line = lineAbove(text, from);
  for (let i = 0; line && i < mostIndents; i++) {
    const indent = /^ */.exec(line.text)?.[0].length ?? 0;
    indents.add(indent);
    indents.add(/^ *(?:- +)*/.exec(line.text)?.[0].length ?? 0);
    if (indent === 0) break;
    line = lineAbove(text, line);
  }
  return indents;
}

function lineAt(text: string, offset: number): Line {
  const start = offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
  const end = text.indexOf('\n', offset);
  return { start, text: text.slice(start, end < 0 ? text.length : end) };
}

/** The line above that says something. */
function lineAbove(text: string, { start }: Line): Line | undefined {
  for (let end = start - 1; end >= 0;) {
    const line = lineAt(text, end);
    if (/^[ \t]*[^\s#]/.test(line.text) && !line.text.startsWith('---')) return line;
    end = line.start - 1;
  }
  return undefined;
}
