import crypto from 'node:crypto';
import { encodeChunks, type FileText } from './chunks.ts';

/** The SHA-256 of a long text as UTF-8, in hex. */
export function hashHex(text: FileText): string {
  const hash = crypto.createHash('sha256');
  for (const chunk of encodeChunks(text)) hash.update(chunk);
  return hash.digest('hex');
}

/**
 * The SHA-256 of a short text as UTF-8, one character a byte. Making a Buffer for each of many digests takes several
 * times as long.
 */
export function hashBinary(text: string): string {
  // Node has had `hash`, which makes no object for each text, since version 20.12.
  const { hash } = crypto as Partial<typeof crypto>;
  return hash ? hash('sha256', text, 'binary') : crypto.createHash('sha256').update(text).digest('binary');
}
