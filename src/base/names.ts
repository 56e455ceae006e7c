/** Returns the last part of a path: "a/b.yaml" → "b.yaml". Only parses text, because these paths are names in messages. */
export function baseName(path: string): string {
  return partsOf(path).at(-1) ?? '';
}

/** Returns the folder of a file, or "." without one: "a/b.yaml" → "a". */
export function folderOf(path: string): string {
  const end = path.lastIndexOf('/');
  return end > 0 ? path.slice(0, end) : end === 0 ? '/' : '.';
}

/**
 * Returns a path relative to a folder above it: "./a" and "a/b/c.yaml" → "b/c.yaml". Returns '' for the folder itself and for paths outside
 * it.
 */
export function pathBelow(folder: string, path: string): string {
  const [outer, inner] = [partsOf(folder), partsOf(path)];
  const isInside = folder.startsWith('/') === path.startsWith('/') && outer.every((part, i) => part === inner[i]);
  return isInside && inner[outer.length] !== '..' ? inner.slice(outer.length).join('/') : '';
}

/**
 * Resolves a path relative to a folder: "a/b" and "../c.yaml" → "a/c.yaml". Returns '' if the result is the folder in which both paths
 * start.
 */
export function resolvePath(folder: string, path: string): string {
  const isAbsolute = path.startsWith('/');
  const parts: string[] = [];
  for (const part of [...(isAbsolute ? [] : partsOf(folder)), ...partsOf(path)]) {
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else parts.push(part);
  }
  return (isAbsolute || folder.startsWith('/') ? '/' : '') + parts.join('/');
}

function partsOf(path: string): readonly string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}

export const goldenHead = 'golden.json';

export const bundleHead = 'manifest.json';

export const networkFile = 'network.txt';

export const kpcYaml = 'kpc.yaml';

const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const labelValue = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

export type NameRule = 'label' | 'subdomain';

/** Applies the API server's rule for a DNS label (63 characters) or a DNS subdomain (253 characters). */
export function isName(text: string, rule: NameRule): boolean {
  return rule === 'label' ? label.test(text) : text.length <= 253 && subdomain.test(text);
}

export function isLabelValue(text: string): boolean {
  return labelValue.test(text);
}

const longestInterface = 15;

export function isInterfaceName(text: string): boolean {
  return hasInterfaceShape(text, longestInterface);
}

/** Reports whether a rule can match interfaces by this prefix. The wildcard after the prefix takes one of the name's bytes. */
export function isInterfacePrefix(text: string): boolean {
  return hasInterfaceShape(text, longestInterface - 1);
}

/** Reports whether a text can be an interface name. The kernel counts bytes. For nft, a final `*` is a wildcard. */
function hasInterfaceShape(text: string, most: number): boolean {
  return /^[^\s/"'\\#*\p{Cc}]+$/u.test(text) && new TextEncoder().encode(text).length <= most;
}

/** Returns the word that is most likely meant: the shortest that ends in "-word", or one at most `most` letters away, if any. */
export function findNearest(
  word: string,
  words: readonly string[],
  most: number = Number.POSITIVE_INFINITY,
): string | undefined {
  const lower = word.toLowerCase();
  const longer = words.filter((candidate) => candidate.toLowerCase().endsWith(`-${lower}`));
  if (longer.length > 0) return longer.toSorted((a, b) => a.length - b.length)[0];
  let best: string | undefined;
  let limit = Math.min(most, Math.max(1, Math.floor(word.length / 3)));
  for (const candidate of words) {
    const distance = editDistance(lower, candidate.toLowerCase(), limit, false);
    if (distance <= limit) [best, limit] = [candidate, distance - 1];
  }
  return best;
}

export const mostSuggestions = 3;

export function nearest(wanted: string, names: readonly string[]): readonly string[] {
  let limit = Math.max(1, Math.floor(wanted.length / 3));
  let near: string[] = [];
  for (const name of names) {
    const distance = name.includes(wanted) ? 1 : editDistance(wanted, name, limit, true);
    if (distance > limit) continue;
    if (distance < limit) near = [];
    limit = distance;
    near.push(name);
  }
  return near.sort().slice(0, mostSuggestions);
}

/** Returns the number of insertions, deletions, changes and, with `swaps`, swaps of neighbours; limit + 1 if over `limit`. */
function editDistance(a: string, b: string, limit: number, swaps: boolean): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let beforeLast: readonly number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = swaps && i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(change, swap, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    if (Math.min(...row) > limit) return limit + 1;
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
