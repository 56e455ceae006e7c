/** The last part of a path: "a/b.yaml" → "b.yaml". These paths are names in messages: no file system is asked. */
export function baseName(path: string): string {
  return partsOf(path).at(-1) ?? '';
}

/** The folder of a file, "." for one without: "a/b.yaml" → "a". */
export function folderOf(path: string): string {
  const end = path.lastIndexOf('/');
  return end > 0 ? path.slice(0, end) : end === 0 ? '/' : '.';
}

/**
 * A path relative to a folder above it: "./a" and "a/b/c.yaml" → "b/c.yaml". '' for the folder itself and for paths
 * outside.
 */
export function pathBelow(folder: string, path: string): string {
  const [outer, inner] = [partsOf(folder), partsOf(path)];
  const isInside = folder.startsWith('/') === path.startsWith('/') && outer.every((part, i) => part === inner[i]);
  return isInside && inner[outer.length] !== '..' ? inner.slice(outer.length).join('/') : '';
}

/**
 * Resolves a path relative to a folder: "a/b" and "../c.yaml" → "a/c.yaml". '' for the place from which the folder's
 * path starts.
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

/** The file of a golden with its node and settings. A folder that holds it is a golden. */
export const goldenHead = 'golden.json';

/** The file of a bundle that describes it. A folder that holds it is a bundle. */
export const bundleHead = 'manifest.json';

/** The file of a dump that says what else packets meet on its node, as tools print it. */
export const networkFile = 'network.txt';

/** The file that holds flags for a repository. */
export const kpcYaml = 'kpc.yaml';
