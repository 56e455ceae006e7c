/** A stretch of a file: offsets into its text, `end` not included. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Splits a file into its YAML documents at lines that begin with "---" or are "...". Such a line always ends a
 * document, even inside a quoted text, so no parser is needed. A document keeps its own "---" line, because that may
 * hold the start of its value. Stretches of blanks and comments are left out; directives stay with what follows them.
 */
export function splitDocuments(text: string): Span[] {
  const spans: Span[] = [];
  let start = 0;
  /** Up to where what has begun at `start` is known to be directives and comments; `start` where it is not. */
  let read = 0;
  const close = (end: number, next: number): void => {
    const kind = contentOf(text, read, end);
    if (kind === 'directives' || (kind === 'nothing' && read > start)) {
      read = end;
      return;
    }
    if (kind === 'value') spans.push({ start, end });
    start = read = next;
  };
  // A line starts after a line feed only: /^/m would also find one after a carriage return or U+2028. What follows "..." on
  // its line can be a comment; anything else is left to the parser, which refuses it.
  const marker = /(?<![^\n])(?:---(?=[ \t\r\n]|$)|\.\.\.(?=[ \t]*\r?(?:\n|$)|[ \t]+#))/g;
  // Most documents hold no other line that starts with a dash or a dot, so a search for the marker is all there is.
  for (let match = marker.exec(text); match; match = marker.exec(text)) {
    const isEnd = match[0] === '...';
    close(match.index, isEnd ? match.index + 3 : match.index);
  }
  close(text.length, text.length);
  return spans;
}

/** The first word of nearly every document stands at its start, or below its "---". */
const wordFirst = /(?:---\s*)?[A-Za-z]/y;

function contentOf(text: string, start: number, end: number): 'nothing' | 'directives' | 'value' {
  wordFirst.lastIndex = start;
  if (wordFirst.test(text) && wordFirst.lastIndex <= end) return 'value';
  const line = /[^\r\n]*(?:\r\n|\r|\n|$)/y;
  let directives = false;
  for (let at = start; at < end; at = line.lastIndex) {
    line.lastIndex = at;
    const [full] = line.exec(text) ?? [''];
    if (full === '') break;
    const content = full
      .slice(0, end - at)
      .replace(/^---/, '')
      .trimStart();
    if (content.startsWith('%') && at + full.indexOf('%') === at) directives = true;
    else if (content !== '' && !content.startsWith('#')) return 'value';
  }
  return directives ? 'directives' : 'nothing';
}
