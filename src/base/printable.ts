/**
 * Characters that a terminal acts on, those that turn the text after them around, and those that are not to be seen: two
 * texts that look the same would differ, and one could hold a text that only a program reads.
 */
export const unprintable = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

/** The start of a command to a CI service: `##[name]` of GitHub and Azure, `##vso[name]` of Azure, `##teamcity[name]`. */
const commandStart = /##([\w.-]*)\[/g;

/**
 * A text from outside as it may be printed on a line: one column for each character, and none that a terminal would
 * act on, that would turn the text around or end the line, or that would make the line a command to a CI service, which
 * reads what is printed in a job: `::name::` at its start, `##[name]`, `##vso[name]` or `##teamcity[name]` anywhere.
 */
export function printable(text: string): string {
  return disarm(text.replaceAll('\t', ' ').replace(unprintable, '·'));
}

/** A line that is no command to GitHub, Azure or TeamCity. */
export function disarm(line: string): string {
  return line.replace(/^(\s*)::/, '$1·:').replace(commandStart, '##$1·');
}

/** As printable, for a text of several lines, which stay lines of their own and keep their tabs. */
export function printableLines(text: string): string {
  return text
    .split('\n')
    .map((line) => disarm(line.replace(unprintable, (found) => (found === '\t' ? found : '·'))))
    .join('\n');
}

/** A character as JSON writes it escaped: a code point beyond U+FFFF becomes two escapes. */
function escapeCharacter(character: string): string {
  return Array.from({ length: character.length }, (_, i) => character.charCodeAt(i))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');
}

/** JSON that means the same, with escapes for all that a terminal or a CI service would act on. */
export function printableJson(json: string): string {
  return json
    .replace(unprintable, (found) => (found === '\n' ? found : escapeCharacter(found)))
    .replace(commandStart, (_, name: string) => `##${name}${escapeCharacter('[')}`);
}

/** How much of a quoted text is shown. */
const longestQuote = 160;

/** A text from outside in quotes, cut if it is long, with escapes for all that printable takes away. */
export function quotePrintable(text: string): string {
  const short = text.length > longestQuote ? `${text.slice(0, longestQuote - 3)}...` : text;
  return printable(JSON.stringify(short).replace(unprintable, escapeCharacter));
}

/** A value from the input, in quotes, short, and without anything that could move a terminal's cursor. */
export function quote(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return JSON.stringify(short).replace(unprintable, escapeCharacter);
}

/** As quote, without the quotes. */
export function escapeText(text: string): string {
  return quote(text).slice(1, -1);
}

/** What a person calls a field: its own name, with the index of a list's item. */
export function fieldName(path: readonly (string | number)[]): string {
  const last = path.at(-1);
  if (last === undefined) return 'the document';
  if (typeof last === 'string') return last;
  const parent = path.at(-2);
  return typeof parent === 'string' ? `${parent}[${last}]` : `[${last}]`;
}
