import type { Packed, Unread } from './unread.ts';

export type Decoded =
  { readonly kind: 'text'; readonly text: string } | { readonly kind: 'none'; readonly reason: Unread };

const starts: Readonly<Record<Packed, readonly number[]>> = {
  gzip: [0x1f, 0x8b],
  zstd: [0x28, 0xb5, 0x2f, 0xfd],
  xz: [0xfd, 0x37, 0x7a, 0x58],
  bzip2: [0x42, 0x5a, 0x68],
  zip: [0x50, 0x4b, 0x03, 0x04],
};

export function findPacked(bytes: Uint8Array): Packed | undefined {
  const found = Object.entries(starts).find(([, first]) => first.every((byte, i) => bytes[i] === byte));
  return found?.[0] as Packed | undefined;
}

/** Decodes a program's output: UTF-8, or UTF-16 with a byte order mark, as PowerShell writes. Does not unpack compressed output. */
export function decodePrinted(bytes: Uint8Array): Decoded {
  const by = findPacked(bytes);
  if (by) return { kind: 'none', reason: { problem: 'packed', by } };
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

/** Replaces the logs that `kubectl cluster-info dump` prints among its JSON with empty lines, so that lines keep their numbers. */
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
