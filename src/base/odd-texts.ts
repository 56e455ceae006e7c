export type Decoded =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'none'; readonly reason: string; readonly isPacked?: boolean };

const packed: readonly (readonly [first: readonly number[], words: string])[] = [
  [[0x1f, 0x8b], 'compressed with gzip: unpack it with gunzip'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed with zstd: unpack it with unzstd'],
  [[0xfd, 0x37, 0x7a, 0x58], 'compressed with xz: unpack it with unxz'],
  [[0x42, 0x5a, 0x68], 'compressed with bzip2: unpack it with bunzip2'],
  [[0x50, 0x4b, 0x03, 0x04], 'a zip archive: unpack it first'],
];

export function describePacked(bytes: Uint8Array): string | undefined {
  return packed.find(([first]) => first.every((byte, i) => bytes[i] === byte))?.[1];
}

/** Decodes a program's output: UTF-8, or UTF-16 with a byte order mark, as PowerShell writes. Unpacks nothing. */
export function decodePrinted(bytes: Uint8Array): Decoded {
  const words = describePacked(bytes);
  if (words !== undefined) return { kind: 'none', reason: `it is ${words}`, isPacked: true };
  const [first, second] = bytes;
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  return { kind: 'text', text: new TextDecoder(encoding).decode(bytes) };
}

export function findConflict(text: string): number | undefined {
  const start = /(?:^|\n)(?=<{7} \S)/.exec(text.includes('<<<<<<< ') ? text : '');
  if (!start) return undefined;
  const from = start.index + start[0].length;
  const rest = text.slice(from);
  if (!/\n={7}\r?\n/.test(rest) && !/\n>{7} \S/.test(rest)) return undefined;
  return text.slice(0, from).split('\n').length;
}

const logStart = '\n==== START logs for container ';
const logEnd = '\n==== END logs for container ';

/** Blanks the logs that `kubectl cluster-info dump` prints among its JSON. Lines keep their numbers. */
export function blankContainerLogs(text: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let start = text.indexOf(logStart); start >= 0; start = text.indexOf(logStart, from)) {
    const last = text.indexOf(logEnd, start);
    const lineEnd = last < 0 ? -1 : text.indexOf('\n', last + 1);
    const end = lineEnd < 0 ? text.length : lineEnd;
    parts.push(text.slice(from, start), text.slice(start, end).replace(/[^\n]+/g, ''));
    from = end;
  }
  return from === 0 ? text : [...parts, text.slice(from)].join('');
}
