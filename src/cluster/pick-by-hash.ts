/** A number range of which some are taken. */
export interface Pool {
  readonly size: number;
  /** Numbers below it go last: the API server keeps them for people who choose their own. */
  readonly reserved: number;
  isFree(offset: number): boolean;
}

/** IPv6 networks hold more addresses than a cluster needs. */
export const maxPoolSize = 2 ** 20;

/** A free number of the pool, from where the name's hash points; the reserved ones only when there is no other. */
export function pick(name: string, { size, reserved, isFree }: Pool): number | undefined {
  const open = Math.max(0, size - reserved);
  if (open > 0) {
    const start = hash(name) % open;
    for (let i = 0; i < open; i++) {
      const offset = reserved + ((start + i) % open);
      if (isFree(offset)) return offset;
    }
  }
  for (let offset = Math.min(reserved, size) - 1; offset >= 0; offset--) if (isFree(offset)) return offset;
  return undefined;
}

/** FNV-1a of 32 bits. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value;
}
