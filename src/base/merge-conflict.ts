/** The line, from 1, where Git began to mark a merge conflict in a text; undefined where it marks none. */
export function findConflict(text: string): number | undefined {
  const start = /(?:^|\n)(?=<{7} \S)/.exec(text.includes('<<<<<<< ') ? text : '');
  if (!start) return undefined;
  const from = start.index + start[0].length;
  const rest = text.slice(from);
  if (!/\n={7}\r?\n/.test(rest) && !/\n>{7} \S/.test(rest)) return undefined;
  return text.slice(0, from).split('\n').length;
}

/** What to do about it, as a clause about the file. */
export const conflictText =
  'Git left a merge conflict here: resolve it, so that no line begins with <<<<<<<, ======= or >>>>>>>';
