/** What a list of patterns says of a path: undefined for nothing. */
export type IgnoreDecision = 'ignored' | 'unignored' | undefined;

/** What each item in a row must be; undefined means any number of any items. */
type Glob<Item> = readonly (((item: Item) => boolean) | undefined)[];

interface Pattern {
  readonly isNegated: boolean;
  readonly isForFolders: boolean;
  /** The names that make up a path. */
  readonly names: Glob<string>;
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
  test(path: string, isFolder: boolean): IgnoreDecision {
    const names = path.toLowerCase().split('/');
    for (let depth = 1; depth < names.length; depth++) {
      if (this.#judge(names.slice(0, depth), true) === 'ignored') return 'ignored';
    }
    return this.#judge(names, isFolder);
  }

  /** The last pattern that fits counts. */
  #judge(path: readonly string[], isFolder: boolean): IgnoreDecision {
    const found = this.#patterns.findLast(
      ({ isForFolders, names }) => (isFolder || !isForFolders) && fits(names, path),
    );
    return found && (found.isNegated ? 'unignored' : 'ignored');
  }
}

function readPattern(line: string): Pattern | undefined {
  const isNegated = line.startsWith('!');
  // Blanks at the end do not count, unless a backslash is before them.
  let end = line.length;
  while (line[end - 1] === ' ' && line[end - 2] !== '\\') end--;
  const text = line.slice(isNegated ? 1 : 0, end);
  if (text === '' || line.startsWith('#')) return undefined;
  const isForFolders = text.endsWith('/');
  const path = isForFolders ? text.slice(0, -1) : text;
  const parts = path.replace(/^\//, '').split('/');
  // One without a slash fits at any depth, and "a/**" what is in the folder, but not the folder.
  const deep = path.includes('/') ? parts : ['**', ...parts];
  const whole = deep.at(-1) === '**' ? [...deep, '*'] : deep;
  return { isNegated, isForFolders, names: whole.map((part) => (part === '**' ? undefined : readName(part))) };
}

/** A pattern of one name: plain characters, perhaps behind a backslash, "?", "*", and classes such as "[!a-z_]". */
function readName(pattern: string): (name: string) => boolean {
  const tokens = pattern.matchAll(/\[([!^]?)(\]?[^\]]*)\]|\\?(.)/gs);
  const glob = Array.from(tokens, ([token, negated = '', members, char]) => {
    if (token === '*') return undefined;
    if (token === '?') return () => true;
    if (members === undefined) return (other: string) => other === char;
    const ranges = [...members.matchAll(/\\?(.)(?:-(.))?/gs)];
    return (other: string) =>
      ranges.some(([, first = '', last = first]) => first <= other && other <= last) === (negated === '');
  });
  return (name) => fits(glob, [...name]);
}

/**
 * Whether a glob makes up all the items. What has fitted up to a wildcard need not be tried another way, so that only the
 * last one is gone back to.
 */
function fits<Item>(glob: Glob<Item>, items: readonly Item[]): boolean {
  let [at, item, wildcard, resume] = [0, 0, -1, 0];
  while (item < items.length) {
    const part = glob[at];
    if (at < glob.length && part === undefined) {
      wildcard = at++;
      resume = item;
    } else if (part?.(items[item] as Item)) {
      at++;
      item++;
    } else if (wildcard >= 0) {
      at = wildcard + 1;
      item = ++resume;
    } else return false;
  }
  return glob.slice(at).every((part) => part === undefined);
}
