import { hashBinary } from '#hash';

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The first characters of a text's SHA-256 in base32, five bits each: what kube-proxy puts into names. */
export function hashName(text: string, length: 8 | 16): string {
  const digest = hashBinary(text);
  let name = '';
  let pending = 0;
  let pendingBits = 0;
  for (let i = 0; name.length < length; i++) {
    pending = (pending << 8) | digest.charCodeAt(i);
    pendingBits += 8;
    while (pendingBits >= 5) {
      pendingBits -= 5;
      name += base32.charAt((pending >>> pendingBits) & 31);
    }
    pending &= (1 << pendingBits) - 1;
  }
  return name;
}
