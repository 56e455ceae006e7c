import { endOfText } from '../characters.ts';
import { refuse } from '../syntax-fault.ts';
import { isBlank, isBreakOrEnd, isNameCharacter, isSpaceOrEnd } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import type { Token } from './tokens.ts';

/** The name behind "&" or "*". */
export function scanAnchor(cursor: Cursor, kind: 'alias' | 'anchor'): Token {
  const start = cursor.offset;
  cursor.skip();
  const name = scanName(cursor);
  const next = cursor.peek();
  if (name === '' || !(isSpaceOrEnd(next) || '?:,]}%@`'.includes(String.fromCharCode(next)))) {
    refuse(start, { problem: 'bad-anchor-name', kind });
  }
  return { kind, name, start, end: cursor.offset };
}

function scanName(cursor: Cursor): string {
  const start = cursor.offset;
  while (isNameCharacter(cursor.peek())) cursor.skip();
  return cursor.text.slice(start, cursor.offset);
}

/** A tag in one of its forms: !<uri>, !handle!suffix, !suffix or "!" alone. */
export function scanTag(cursor: Cursor): Token {
  const start = cursor.offset;
  let handle = '';
  let suffix: string;
  if (cursor.text.startsWith('!<', start)) {
    cursor.skipMany(2);
    suffix = scanUri(cursor, start, '');
    if (cursor.peek() !== 0x3e) refuse(start, { problem: 'tag-without-bracket' });
    cursor.skip();
  } else {
    handle = scanHandle(cursor);
    if (handle.length > 1 && handle.endsWith('!')) {
      suffix = scanUri(cursor, start, '');
    } else {
      suffix = scanUri(cursor, start, handle);
      handle = '!';
      if (suffix === '') [handle, suffix] = ['', '!'];
    }
  }
  if (!isSpaceOrEnd(cursor.peek())) refuse(start, { problem: 'tag-without-end' });
  return { kind: 'tag', handle, suffix, start, end: cursor.offset };
}

/** A "!", letters behind it, and another "!" if there is one. */
function scanHandle(cursor: Cursor): string {
  const start = cursor.offset;
  cursor.skip();
  scanName(cursor);
  if (cursor.peek() === 0x21) cursor.skip();
  return cursor.text.slice(start, cursor.offset);
}

const uriSigns: ReadonlySet<number> = new Set(Array.from(";/?:@&=+$,.!~*'()[]%", (char) => char.charCodeAt(0)));

/** The rest of a tag whose beginning, with its "!", is `head`. Escaped bytes are characters of the same number. */
function scanUri(cursor: Cursor, start: number, head: string): string {
  let uri = head.slice(1);
  let isEmpty = head === '';
  for (let code = cursor.peek(); isNameCharacter(code) || uriSigns.has(code); code = cursor.peek()) {
    if (code === 0x25) {
      uri += scanEscapedCharacter(cursor);
    } else {
      uri += String.fromCharCode(code);
      cursor.skip();
    }
    isEmpty = false;
  }
  if (isEmpty) refuse(start, { problem: 'tag-without-name' });
  return uri;
}

/** The bytes of one character in UTF-8, each written as "%" and two hexadecimal digits. */
function scanEscapedCharacter(cursor: Cursor): string {
  const start = cursor.offset;
  const readByte = (): number => {
    const digits = /^%([\da-fA-F]{2})/.exec(cursor.text.slice(cursor.offset, cursor.offset + 3))?.[1];
    if (digits === undefined) refuse(start, { problem: 'tag-with-half-escape' });
    cursor.skipMany(3);
    return Number.parseInt(digits, 16);
  };
  const first = readByte();
  let length = 1;
  if (first >= 0xf8 || (first >= 0x80 && first < 0xc0)) refuse(start, { problem: 'tag-with-bad-escape' });
  if (first >= 0xf0) length = 4;
  else if (first >= 0xe0) length = 3;
  else if (first >= 0xc0) length = 2;
  let bytes = String.fromCharCode(first);
  for (let i = 1; i < length; i++) {
    const byte = readByte();
    if (byte < 0x80 || byte >= 0xc0) refuse(start, { problem: 'tag-with-bad-escape' });
    bytes += String.fromCharCode(byte);
  }
  return bytes;
}

/** A line that begins with "%"; the cursor is then behind it. */
export function scanDirective(cursor: Cursor): Token {
  const start = cursor.offset;
  cursor.skip();
  const name = scanName(cursor);
  if (!isSpaceOrEnd(cursor.peek()) || (name !== 'YAML' && name !== 'TAG')) {
    refuse(start, { problem: 'unknown-directive' });
  }
  cursor.skipBlanks();
  const token = name === 'YAML' ? scanVersion(cursor, start) : scanTagPrefix(cursor, start);
  cursor.skipBlanks();
  cursor.skipComment();
  if (!isBreakOrEnd(cursor.peek())) refuse(cursor.offset, { problem: 'text-after-directive' });
  cursor.readBreak();
  return token;
}

function scanVersion(cursor: Cursor, start: number): Token {
  const version = /^\d{1,2}\.\d{1,2}(?!\d)/.exec(cursor.text.slice(cursor.offset, cursor.offset + 6))?.[0];
  if (version === undefined) refuse(cursor.offset, { problem: 'version-missing' });
  cursor.skipMany(version.length);
  return { kind: 'version', version, start, end: cursor.offset };
}

function scanTagPrefix(cursor: Cursor, start: number): Token {
  if (cursor.peek() !== 0x21) refuse(start, { problem: 'tag-prefix-without-handle' });
  const handle = scanHandle(cursor);
  if (handle !== '!' && !handle.endsWith('!')) refuse(start, { problem: 'tag-prefix-without-handle' });
  if (!isBlank(cursor.peek())) refuse(start, { problem: 'tag-prefix-without-space' });
  cursor.skipBlanks();
  const prefix = scanUri(cursor, start, '');
  if (cursor.peek() !== endOfText && !isSpaceOrEnd(cursor.peek())) refuse(start, { problem: 'tag-prefix-without-end' });
  return { kind: 'tag-prefix', handle, prefix, start, end: cursor.offset };
}
