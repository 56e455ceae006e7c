import zlib, { createInflateRaw, gzipSync } from 'node:zlib';
import { isUtf8 } from 'node:buffer';

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  return value;
});

/** Continues gzip's checksum (RFC 1952) over more bytes. `sum`: the checksum of all bytes before them. */
export function crc32(bytes: Uint8Array, sum: number): number {
  // Node has its own crc32 since 20.15 and 22.2.
  const { crc32: native } = zlib as Partial<typeof zlib> & { readonly crc32?: typeof crc32 };
  return native ? native(bytes, sum) : crc32InScript(bytes, sum);
}

export function crc32InScript(bytes: Uint8Array, sum: number): number {
  let value = ~sum;
  for (const byte of bytes) value = (value >>> 8) ^ (table[(value ^ byte) & 0xff] ?? 0);
  return ~value >>> 0;
}

/** The gzip header, and the length of the trailer. The header has no name, comment or time, and says that the system is unknown. */
const gzipHead = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
const gzipTail = 8;

/** The block size in bytes. A header is one block, and contents are padded to whole blocks. */
const block = 512;

/** Offsets and lengths of fields in a tar header (ustar, POSIX.1-1988). */
const nameLength = 100;
const size = { start: 124, end: 135 };
const checksum = { start: 148, length: 8 };

/** Why an archive is not read: writeArchive would not write it, it is damaged, or `admit` refuses it. */
export type ArchiveProblem = 'no-pack' | 'damaged' | 'too-large' | 'not-signed';

export class ArchiveError extends Error {
  readonly problem: ArchiveProblem;

  constructor(problem: ArchiveProblem) {
    super(problem);
    this.problem = problem;
  }
}

/** Writes a gzipped tar archive. Its files are owned by root, readable by all and dated 1970, so equal files give equal bytes. */
export function writeArchive(files: ReadonlyMap<string, string>): Buffer {
  return compress(writeTar(files));
}

/** Compresses with kpc's gzip header, which is the same on every system. */
export function compress(bytes: Uint8Array): Buffer {
  const packed = gzipSync(bytes, { level: 9 });
  gzipHead.copy(packed);
  return packed;
}

export function writeTar(files: ReadonlyMap<string, string>): Buffer {
  const parts = [...files].flatMap(([name, text]) => {
    const content = Buffer.from(text);
    return [writeHeader(name, content.length), content, Buffer.alloc(-content.length & (block - 1))];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}

function writeHeader(name: string, length: number): Buffer {
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  const fields = [
    octal(0o644, 7),
    octal(0, 7),
    octal(0, 7),
    octal(length, 11),
    octal(0, 11),
    ' '.repeat(checksum.length),
  ];
  const header = Buffer.alloc(block);
  header.write(`${name.padEnd(nameLength, '\0')}${fields.join('')}0`, 'latin1');
  header.write(`ustar\0${'00'}root${'\0'.repeat(28)}root`, 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)} `, checksum.start, 'latin1');
  return header;
}

export function isGzip(bytes: Buffer): boolean {
  return bytes.subarray(0, 2).equals(gzipHead.subarray(0, 2));
}

/**
 * Returns the files of an archive. Unpacks a file only when it is requested, and only if `admit` accepts its name and size. Throws an
 * ArchiveError unless writeArchive would write the same archive, apart from its compression. So no link, folder, path, owner, odd header or
 * non-UTF-8 text gets through, and all programs that read tar find the same files.
 */
export async function* readArchive(
  packed: Buffer,
  admit: (name: string, bytes: number) => void,
): AsyncGenerator<readonly [name: string, text: string], void> {
  if (packed.length < gzipHead.length + gzipTail) throw new ArchiveError('damaged');
  if (!packed.subarray(0, gzipHead.length).equals(gzipHead)) throw new ArchiveError('no-pack');
  const unpacked = new Unpacked(packed);
  try {
    for (;;) {
      const header = await unpacked.take(block);
      if (header.every((byte) => byte === 0)) break;
      const [name = ''] = header.toString('latin1', 0, nameLength).split('\0');
      const length = Number.parseInt(header.toString('latin1', size.start, size.end), 8);
      if (!(length >= 0) || !writeHeader(name, length).equals(header)) throw new ArchiveError('no-pack');
      admit(name, length);
      const content = await unpacked.take(length);
      const padding = await unpacked.take(-length & (block - 1));
      if (!isUtf8(content) || padding.some((byte) => byte !== 0)) throw new ArchiveError('no-pack');
      yield [name, content.toString('utf8')];
    }
    const end = await unpacked.take(block);
    if (end.some((byte) => byte !== 0)) throw new ArchiveError('no-pack');
    await unpacked.end();
  } finally {
    unpacked.close();
  }
}

class Unpacked {
  readonly #packed: Buffer;
  readonly #engine = createInflateRaw({ chunkSize: 1 << 17 });
  readonly #pieces: AsyncIterator<Buffer>;
  #piece: Buffer = Buffer.alloc(0);
  #sum = 0;
  #total = 0;

  constructor(packed: Buffer) {
    this.#packed = packed;
    this.#pieces = this.#engine[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    this.#engine.end(packed.subarray(gzipHead.length));
  }

  async take(count: number): Promise<Buffer> {
    const taken = Buffer.allocUnsafe(count);
    let at = 0;
    while (at < count) {
      if (this.#piece.length === 0 && !(await this.#next())) throw new ArchiveError('no-pack');
      const copied = this.#piece.copy(taken, at);
      this.#piece = this.#piece.subarray(copied);
      at += copied;
    }
    return taken;
  }

  /** Throws an ArchiveError if bytes are left over or gzip's checks fail. */
  async end(): Promise<void> {
    if (this.#piece.length > 0 || (await this.#next())) throw new ArchiveError('no-pack');
    const tail = this.#packed.subarray(gzipHead.length + this.#engine.bytesWritten);
    if (tail.length > gzipTail) throw new ArchiveError('no-pack');
    const isRight =
      tail.length === gzipTail && tail.readUInt32LE(0) === this.#sum && tail.readUInt32LE(4) === this.#total;
    if (!isRight) throw new ArchiveError('damaged');
  }

  close(): void {
    this.#engine.destroy();
  }

  async #next(): Promise<boolean> {
    let next: IteratorResult<Buffer>;
    try {
      next = await this.#pieces.next();
    } catch {
      throw new ArchiveError('damaged');
    }
    if (next.done === true) return false;
    this.#piece = next.value;
    this.#sum = crc32(this.#piece, this.#sum);
    this.#total += this.#piece.length;
    return true;
  }
}
