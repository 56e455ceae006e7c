import { hashBinary } from '#hash';

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export function hashName(text: string, length: 8 | 16): string {
  return prefixedHash('', text, length);
}

/**
 * Joins prefix and hash into one flat string. V8 would keep a concatenation as a tree, which takes more memory for each of the many names.
 */
export function prefixedHash(prefix: string, text: string, length: 8 | 16 = 16): string {
  const digest = hashBinary(text);
  const codes: number[] = [];
  for (let i = 0; i < prefix.length; i++) codes.push(prefix.charCodeAt(i));
  const end = prefix.length + length;
  let pending = 0;
  let pendingBits = 0;
  for (let i = 0; codes.length < end; i++) {
    pending = (pending << 8) | digest.charCodeAt(i);
    pendingBits += 8;
    while (pendingBits >= 5) {
      pendingBits -= 5;
      codes.push(base32.charCodeAt((pending >>> pendingBits) & 31));
    }
    pending &= (1 << pendingBits) - 1;
  }
  return String.fromCharCode(...codes);
}
