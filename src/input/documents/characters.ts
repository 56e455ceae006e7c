/** Codes of the characters that texts are read by, and what stands for the end of a text. */
export const lineFeed = 0x0a;
export const space = 0x20;
export const doubleQuote = 0x22;
export const hash = 0x23;
export const singleQuote = 0x27;
export const plus = 0x2b;
export const comma = 0x2c;
export const dash = 0x2d;
export const dot = 0x2e;
export const zero = 0x30;
export const nine = 0x39;
export const colon = 0x3a;
export const greater = 0x3e;
export const openBracket = 0x5b;
export const backslash = 0x5c;
export const closeBracket = 0x5d;
export const openBrace = 0x7b;
export const pipe = 0x7c;
export const closeBrace = 0x7d;
export const endOfText = -1;

export function isDigit(char: number): boolean {
  return char >= zero && char <= nine;
}
