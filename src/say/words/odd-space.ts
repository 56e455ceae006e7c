/** Characters that look like a space, or are invisible, where YAML needs spaces. Web pages and chats insert them. */
const oddSpace = /[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/;

/** Advice on the first odd space of a text, if any. */
export function adviseOnOddSpace(text: string): string | undefined {
  const [found] = oddSpace.exec(text) ?? [];
  return found && `replace ${nameCharacter(found.charCodeAt(0))}, which only looks like a space, with a normal space`;
}

export function nameCharacter(codePoint: number): string {
  return `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`;
}
