import { endOfQuoted } from '../../base/end-of-quoted.ts';
import { parseJson, TooLong } from '../../base/bounds.ts';

/**
 * Reads what `ip -j` prints. ip does not escape all control characters of names and aliases, so that it may be no JSON: in JSON's
 * texts there are none, so each one between quotes stands for itself. Throws a SyntaxError if it is no JSON then, and a TooLong.
 */
export function parseIpJson(text: string): unknown {
  try {
    // Most often it is JSON. To look at each text of a node with 100,000 links takes a minute.
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
