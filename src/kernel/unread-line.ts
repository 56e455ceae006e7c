/** A line of a tool's output that kpc cannot read; line counts from 1. */
export interface UnreadLine {
  readonly line: number;
  readonly text: string;
  readonly reason: string;
}

/**
 * Gives the lines of a text to `read`, each without the blanks around it, and passes over empty ones and comments. Returns
 * the lines of which `read` says why it cannot read them.
 */
export function readLines(
  text: string,
  comments: readonly string[],
  read: (line: string) => string | undefined,
): readonly UnreadLine[] {
  const unread: UnreadLine[] = [];
  let number = 0;
  for (const raw of text.split('\n')) {
    number++;
    const line = raw.trim();
    if (line === '' || comments.includes(line.charAt(0))) continue;
    const reason = read(line);
    if (reason !== undefined) unread.push({ line: number, text: raw, reason });
  }
  return unread;
}
