/** A stretch of a file: offsets into its text, `end` not included. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Hands over a file's YAML documents from an offset on, split as kubectl does: at lines that begin with "---". Such a line
 * always ends a document, even inside a quoted text, so no parser is needed. A document keeps its own "---" line, because
 * that may hold the start of its value; but for "---#", which is no marker to a parser. Stretches of blanks and comments are
 * left out; directives stay with what follows them.
 */
export function splitDocuments(text: string, from: number, take: (document: Span) => void): void {
  let start = from;
  /** Up to where what has begun at `start` is known to be directives and comments; `start` where it is not. */
  let read = from;
  let hasDirectives = false;
  const close = (end: number, next: number): void => {
    const kind = contentOf(text, read, end);
    if (kind === 'directives') hasDirectives = true;
    if (kind === 'directives' || (kind === 'nothing' && read > start)) {
      read = end;
      return;
    }
    if (kind === 'value') take({ start, end });
    hasDirectives = false;
    start = read = next;
  };
  findMarkers(text, from, (at) => close(at, text[at + 3] === '#' ? at + 3 : at));
  close(text.length, text.length);
  // Directives without a document are for the parser to refuse.
  if (hasDirectives) take({ start, end: text.length });
}

/**
 * Hands over where lines begin with "---" as a word, from an offset on. A line starts after a line feed only: /^/m would also find one
 * after a carriage return or U+2028.
 */
function findMarkers(text: string, from: number, take: (at: number) => void): void {
  if (from === 0 && /^---(?=[ \t\r\n#]|$)/.test(text)) take(0);
  // It begins with characters, which V8 searches for many at once; few other lines start with dashes.
  const marker = /\n---(?=[ \t\r\n#]|$)/g;
  marker.lastIndex = Math.max(from - 1, 0);
  while (marker.test(text)) take(marker.lastIndex - '---'.length);
}

/** The first word of nearly every document stands at its start, or below its "---". */
const wordFirst = /(?:---\s*)?[A-Za-z]/y;

function contentOf(text: string, start: number, end: number): 'nothing' | 'directives' | 'value' {
  wordFirst.lastIndex = start;
  if (wordFirst.test(text) && wordFirst.lastIndex <= end) return 'value';
  // What ends a line in YAML 1.1: a comment ends there, and what comes after it counts.
  const line = /[^\r\n\u0085\u2028\u2029]*(?:\r\n|[\r\n\u0085\u2028\u2029]|$)/y;
  let directives = false;
  for (let at = start; at < end; at = line.lastIndex) {
    line.lastIndex = at;
    const [full] = line.exec(text) ?? [''];
    if (full === '') break;
    const content = full
      .slice(0, end - at)
      .replace(/^---/, '')
      .replace(/^[ \t\r\n]+/, '');
    if (content.startsWith('%') && at + full.indexOf('%') === at) directives = true;
    else if (content !== '' && !content.startsWith('#')) return 'value';
  }
  return directives ? 'directives' : 'nothing';
}
