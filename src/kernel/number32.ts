/** Reads a 32-bit number, decimal or hexadecimal but not octal. */
export function parseNumber32(text: string): number | undefined {
  if (!/^(?:0x[\da-f]{1,8}|0|[1-9]\d{0,9})$/i.test(text)) return undefined;
  const value = Number(text);
  return value <= 0xffffffff ? value : undefined;
}

/** A mark or mask as kube-proxy writes it: eight hex digits. */
export function formatMark(value: number): string {
  return `0x${(value >>> 0).toString(16).padStart(8, '0')}`;
}
