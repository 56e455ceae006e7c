import type { Versions } from './certify-lines.ts';

/**
 * Whether virtual servers have changed as those of the part did, and in nothing but their real servers: with the part's old
 * ones put in the place of the new ones, the text must be what it is, to the byte.
 */
export function isOwnServerChange(whole: Versions<string>, part: Versions<string>): boolean {
  const [before, after] = [cutServers(part.old), cutServers(part.new)];
  if (before.length !== after.length) return false;
  const swaps: (Versions<string> & { readonly at: number })[] = [];
  for (const [i, old] of before.entries()) {
    const now = after[i] ?? '';
    if (headOf(old) !== headOf(now)) return false;
    if (old === now) continue;
    const at = findServer(whole.old, old);
    if (at === undefined) return false;
    swaps.push({ at, old, new: now });
  }
  let [made, end] = ['', 0];
  for (const swap of swaps.toSorted((a, b) => a.at - b.at)) {
    made += whole.old.slice(end, swap.at) + swap.new;
    end = swap.at + swap.old.length;
  }
  return made + whole.old.slice(end) === whole.new;
}

/** Each virtual server with its real servers: "-A …" and the lines with "-a …" below it. */
function cutServers(text: string): readonly string[] {
  return text.split(/(?<=\n)(?=-A )/);
}

function headOf(server: string): string {
  return server.slice(0, server.indexOf('\n'));
}

/** Where a virtual server stands with these real servers and no more. */
function findServer(text: string, server: string): number | undefined {
  const at = text.startsWith(server) ? 0 : text.indexOf(`\n${server}`) + 1;
  const end = at + server.length;
  const isFound = text.startsWith(server, at) && (end === text.length || text.startsWith('-A ', end));
  return isFound ? at : undefined;
}
