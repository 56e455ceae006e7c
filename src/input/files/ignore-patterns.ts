export type IgnoreDecision = 'ignored' | 'unignored' | undefined;

/** Matches a sequence of items. An undefined part matches any number of items. */
type Glob<Item> = readonly (((item: Item) => boolean) | undefined)[];

interface Pattern {
  readonly isNegated: boolean;
  readonly isForFolders: boolean;
  readonly names: Glob<string>;
}

/** Patterns as in .gitignore, ignoring case. Uses no regular expressions, so that the steps are bounded by pattern and name. */
export class IgnorePatterns {
  readonly #patterns: readonly Pattern[];

  constructor(lines: readonly string[]) {
    this.#patterns = lines.flatMap((line) => readPattern(line.toLowerCase()) ?? []);
  }

  /** `path` has slashes and is relative to the patterns' folder. Nothing in an ignored folder can be unignored. */
  test(path: string, isFolder: boolean): IgnoreDecision {
    const names = path.toLowerCase().split('/');
    for (let depth = 1; depth < names.length; depth++) {
      if (this.#judge(names.slice(0, depth), true) === 'ignored') return 'ignored';
    }
    return this.#judge(names, isFolder);
  }

  #judge(path: readonly string[], isFolder: boolean): IgnoreDecision {
    const found = this.#patterns.findLast(
      ({ isForFolders, names }) => (isFolder || !isForFolders) && fitsGlob(names, path),
    );
    return found && (found.isNegated ? 'unignored' : 'ignored');
  }
}

function readPattern(line: string): Pattern | undefined {
  const isNegated = line.startsWith('!');
  // Trailing blanks do not count, except after a backslash.
  let end = line.length;
  while (line[end - 1] === ' ' && line[end - 2] !== '\\') end--;
  const text = line.slice(isNegated ? 1 : 0, end);
  if (text === '' || line.startsWith('#')) return undefined;
  const isForFolders = text.endsWith('/');
  const path = isForFolders ? text.slice(0, -1) : text;
  const parts = path.replace(/^\//, '').split('/');
  // A pattern without a slash matches at any depth. "a/**" matches what is in the folder, but not the folder.
  const deep = path.includes('/') ? parts : ['**', ...parts];
  const whole = deep.at(-1) === '**' ? [...deep, '*'] : deep;
  return { isNegated, isForFolders, names: whole.map((part) => (part === '**' ? undefined : readNamePattern(part))) };
}

/** Parses the pattern for one name: characters (some escaped), "?", "*", and classes such as "[!a-z_]". */
function readNamePattern(pattern: string): (name: string) => boolean {
  const tokens = pattern.matchAll(/\[([!^]?)(\]?[^\]]*)\]|\\?(.)/gs);
  const glob = Array.from(tokens, ([token, negated = '', members, char]) => {
    if (token === '*') return undefined;
    if (token === '?') return () => true;
    if (members === undefined) return (other: string) => other === char;
    const ranges = [...members.matchAll(/\\?(.)(?:-(.))?/gs)];
    return (other: string) =>
      ranges.some(([, first = '', last = first]) => first <= other && other <= last) === (negated === '');
  });
  return (name) => fitsGlob(glob, [...name]);
}

/** Greedy. Backtracking to the last wildcard is enough. */
function fitsGlob<Item>(glob: Glob<Item>, items: readonly Item[]): boolean {
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
