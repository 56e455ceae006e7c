// Like hash-node.ts, but without Node's modules. Node's own hash needs a seventh of this one's time for the names of 110,000 chains.
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { joinText, type FileText } from './chunks.ts';

export function hashHex(text: FileText): string {
  return bytesToHex(sha256(utf8ToBytes(joinText(text))));
}

export function hashBinary(text: string): string {
  return String.fromCharCode(...sha256(utf8ToBytes(text)));
}
