/** What a list of patterns says of a path: undefined for nothing. */
export type Verdict = 'ignored' | 'unignored' | undefined;

/** One character of a name, or `*`. */
type Token = '*' | ((char: string) => boolean);

interface Pattern {
  readonly isNegated: boolean;
  readonly isForFolders: boolean;
  /** What stands between slashes; `**` is any number of names. */
  readonly parts: readonly ('**' | readonly Token[])[];
}

/**
 * Patterns as in .gitignore, in any case. Each is compared in steps that its length and the name's limit, whatever wildcards it
 * has: no regular expression is made of it.
 */
export class IgnorePatterns {
  readonly #patterns: readonly Pattern[];

  constructor(lines: readonly string[]) {
    this.#patterns = lines.flatMap((line) => readPattern(line.toLowerCase()) ?? []);
  }

  /** `path` has slashes, and counts from the folder of the patterns. Nothing in an ignored folder is unignored. */
  test(path: string, isFolder: boolean): Verdict {
    const names = path.toLowerCase().split('/');
    for (let depth = 1; depth < names.length; depth++) {
      if (this.#judge(names.slice(0, depth), true) === 'ignored') return 'ignored';
    }
    return this.#judge(names, isFolder);
  }

  /** The last pattern that fits counts. */
  #judge(names: readonly string[], isFolder: boolean): Verdict {
    const found = this.#patterns.findLast(
      ({ isForFolders, parts }) => (isFolder || !isForFolders) && fits(parts, names, isAnyNames, fitsName),
    );
    if (!found) return undefined;
    return found.isNegated ? 'unignored' : 'ignored';
  }
}

function readPattern(line: string): Pattern | undefined {
  const isNegated = line.startsWith('!');
  const text = withoutEndBlanks(isNegated ? line.slice(1) : line);
  if (text === '' || line.startsWith('#')) return undefined;
  const isForFolders = text.endsWith('/');
  const path = isForFolders ? text.slice(0, -1) : text;
  const parts = path.replace(/^\//, '').split('/');
  // One without a slash fits at any depth, and "a/**" what is in the folder, but not the folder.
  const deep = path.includes('/') ? parts : ['**', ...parts];
  const whole = deep.at(-1) === '**' ? [...deep, '*'] : deep;
  return { isNegated, isForFolders, parts: whole.map((part) => (part === '**' ? part : readTokens(part))) };
}

/** Blanks at the end do not count, unless a backslash is before them. */
function withoutEndBlanks(text: string): string {
  let end = text.length;
  while (text[end - 1] === ' ' && text[end - 2] !== '\\') end--;
  return text.slice(0, end);
}

function readTokens(part: string): readonly Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < part.length; at++) {
    const char = part[at];
    const end = char === '[' ? part.indexOf(']', at + (/^[!^]/.test(part.slice(at + 1, at + 2)) ? 3 : 2)) : -1;
    if (char === '*') tokens.push('*');
    else if (char === '?') tokens.push(() => true);
    else if (end > 0) {
      tokens.push(readClass(part.slice(at + 1, end)));
      at = end;
    } else {
      const literal = char === '\\' ? part[++at] : char;
      tokens.push((other) => other === literal);
    }
  }
  return tokens;
}

/** "a-z_" and "!a-z_", which stand for one character. */
function readClass(text: string): Token {
  const isNegated = /^[!^]/.test(text);
  const content = isNegated ? text.slice(1) : text;
  const ranges: (readonly [string, string])[] = [];
  for (let at = 0; at < content.length; at++) {
    if (content[at] === '\\' && at + 1 < content.length) at++;
    const first = content[at] ?? '';
    const isRange = content[at + 1] === '-' && at + 2 < content.length;
    ranges.push([first, isRange ? (content[at + 2] ?? '') : first]);
    if (isRange) at += 2;
  }
  return (char) => ranges.some(([first, last]) => first <= char && char <= last) !== isNegated;
}

const isAnyNames = (part: Pattern['parts'][number]): boolean => part === '**';

function fitsName(part: Pattern['parts'][number], name: string): boolean {
  return part !== '**' && fits(part, [...name], isAnyCharacters, fitsCharacter);
}

const isAnyCharacters = (token: Token): boolean => token === '*';

const fitsCharacter = (token: Token, char: string): boolean => token !== '*' && token(char);

/**
 * Whether wildcards and what is between them make up all the items. What has fitted up to a wildcard need not be tried
 * another way, so that only the last one is gone back to.
 */
function fits<P, T>(
  pattern: readonly P[],
  items: readonly T[],
  isWildcard: (part: P) => boolean,
  fitsOne: (part: P, item: T) => boolean,
): boolean {
  let [at, item, wildcard, resume] = [0, 0, -1, 0];
  while (item < items.length) {
    const part = pattern[at];
    if (part !== undefined && isWildcard(part)) {
      wildcard = at++;
      resume = item;
    } else if (part !== undefined && fitsOne(part, items[item] as T)) {
      at++;
      item++;
    } else if (wildcard >= 0) {
      at = wildcard + 1;
      item = ++resume;
    } else return false;
  }
  return pattern.slice(at).every(isWildcard);
}
