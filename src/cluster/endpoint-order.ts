import type { Address } from '../kernel/address.ts';
import { compareText } from '../kernel/compare-text.ts';
import type { Endpoint } from './model.ts';

/**
 * Orders endpoints of one family as Go orders their labels ("ip:port"), which is kube-proxy's order. For
 * IPv4 it compares numbers instead of labels, which is faster.
 */
export function compareEndpoints(a: Endpoint, b: Endpoint): number {
  if (a.address.family === 'ipv4' && b.address.family === 'ipv4') {
    return textRank(a.address) - textRank(b.address) || compareText(String(a.port), String(b.port));
  }
  return compareText(a.label, b.label);
}

/** For each byte, how many others come before it as text, with the sign after it that follows it in a label. */
const rankBeforeDot = rankBytes('.');
const rankBeforeColon = rankBytes(':');

function rankBytes(sign: string): Uint8Array {
  const bytes = Array.from({ length: 256 }, (_, byte) => byte);
  const sorted = bytes.toSorted((a, b) => compareText(`${a}${sign}`, `${b}${sign}`));
  const ranks = new Uint8Array(256);
  for (const [rank, byte] of sorted.entries()) ranks[byte] = rank;
  return ranks;
}

/** A signed number of 32 bits that is greater where the address with a colon after it comes later as text. */
function textRank({ bits }: Extract<Address, { family: 'ipv4' }>): number {
  const first = rankBeforeDot[bits >>> 24] ?? 0;
  const second = rankBeforeDot[(bits >>> 16) & 255] ?? 0;
  const third = rankBeforeDot[(bits >>> 8) & 255] ?? 0;
  const fourth = rankBeforeColon[bits & 255] ?? 0;
  return ((first - 128) << 24) | (second << 16) | (third << 8) | fourth;
}
