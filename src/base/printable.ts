/** Characters that control a terminal, reverse text, or are invisible and so can hide differences. */
export const unprintable = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

/** Matches the start of a command to a CI service: `##[name]` of GitHub and Azure, `##vso[name]` of Azure, `##teamcity[name]`. */
const commandStart = /##([\w.-]*)\[/g;

/**
 * Makes a text from outside safe to print on a line. Replaces characters that control a terminal, reverse text or end the line, and text
 * that commands a CI service (`::name::` at the start, `##[name]`, `##vso[name]` or `##teamcity[name]` anywhere).
 */
export function printable(text: string): string {
  return disarm(text.replaceAll('\t', ' ').replace(unprintable, '·'));
}

export function disarm(line: string): string {
  return line.replace(/^(\s*)::/, '$1·:').replace(commandStart, '##$1·');
}

/** Like printable, for several lines. Keeps line breaks and tabs. */
export function printableLines(text: string): string {
  return text
    .split('\n')
    .map((line) => disarm(line.replace(unprintable, (found) => (found === '\t' ? found : '·'))))
    .join('\n');
}

function escapeCharacter(character: string): string {
  return Array.from({ length: character.length }, (_, i) => character.charCodeAt(i))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');
}

/** Returns equivalent JSON in which all text that a terminal or CI service would act on is escaped. */
export function printableJson(json: string): string {
  return json
    .replace(unprintable, (found) => (found === '\n' ? found : escapeCharacter(found)))
    .replace(commandStart, (_, name: string) => `##${name}${escapeCharacter('[')}`);
}

const longestQuote = 160;

/** Quotes a text from outside, shortened to 160 characters. Escapes the characters that printable would replace. */
export function quotePrintable(text: string): string {
  const short = text.length > longestQuote ? `${text.slice(0, longestQuote - 3)}...` : text;
  return printable(JSON.stringify(short).replace(unprintable, escapeCharacter));
}

export function quote(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return JSON.stringify(short).replace(unprintable, escapeCharacter);
}

export function escapeText(text: string): string {
  return quote(text).slice(1, -1);
}

export function fieldName(path: readonly (string | number)[]): string {
  const last = path.at(-1);
  if (last === undefined) return 'the document';
  if (typeof last === 'string') return last;
  const parent = path.at(-2);
  return typeof parent === 'string' ? `${parent}[${last}]` : `[${last}]`;
}

/** Returns a text as one shell word that is safe to print and paste. Uses $'…' with escapes for characters that printable would replace. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (printable(text) === text) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = text.replace(/['\\]/g, '\\$&').replace(unprintable, escapeBytes);
  return `$'${escaped.replace(commandStart, (found) => `${found.slice(0, -1)}${escapeBytes('[')}`)}'`;
}

/** Writes UTF-8 bytes as escapes of three octal digits, because every shell ends an octal escape after three. */
function escapeBytes(character: string): string {
  return Array.from(new TextEncoder().encode(character), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
}

/** Turns a path that looks like a flag into "./-x". "-" stays, because it is standard input. */
export function pathWord(path: string): string {
  return /^-./.test(path) ? `./${path}` : path;
}

/** Formats a whole number with a comma every three digits. Does not use Intl, because loading it takes longer than a small run of kpc. */
export function formatCount(whole: number): string {
  return String(whole).replace(/\B(?=(?:\d{3}){1,5}$)/g, ',');
}

export function count(number: number, one: string, more = pluralOf(one)): string {
  return `${formatCount(number)} ${number === 1 ? one : more}`;
}

/** Returns "Deployments", "NetworkPolicies", "Ingresses" or "Services of v2". */
export function pluralOf(name: string): string {
  const [kind = '', ...version] = name.split(/(?= of )/);
  const plural = kind.replace(/([^aeiou])y$/, '$1ie').replace(/(ss|x|ch|sh)$/, '$1e');
  return [plural.replace(/s?$/, 's'), ...version].join('');
}

export function percent(share: number): string {
  return `${Number((share * 100).toFixed(1))}%`;
}

export function joinWords(words: readonly string[], conjunction: 'and' | 'or' = 'and'): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${conjunction} ${words.at(-1)}`;
}

/** Joins phrases with semicolons if one of them is a list with commas. */
export function joinPhrases(phrases: readonly string[]): string {
  return phrases.join(phrases.some((phrase) => phrase.includes(',')) ? '; ' : ', ');
}

export function joinWays(ways: readonly string[]): string {
  return ways.join(', or ');
}

export interface TableForm {
  /** The terminal's width in columns; undefined for other output. Cells are then not cut. */
  readonly width: number | undefined;
  /** Relative widths of columns when space is short; 1 by default. */
  readonly weights: Readonly<Record<number, number>>;
  /** The column of names, which are cut at the start because their ends say more. */
  readonly names?: number;
  /** Columns that shrink before all others. */
  readonly first?: readonly number[];
  /** Columns of lists, which are cut by whole items: "10.96.0.10, +2". */
  readonly lists?: readonly number[];
}

const leastWidth = 8;

/** The widest cell to align without a terminal. A longer cell only shifts its own row. */
const mostAligned = 60;

const gap = '  ';

export function fitRows(rows: readonly (readonly string[])[], form: TableForm): readonly (readonly string[])[] {
  const { width, names, lists = [] } = form;
  const wanted = rows[0]?.map((_, i) => rows.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), 0)) ?? [];
  const least = wanted.map((_, i) => {
    if (!lists.includes(i)) return leastWidth * (form.weights[i] ?? 1);
    return rows.reduce((most, row) => Math.max(most, shortenCell(row[i] ?? '', 0).length), 0);
  });
  const widths =
    width === undefined ? wanted.map((each) => Math.min(mostAligned, each)) : fitColumns(wanted, form, least, width);
  const cut = (cell: string, room: number, i: number): string => {
    if (width === undefined || cell.length <= room) return cell;
    if (lists.includes(i)) return shortenCell(cell, room);
    return i === names ? `…${cell.slice(1 - room)}` : `${cell.slice(0, room - 1)}…`;
  };
  return rows.map((row) => row.map((cell, i) => cut(cell, widths[i] ?? 0, i).padEnd(widths[i] ?? 0)));
}

export function joinCells(cells: readonly string[]): string {
  return cells.join(gap).trimEnd();
}

function shortenCell(cell: string, room: number): string {
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
