import crypto from 'node:crypto';
import { encodeChunks, type FileText } from './chunks.ts';

export function hashHex(text: FileText): string {
  const hash = crypto.createHash('sha256');
  for (const chunk of encodeChunks(text)) hash.update(chunk);
  return hash.digest('hex');
}

/** Returns the SHA-256 of a short text as UTF-8, with one character for each byte. Returning a Buffer would take several times as long. */
export function hashBinary(text: string): string {
  // Node's `hash` (since 20.12) makes no object for each text.
  const { hash } = crypto as Partial<typeof crypto>;
  return hash ? hash('sha256', text, 'binary') : crypto.createHash('sha256').update(text).digest('binary');
}
