/** What the bytes of a file are as a text, or why they are none, in words that go on with "it". */
export type Decoded =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'none'; readonly reason: string; readonly isPacked?: boolean };

/** The first bytes of what a program packed, and what unpacks it. */
const packed: readonly (readonly [first: readonly number[], words: string])[] = [
  [[0x1f, 0x8b], 'compressed with gzip: unpack it with gunzip'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed with zstd: unpack it with unzstd'],
  [[0xfd, 0x37, 0x7a, 0x58], 'compressed with xz: unpack it with unxz'],
  [[0x42, 0x5a, 0x68], 'compressed with bzip2: unpack it with bunzip2'],
  [[0x50, 0x4b, 0x03, 0x04], 'a zip archive: unpack it first'],
];

/** What bytes are that a program packed, and how to unpack them; undefined for any other. */
export function describePacked(bytes: Uint8Array): string | undefined {
  return packed.find(([first]) => first.every((byte, i) => bytes[i] === byte))?.[1];
}

/**
 * The text of what a program printed into a file: UTF-8 whatever it holds, or UTF-16 with its mark, which PowerShell writes.
 * What is packed is not unpacked.
 */
export function decodePrinted(bytes: Uint8Array): Decoded {
  const words = describePacked(bytes);
  if (words !== undefined) return { kind: 'none', reason: `it is ${words}`, isPacked: true };
  const [first, second] = bytes;
  const encoding =
    first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8';
  return { kind: 'text', text: new TextDecoder(encoding).decode(bytes) };
}

/** The line, from 1, where Git began to mark a merge conflict in a text; undefined if it marks none. */
export function findConflict(text: string): number | undefined {
  const start = /(?:^|\n)(?=<{7} \S)/.exec(text.includes('<<<<<<< ') ? text : '');
  if (!start) return undefined;
  const from = start.index + start[0].length;
  const rest = text.slice(from);
  if (!/\n={7}\r?\n/.test(rest) && !/\n>{7} \S/.test(rest)) return undefined;
  return text.slice(0, from).split('\n').length;
}

/** What to do about it, as a clause about the file. */
export const conflictText =
  'Git left a merge conflict here: resolve it, so that no line begins with <<<<<<<, ======= or >>>>>>>';

/** Characters that look like a space, or like nothing, where YAML takes spaces: pages and chats put them in. */
const oddSpace = /[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/;

/** What to do about the first such character of a text; undefined for a text without. */
export function adviseOnOddSpace(text: string): string | undefined {
  const [found] = oddSpace.exec(text) ?? [];
  return found && `replace ${nameCharacter(found.charCodeAt(0))}, which only looks like a space, with a normal space`;
}

/** "U+00A0". */
export function nameCharacter(codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`;
}
