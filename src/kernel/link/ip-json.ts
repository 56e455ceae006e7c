import { endOfQuoted } from '../../base/end-of-quoted.ts';
import { parseJson, TooLong } from '../../base/bounds.ts';

/**
 * Reads what `ip -j` prints. ip leaves some control characters in names and aliases unescaped, which is invalid JSON: each one
 * between quotes is taken literally. Throws a SyntaxError if the text is still not JSON, and a TooLong.
 */
export function parseIpJson(text: string): unknown {
  try {
    // Tried first, because checking every text of a node with 100,000 links takes a minute.
    return parseJson(text);
  } catch (error) {
    if (error instanceof TooLong) throw error;
    return parseWithControls(text);
  }
}

function parseWithControls(text: string): unknown {
  const parts: string[] = [];
  let at = 0;
  for (let start = text.indexOf('"'); start >= 0; start = text.indexOf('"', at)) {
    const end = endOfQuoted(text, start) ?? text.length;
    parts.push(text.slice(at, start), escapeControls(text.slice(start, end)));
    at = end;
  }
  return JSON.parse(parts.join('') + text.slice(at));
}

function escapeControls(quoted: string): string {
  return quoted.replace(/[^\P{Cc}\u007f-\u009f]/gu, (character) => JSON.stringify(character).slice(1, -1));
}
