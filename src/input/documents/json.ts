import { parse, printParseErrorCode, type ParseError } from 'jsonc-parser';
import { findRepeatedKeys } from '../../base/json/locate.ts';
import type { Span } from './text-file.ts';
import { tooDeep, type SyntaxFault } from './syntax-fault.ts';

/** What is wrong with a JSON text, in the order of the text, and once a line: more has one cause. Empty for what JSON.parse takes. */
export function findJsonFaults(text: string): readonly SyntaxFault[] {
  const errors: ParseError[] = [];
  try {
    parse(text, errors, { disallowComments: true, allowTrailingComma: false });
  } catch (error) {
    // It calls itself for each level.
    if (!(error instanceof RangeError)) throw error;
    return [tooDeep];
  }
  return firstOfLines(errors, text).map(({ error, offset }) => {
    // "CloseBraceExpected" → "close brace expected".
    const reason = printParseErrorCode(error)
      .replace(/(?!^)([A-Z])/g, ' $1')
      .toLowerCase();
    return { offset, code: 'bad-json', arguments: { reason } };
  });
}

function firstOfLines(errors: readonly ParseError[], text: string): readonly ParseError[] {
  return errors.filter(({ offset }, i) => {
    const before = errors[i - 1];
    return before === undefined || text.slice(before.offset, offset).includes('\n');
  });
}

/** Keys that come more than once in one object of the JSON value in a stretch of a text: one fault for each. */
export function findRepeatedJsonKeys(text: string, { start, end }: Span): SyntaxFault[] {
  return findRepeatedKeys(text, start, end).map(({ second, times }) => ({
    offset: second - start,
    code: 'duplicate-key',
    arguments: { times },
  }));
}
