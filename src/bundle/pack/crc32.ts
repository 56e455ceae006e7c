import zlib from 'node:zlib';

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  return value;
});

/** The checksum of gzip (RFC 1952) over bytes, after those of which `sum` is the checksum. */
export function crc32(bytes: Uint8Array, sum: number): number {
  // Node has had its own since version 20.15 and 22.2.
  const { crc32: native } = zlib as Partial<typeof zlib> & { readonly crc32?: typeof crc32 };
  return native ? native(bytes, sum) : crc32InScript(bytes, sum);
}

/** For releases of Node whose zlib has no crc32. */
export function crc32InScript(bytes: Uint8Array, sum: number): number {
  let value = ~sum;
  for (const byte of bytes) value = (value >>> 8) ^ (table[(value ^ byte) & 0xff] ?? 0);
  return ~value >>> 0;
}
