import { closeBrace, closeBracket, openBrace, openBracket } from './characters.ts';

/** How deep lists and mappings may nest in a document. Kubernetes' own objects nest a dozen deep. */
const maxFlowDepth = 500;
const maxIndentation = 2000;

/**
 * Whether a document nests so deeply that a parser that calls itself for each level could use up the stack, which
 * ends the process. Brackets inside texts count too: that is near enough for a limit that nobody needs to reach.
 */
export function nestsTooDeeply(text: string): boolean {
  // Each level of YAML's block style is indented further, or stands behind one more "- " or "? ".
  if (new RegExp(`^[ ?-]{${maxIndentation}}`, 'm').test(text)) return true;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === openBracket || code === openBrace) {
      if (++depth > maxFlowDepth) return true;
    } else if ((code === closeBracket || code === closeBrace) && depth > 0) depth--;
  }
  return false;
}
