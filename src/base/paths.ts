// What is asked of the names of files that have been read, by texts alone: where there is no Node, too.

const separator = /[/\\]/;

/** The last part of a path. */
export function fileNameOf(path: string): string {
  return path.split(separator).findLast((part) => part !== '') ?? '';
}

/** The path of the folder that a file is in; "." for a name alone. */
export function folderOf(path: string): string {
  const end = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\'));
  return end < 0 ? '.' : path.slice(0, end) || path.slice(0, 1);
}

/** The way from a folder to what is in it, with slashes; '' for the folder itself, and with ".." first where it is not inside. */
export function pathBelow(folder: string, path: string): string {
  const from = partsOf(folder);
  const to = partsOf(path);
  let shared = 0;
  while (shared < from.length && shared < to.length && from[shared] === to[shared]) shared++;
  return [...from.slice(shared).map(() => '..'), ...to.slice(shared)].join('/');
}

function partsOf(path: string): readonly string[] {
  return path.split(separator).filter((part) => part !== '' && part !== '.');
}
