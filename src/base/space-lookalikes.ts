/** Characters that look like a space, or like nothing, where YAML takes spaces: pages and chats put them in. */
const oddSpaces = '\\u00a0\\u1680\\u2000-\\u200b\\u202f\\u205f\\u3000';

const oddSpace = new RegExp(`[${oddSpaces}]`);

/** What to do about the first such character of a text; undefined for a text without. */
export function adviseOnOddSpace(text: string): string | undefined {
  const found = oddSpace.exec(text);
  return found ? describeOddSpace(found[0].charCodeAt(0)) : undefined;
}

/** What to do about such a character. */
function describeOddSpace(codePoint: number): string {
  return `replace ${nameCharacter(codePoint)}, which only looks like a space, with a normal space`;
}

/** "U+00A0". */
export function nameCharacter(codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`;
}
