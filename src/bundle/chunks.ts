const chunkLength = 1 << 20;

/**
 * A text in pieces of about a million characters, for what would turn all of it into bytes at once: a large bundle's
 * files are held in memory often enough. No piece ends inside a character.
 */
export function* chunksOf(text: string): Generator<string, void> {
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + chunkLength, text.length);
    if (end < text.length && isLowSurrogate(text.charCodeAt(end))) end--;
    yield text.slice(start, end);
    start = end;
  }
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
