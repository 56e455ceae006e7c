// Texts as they are printed: nothing in them that a terminal obeys, with counts, lists of words, and columns.

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

/** A whole number with a comma every three digits. Intl does the same, but loading it takes longer than a small run. */
export function formatCount(whole: number): string {
  return String(whole).replace(/\B(?=(?:\d{3}){1,5}$)/g, ',');
}

/** "1 rule", "2,300 rules". */
export function count(number: number, one: string, more = `${one}s`): string {
  return `${formatCount(number)} ${number === 1 ? one : more}`;
}

/** A share between 0 and 1 in words: "33.3%". */
export function percent(share: number): string {
  return `${Number((share * 100).toFixed(1))}%`;
}

/** "a, b and c", or with another word before the last. */
export function joinWords(words: readonly string[], conjunction: 'and' | 'or' = 'and'): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${conjunction} ${words.at(-1)}`;
}

/** The first lines, and how many more there are. If only one more follows, it is there, because the count takes a line too. */
export function cutLines<Line>(lines: readonly Line[], most: number, more: (words: string) => Line): readonly Line[] {
  if (lines.length <= most + 1) return lines;
  return [...lines.slice(0, most), more(`and ${formatCount(lines.length - most)} more`)];
}

const mostShown = 3;

/** The first names of a list: "a, b, c and 4 more". */
export function nameSome(names: readonly string[], most: number = mostShown): string {
  const some = names.slice(0, most).join(', ');
  return names.length > most ? `${some} and ${formatCount(names.length - most)} more` : some;
}

/** How a table is laid out. Columns count from 0. */
export interface TableForm {
  /** Columns of the terminal; undefined if the output is none: then no cell is cut. */
  readonly width: number | undefined;
  /** Relative widths that columns keep when space is short; 1 for those left out. */
  readonly weights: Readonly<Record<number, number>>;
  /** The column of names. They are cut at the start, because their ends say more. */
  readonly names?: number;
  /** Columns that give way before all others. */
  readonly first?: readonly number[];
  /** Columns of lists, of which whole items are left out: "10.96.0.10, +2". An item is never cut. */
  readonly lists?: readonly number[];
}

/** A column is not cut to less than this. */
const leastWidth = 8;

/** Without a terminal, a longer cell only moves the columns behind it in its own row. */
const mostAligned = 60;

const gap = '  ';

/** Cuts and pads cells to the widths of their columns, so that a row fits the terminal. */
export function fitRows(rows: readonly (readonly string[])[], form: TableForm): readonly (readonly string[])[] {
  const { width, names, lists = [] } = form;
  const wanted = rows[0]?.map((_, i) => rows.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), 0)) ?? [];
  const least = wanted.map((_, i) => {
    if (!lists.includes(i)) return leastWidth * (form.weights[i] ?? 1);
    return rows.reduce((most, row) => Math.max(most, cutList(row[i] ?? '', 0).length), 0);
  });
  const widths =
    width === undefined ? wanted.map((each) => Math.min(mostAligned, each)) : fitColumns(wanted, form, least, width);
  const cut = (cell: string, room: number, i: number): string => {
    if (width === undefined || cell.length <= room) return cell;
    if (lists.includes(i)) return cutList(cell, room);
    return i === names ? `…${cell.slice(1 - room)}` : `${cell.slice(0, room - 1)}…`;
  };
  return rows.map((row) => row.map((cell, i) => cut(cell, widths[i] ?? 0, i).padEnd(widths[i] ?? 0)));
}

export function joinCells(cells: readonly string[]): string {
  return cells.join(gap).trimEnd();
}

/** The first items of a list that fit, at least one, and the number of the others. */
function cutList(cell: string, room: number): string {
  const items = cell.split(', ');
  for (let shown = items.length; shown > 1; shown--) {
    const text = shortList(items, shown);
    if (text.length <= room) return text;
  }
  return shortList(items, 1);
}

function shortList(items: readonly string[], shown: number): string {
  const hidden = items.length - shown;
  return `${items.slice(0, shown).join(', ')}${hidden > 0 ? `, +${hidden}` : ''}`;
}

/** The width of each column: what does not fit is taken from those that give way first, then from the widest. */
function fitColumns(
  wanted: readonly number[],
  { weights, first = [] }: TableForm,
  least: readonly number[],
  width: number,
): readonly number[] {
  const widths = [...wanted];
  const all = widths.map((_, i) => i);
  let over = widths.reduce((sum, each) => sum + each, 0) + gap.length * (widths.length - 1) - width;
  for (const columns of [first, all]) {
    const weigh = (i: number): number =>
      (widths[i] ?? 0) <= Math.min(wanted[i] ?? 0, least[i] ?? 0) ? 0 : (widths[i] ?? 0) / (weights[i] ?? 1);
    while (over > 0 && columns.length > 0) {
      const widest = columns.reduce((a, b) => (weigh(b) > weigh(a) ? b : a));
      if (weigh(widest) === 0) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
      over--;
    }
  }
  return widths;
}
