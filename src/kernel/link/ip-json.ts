/**
 * Reads what `ip -j` prints. ip does not escape all control characters of names and aliases, so that it may be no JSON: in JSON's
 * texts there are none, so each one between quotes stands for itself. Throws a SyntaxError if it is no JSON then.
 */
export function parseIpJson(text: string): unknown {
  try {
    // Most often it is JSON. To look at each text of a node with 100,000 links takes a minute.
    return JSON.parse(text);
  } catch {
    return parseWithControls(text);
  }
}

function parseWithControls(text: string): unknown {
  return JSON.parse(text.replace(/"(?:[^"\\]|\\[^])*(?:"|\\?$)/g, escapeControls));
}

function escapeControls(quoted: string): string {
  return quoted.replace(/[^\P{Cc}\u007f-\u009f]/gu, (character) => JSON.stringify(character).slice(1, -1));
}
