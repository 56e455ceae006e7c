/** The last part of a path: "a/b.yaml" → "b.yaml". Paths here are names in messages, so that no file system is asked. */
export function baseName(path: string): string {
  return partsOf(path).at(-1) ?? '';
}

/** The folder of a file, "." for one without: "a/b.yaml" → "a". */
export function folderOf(path: string): string {
  const end = path.lastIndexOf('/');
  return end > 0 ? path.slice(0, end) : end === 0 ? '/' : '.';
}

/** How a path reads from inside a folder: "./a" and "a/b/c.yaml" → "b/c.yaml". '' for the folder itself and what is not in it. */
export function pathBelow(folder: string, path: string): string {
  const [outer, inner] = [partsOf(folder), partsOf(path)];
  const isInside = folder.startsWith('/') === path.startsWith('/') && outer.every((part, i) => part === inner[i]);
  return isInside && inner[outer.length] !== '..' ? inner.slice(outer.length).join('/') : '';
}

/** A path as it reads from where its folder does: "a/b" and "../c.yaml" → "a/c.yaml". '' where that is the place itself. */
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

/** What a golden says of the node and the settings that it was compiled for. A folder that holds it is a golden. */
export const goldenHead = 'golden.json';

/** What a bundle is. A folder that holds it is a bundle. */
export const bundleHead = 'manifest.json';

/** The file that holds flags for a repository. */
export const kpcYaml = 'kpc.yaml';
