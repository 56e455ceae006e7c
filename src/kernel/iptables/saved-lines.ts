import { endOfQuoted } from '../../base/end-of-quoted.ts';

/** A rule as iptables-save and iptables -S print it. */
const ruleLine = /^(?:\[\d+:\d+\] )?-[AI] /;

/** In characters. Comments have up to 255, and no other quoted text is longer. */
const longestQuoted = 1024;

/**
 * Joins lines that iptables-save split inside quotes: a comment may hold any text, even a line "COMMIT" or "*nat". A quote that
 * is not closed soon does not count.
 */
export function joinQuotedLines(lines: readonly string[]): readonly string[] {
  return [...savedLines(lines.join('\n'))];
}

/** Like joinQuotedLines, but line by line over a text. `clean` strips from a line what does not belong to it. */
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

/** Whether a quote in the line is not closed. */
export function hasOpenQuote(line: string): boolean {
  return findOpenQuote(line) >= 0;
}

/** The position of a quote that is not closed, or -1. iptables escapes quotes and backslashes inside quotes. */
function findOpenQuote(line: string): number {
  const quote = /(?<=[ \t])"/g;
  for (let found = quote.exec(line); found; found = quote.exec(line)) {
    const end = endOfQuoted(line, found.index);
    if (end === undefined) return found.index;
    quote.lastIndex = end;
  }
  return -1;
}
