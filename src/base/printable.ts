/** Characters that a terminal acts on, and those that turn the text after them around. */
export const unprintable = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/**
 * A text from outside as it may be printed on a line: one column for each character, and none that a terminal would
 * act on, that would turn the text around or end the line, or that would make the line a command to GitHub, which reads
 * what is printed in a workflow: `::name::` at its start, `##[name]` anywhere.
 */
export function printable(text: string): string {
  return disarm(text.replaceAll('\t', ' ').replace(unprintable, '·'));
}

/** A line that is no command to GitHub. */
export function disarm(line: string): string {
  return line.replace(/^(\s*)::/, '$1·:').replaceAll('##[', '##·');
}

/** As printable, for a text of several lines, which stay lines of their own and keep their tabs. */
export function printableLines(text: string): string {
  return text
    .split('\n')
    .map((line) => disarm(line.replace(unprintable, (found) => (found === '\t' ? found : '·'))))
    .join('\n');
}

/** JSON that means the same, with escapes for all that a terminal or GitHub would act on. */
export function printableJson(json: string): string {
  const escape = (found: string): string => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return json
    .replace(unprintable, (found) => (found === '\n' ? found : escape(found)))
    .replaceAll('##[', `##${escape('[')}`);
}

/** How much of a quoted text is shown. */
const longestQuote = 160;

/** A text from outside in quotes, cut where it is long, with escapes for all that printable takes away. */
export function quotePrintable(text: string): string {
  const short = text.length > longestQuote ? `${text.slice(0, longestQuote - 3)}...` : text;
  const quoted = JSON.stringify(short).replace(
    unprintable,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return printable(quoted);
}
