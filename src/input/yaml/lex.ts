import { Lexer } from 'yaml';
import { refuse } from '../syntax-fault.ts';

/** A piece of a text. A sign of the lexer for the parser is a control character, and stands nowhere in the text. */
export interface Lexeme {
  readonly source: string;
  readonly offset: number;
}

/** A plain scalar or a block of text follows. */
export const scalarSign = '\u001F';
const signs: ReadonlySet<string> = new Set(['\u0002', '\u0018', scalarSign]);

/** How many characters may be read again because of quotes that the package ends too early. */
const mostReread = 2_000_000;

/** In brackets, a colon before a bracket or a comma ends a word to the package, as in [2001:db8::]. */
const colonsInWord = /(?<=[^\s,[\]{}"':]):+(?=[,[\]{}])/g;

/**
 * Cuts a text into lexemes as go-yaml does, with the lexer of the package: where that would cut it otherwise, it gets a
 * copy of the text with other characters in those places. Throws a Refusal for quotes without an end.
 */
export function* lex(text: string): Generator<Lexeme> {
  let copy = text.replaceAll(colonsInWord, (colons) => 'x'.repeat(colons.length));
  let taken = 0;
  let reread = 0;
  for (let ended = false; !ended;) {
    ended = true;
    let offset = 0;
    let count = 0;
    for (const piece of new Lexer().lex(copy)) {
      const isSign = signs.has(piece);
      const end = offset + (isSign ? 0 : piece.length);
      const quoteEnd = /^["']/.test(piece) ? endOfQuotes(text, offset) : end;
      if (quoteEnd > end) {
        // The lines in quotes are not indented deeper than what they belong to: in one line they need not be.
        copy = `${copy.slice(0, offset + 1)}${'x'.repeat(quoteEnd - offset - 2)}${copy.slice(quoteEnd - 1)}`;
        reread += quoteEnd;
        if (reread > mostReread) refuse(offset, { problem: 'quote-indent' });
        ended = false;
        break;
      }
      if (count++ >= taken) {
        taken++;
        yield { source: isSign ? piece : text.slice(offset, end), offset };
      }
      offset = end;
    }
  }
}

/** Where the text in quotes from an offset on ends. */
function endOfQuotes(text: string, start: number): number {
  const isDouble = text.charAt(start) === '"';
  const stop = isDouble ? /["\\]|(?<=\n)(?:---|\.\.\.)\s/g : /'|(?<=\n)(?:---|\.\.\.)\s/g;
  stop.lastIndex = start + 1;
  for (;;) {
    const [found] = stop.exec(text) ?? [];
    if (found === undefined || found.length > 1) refuse(start, { problem: 'open-quote' });
    if (found === '\\' || (found === "'" && text.charAt(stop.lastIndex) === "'")) stop.lastIndex++;
    else return stop.lastIndex;
  }
}
