// As hash-node.ts, without Node. Node's own takes a seventh of the time for the names of 110,000 chains.
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { joinText, type FileText } from './chunks.ts';

/** The SHA-256 of a long text as UTF-8, in hex. */
export function hashHex(text: FileText): string {
  return bytesToHex(sha256(utf8ToBytes(joinText(text))));
}

/** The SHA-256 of a short text as UTF-8, one character a byte. */
export function hashBinary(text: string): string {
  return String.fromCharCode(...sha256(utf8ToBytes(text)));
}
