/** Of characters; in UTF-8 a piece has up to three times as many bytes. */
const chunkLength = 1 << 20;

/**
 * A text as UTF-8 in pieces, for what would turn all of it into bytes at once: a large bundle's files are held in memory
 * often enough. No piece ends inside a character. All pieces share their memory: each is there until the next is asked
 * for.
 */
export function* encodeChunks(text: string): Generator<Uint8Array, void> {
  const bytes = Buffer.allocUnsafe(3 * Math.min(text.length, chunkLength));
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + chunkLength, text.length);
    if (end < text.length && isLowSurrogate(text.charCodeAt(end))) end--;
    yield bytes.subarray(0, bytes.write(text.slice(start, end), 'utf8'));
    start = end;
  }
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
