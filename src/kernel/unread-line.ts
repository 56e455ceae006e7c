/** A line of a tool's output that kpc cannot read; line counts from 1. */
export interface UnreadLine {
  readonly line: number;
  readonly text: string;
  readonly reason: string;
}

/**
 * Calls `read` with each line, trimmed, except empty ones and comments. Returns the lines for which `read` gave a
 * reason why it cannot read them.
 */
export function readLines(
  text: string | readonly string[],
  comments: readonly string[],
  read: (line: string) => string | undefined,
): readonly UnreadLine[] {
  const unread: UnreadLine[] = [];
  let [number, next] = [1, 1];
  for (const raw of typeof text === 'string' ? text.split('\n') : text) {
    number = next;
    // One that was joined of several counts as these.
    next += raw.includes('\n') ? raw.split('\n').length : 1;
    const line = raw.trim();
    if (line === '' || comments.includes(line.charAt(0))) continue;
    const reason = read(line);
    if (reason !== undefined) unread.push({ line: number, text: raw, reason });
  }
  return unread;
}
