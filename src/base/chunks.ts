/** A text or its pieces, because joining a long text would hold it in memory twice. No piece ends inside a character. */
export type FileText = string | readonly string[];

export function joinText(text: FileText): string {
  return typeof text === 'string' ? text : text.join('');
}

/** The length of a piece in characters. In UTF-8, a piece has up to three times as many bytes. */
const chunkLength = 1 << 20;

/**
 * Yields a text as UTF-8 in pieces that do not end inside a character. The pieces share memory, so each is valid only until the next one.
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
