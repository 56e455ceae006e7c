/** A text, or its pieces: joined, a long one would be in memory twice. No piece ends inside a character. */
export type FileText = string | readonly string[];

/** The text in one piece. */
export function joinText(text: FileText): string {
  return typeof text === 'string' ? text : text.join('');
}

/** Of characters; in UTF-8 a piece has up to three times as many bytes. */
const chunkLength = 1 << 20;

/**
 * A text as UTF-8 in pieces, for what would turn all of it into bytes at once: a large bundle's files are held in memory
 * often enough. No piece ends inside a character. All pieces share their memory: each is there until the next is asked
 * for.
 */
export function* encodeChunks(text: FileText): Generator<Uint8Array, void> {
  const pieces = typeof text === 'string' ? [text] : text;
  const longest = pieces.reduce((most, { length }) => Math.max(most, length), 0);
  const bytes = Buffer.allocUnsafe(3 * Math.min(longest, chunkLength));
  for (const piece of pieces) {
    for (let start = 0; start < piece.length;) {
      let end = Math.min(start + chunkLength, piece.length);
      if (end < piece.length && isLowSurrogate(piece.charCodeAt(end))) end--;
      yield bytes.subarray(0, bytes.write(piece.slice(start, end), 'utf8'));
      start = end;
    }
  }
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
