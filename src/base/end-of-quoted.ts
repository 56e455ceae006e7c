/**
 * The offset behind the text in double quotes that begins at `start`, in which a backslash hides the sign behind it; undefined if
 * nothing ends it. Takes no memory: a regular expression remembers each turn of a loop of choices, and V8 throws a RangeError for a
 * text of some million signs. Test: a text in quotes may have any length.
 */
export function endOfQuoted(text: string, start: number): number | undefined {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (at - 1 - slashes > start && text.charCodeAt(at - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
  return undefined;
}

const backslash = 0x5c;
