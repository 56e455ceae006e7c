import { createHash } from 'node:crypto';
import { encodeChunks } from './chunks.ts';

/** The SHA-256 of a text as UTF-8, in hex: what manifest.json says of each file. */
export function sha256(text: string): string {
  const hash = createHash('sha256');
  for (const chunk of encodeChunks(text)) hash.update(chunk);
  return hash.digest('hex');
}
