import { Lexer } from 'yaml';
import { createLenientLexer, scalarSign, signs } from './compose.ts';

export interface Unclosed {
  readonly sign: string;
  readonly offset: number;
}

const closers: ReadonlyMap<string, string> = new Map([
  ['{', '}'],
  ['[', ']'],
]);

/** The most brackets to report, because further ones have the same cause. */
const mostBrackets = 3;

/**
 * Finds unclosed brackets or quotes, which parsers notice late. If a quote is unclosed, returns only the quote, because it hides or fakes
 * brackets.
 */
export function findUnclosed(text: string): readonly Unclosed[] {
  if (text.length > longestText) return [];
  const quote = findUnclosedQuote(text);
  return quote ? [quote] : findUnclosedBrackets(text);
}

/**
 * Finds a quote that never ends, or that ends where another should begin. In the second case a word follows, and the line has an odd number
 * of quotes.
 */
function findUnclosedQuote(text: string): Unclosed | undefined {
  for (const { source, offset, isScalar } of lexemes(text, new Lexer())) {
    const sign = source.charAt(0);
    if (isScalar || (sign !== '"' && sign !== "'")) continue;
    const end = offset + source.length;
    if (source.length === 1 || !source.endsWith(sign)) {
      const next = text.indexOf(sign, end);
      // go-yaml continues the quote even over lines that are indented no deeper than its key.
      return next < 0 || isInWord(text, next + 1) ? { sign, offset } : undefined;
    }
    if (!isInWord(text, end)) continue;
    const [line = ''] = text.slice(offset, Math.max(end, offset + longestLine)).split('\n', 1);
    return line.split(sign).length % 2 === 0 ? { sign, offset } : undefined;
  }
  return undefined;
}

function isInWord(text: string, offset: number): boolean {
  return /[\p{L}\p{N}]/u.test(text.charAt(offset));
}

/** Texts longer than this are machine-made and take seconds to scan, so they are not searched. */
const longestText = 200_000;

/** People do not write longer lines. */
const longestLine = 1000;

function findUnclosedBrackets(text: string): readonly Unclosed[] {
  const open: Unclosed[] = [];
  for (const { source: sign, offset, isScalar } of lexemes(text, createLenientLexer())) {
    if (isScalar) continue;
    if (closers.has(sign)) open.push({ sign, offset });
    if (sign !== '}' && sign !== ']') continue;
    const last = open.pop();
    if (!last) return [];
    if (closers.get(last.sign) !== sign) return [last];
  }
  return open.slice(-mostBrackets);
}

interface Lexeme {
  readonly source: string;
  readonly offset: number;
  readonly isScalar: boolean;
}

function* lexemes(text: string, lexer: Lexer): Generator<Lexeme> {
  let offset = 0;
  let isScalar = false;
  for (const source of lexer.lex(text)) {
    const isSign = signs.has(source);
    if (!isSign) {
      yield { source, offset, isScalar };
      offset += source.length;
    }
    isScalar = source === scalarSign;
  }
}
