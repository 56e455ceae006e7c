/**
 * Characters that a terminal acts on, that reverse the text after them, or that are invisible. With invisible ones,
 * two texts that look the same could differ, or a text could hide one that only programs read.
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

/** Makes a line harmless that GitHub, Azure or TeamCity would take for a command. */
export function disarm(line: string): string {
  return line.replace(/^(\s*)::/, '$1·:').replace(commandStart, '##$1·');
}

/** As printable, for several lines: keeps line breaks and tabs. */
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

/** Equal JSON, with everything escaped that a terminal or a CI service would act on. */
export function printableJson(json: string): string {
  return json
    .replace(unprintable, (found) => (found === '\n' ? found : escapeCharacter(found)))
    .replace(commandStart, (_, name: string) => `##${name}${escapeCharacter('[')}`);
}

const longestQuote = 160;

/** Quotes a text from outside: cut if it is long, with escapes for what printable replaces. */
export function quotePrintable(text: string): string {
  const short = text.length > longestQuote ? `${text.slice(0, longestQuote - 3)}...` : text;
  return printable(JSON.stringify(short).replace(unprintable, escapeCharacter));
}

/** Quotes a value of the input: short, and with nothing that could move a terminal's cursor. */
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

/**
 * A text as one word of a command that a person may paste into a shell, and that printable leaves as it is: what printable would
 * replace is in a $'…', which shells read the escapes of.
 */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (printable(text) === text) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = text.replace(/['\\]/g, '\\$&').replace(unprintable, escapeBytes);
  return `$'${escaped.replace(commandStart, (found) => `${found.slice(0, -1)}${escapeBytes('[')}`)}'`;
}

/** The bytes of a character in UTF-8, in octal: an escape of three digits ends there in every shell. */
function escapeBytes(character: string): string {
  return Array.from(new TextEncoder().encode(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
}

/** A path as a word of a command that is no flag there. "-" stays: it is standard input. */
export function pathWord(path: string): string {
  return /^-./.test(path) ? `./${path}` : path;
}
