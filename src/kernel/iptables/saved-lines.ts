import { endOfQuoted } from '../../base/end-of-quoted.ts';

/** A line of a rule, as iptables-save and iptables -S print it. */
const ruleLine = /^(?:\[\d+:\d+\] )?-[AI] /;

/** Characters: comments have up to 255, and no other text of a rule has more. */
const longestQuoted = 1024;

/**
 * Joins the lines of what iptables-save printed where a line end is inside quotes: a comment may hold any text, "COMMIT" and "*nat"
 * in lines of their own too. A quote that is not closed soon is none.
 */
export function joinQuotedLines(lines: readonly string[]): readonly string[] {
  return [...savedLines(lines.join('\n'))];
}

/** The same of a text, one after the other. `clean` gives a line without what is no part of it. */
export function* savedLines(text: string, clean: (line: string) => string = (line) => line): Generator<string, void> {
  for (let at = 0; at <= text.length;) {
    const first = lineEnd(text, at);
    let line = clean(text.slice(at, first));
    let end = first;
    if (line.includes('"') && ruleLine.test(line.trimStart())) {
      let whole = line;
      let open = findOpenQuote(whole);
      while (open >= 0 && end < text.length && whole.length - open < longestQuoted) {
        const start = end + 1;
        end = lineEnd(text, start);
        whole += `\n${clean(text.slice(start, end))}`;
        open = findOpenQuote(whole);
      }
      if (open < 0) line = whole;
      else end = first;
    }
    yield line;
    at = end + 1;
  }
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

/** Whether a quoted word of a line has no end in it. */
export function hasOpenQuote(line: string): boolean {
  return findOpenQuote(line) >= 0;
}

/** Where a quoted word begins that has no end, or -1. iptables escapes quotes and backslashes in it by a backslash. */
function findOpenQuote(line: string): number {
  const quote = /(?<=[ \t])"/g;
  for (let found = quote.exec(line); found; found = quote.exec(line)) {
    const end = endOfQuoted(line, found.index);
    if (end === undefined) return found.index;
    quote.lastIndex = end;
  }
  return -1;
}
