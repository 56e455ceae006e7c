/** What the bytes of a file are as a text, or why they are none, in words that go on with "it". */
export type Decoded =
  { readonly kind: 'text'; readonly text: string } | { readonly kind: 'none'; readonly reason: string };

/**
 * The text of what a program printed into a file: UTF-8 whatever it holds, or UTF-16 with its mark, which PowerShell writes.
 * What is compressed is not unpacked.
 */
export function decodePrinted(bytes: Uint8Array): Decoded {
  const [first, second, third] = bytes;
  if (first === 0x1f && second === 0x8b) return refuse('it is compressed with gzip: unpack it with gunzip');
  if (first === 0x28 && second === 0xb5 && third === 0x2f)
    return refuse('it is compressed with zstd: unpack it with unzstd');
  if (first === 0xfd && second === 0x37 && third === 0x7a)
    return refuse('it is compressed with xz: unpack it with unxz');
  if (first === 0x42 && second === 0x5a && third === 0x68)
    return refuse('it is compressed with bzip2: unpack it with bunzip2');
  if (first === 0x50 && second === 0x4b && third === 0x03) return refuse('it is a zip archive: unpack it');
  if (first === 0xff && second === 0xfe) return { kind: 'text', text: new TextDecoder('utf-16le').decode(bytes) };
  if (first === 0xfe && second === 0xff) return { kind: 'text', text: new TextDecoder('utf-16be').decode(bytes) };
  return { kind: 'text', text: new TextDecoder().decode(bytes) };
}

function refuse(reason: string): Decoded {
  return { kind: 'none', reason };
}
