import { Transform, type TransformCallback } from 'node:stream';

/** Limit on the bytes of a message. Longer texts belong in files. */
export const longestMessage = 2 ** 22;

/** Bytes to search for the id at each end of a longer message. */
const longestEnd = 1000;

const lineFeed = 10;

/**
 * Passes on a stream's lines, each in one piece. Drops a line that is too long while it arrives. `refuse` gets the request's id, or null
 * if the id is not near the line's start or end.
 */
export class BoundedInput extends Transform {
  readonly #refuse: (id: number | string | null) => void;
  readonly #most: number;
  #pieces: Buffer[] = [];
  #size = 0;
  #isTooLong = false;
  #start = '';
  #end = '';

  constructor(refuse: (id: number | string | null) => void, most: number = longestMessage) {
    super();
    this.#refuse = refuse;
    this.#most = most;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    for (let from = 0; from < chunk.length;) {
      const at = chunk.indexOf(lineFeed, from);
      const end = at < 0 ? chunk.length : at + 1;
      this.#add(chunk.subarray(from, end));
      if (at >= 0) this.#endLine();
      from = end;
    }
    done();
  }

  #add(piece: Buffer): void {
    this.#size += piece.length;
    if (!this.#isTooLong && this.#size > this.#most) {
      this.#isTooLong = true;
      this.#start = Buffer.concat(this.#pieces).toString('utf8', 0, longestEnd);
      this.#pieces = [];
    }
    if (this.#isTooLong) this.#end = (this.#end + piece.subarray(-longestEnd).toString('utf8')).slice(-longestEnd);
    else this.#pieces.push(piece);
  }

  #endLine(): void {
    if (this.#isTooLong) this.#refuse(idOf(this.#start, this.#end));
    else this.push(Buffer.concat(this.#pieces));
    this.#pieces = [];
    this.#size = 0;
    this.#isTooLong = false;
    this.#start = this.#end = '';
  }
}

function idOf(start: string, end: string): number | string | null {
  const id = String.raw`"id"\s*:\s*(-?\d{1,15}|"[^"\\]{0,100}")`;
  const text = String.raw`"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"`;
  const before = new RegExp(String.raw`^\s*\{\s*(?:${text}\s*,\s*)*${id}`).exec(start);
  const behind = new RegExp(String.raw`,\s*${id}\s*(?:,\s*${text}\s*)*\}\s*$`).exec(end);
  const found = before?.[1] ?? behind?.[1];
  return found === undefined ? null : (JSON.parse(found) as number | string);
}
