import { skipString } from './json-parser.ts';
import type { Span } from './split-documents.ts';
import type { SyntaxFault } from './syntax-fault.ts';

/** Keys that come twice in one object of the JSON value in a stretch of a text, of which the last counts to JSON.parse. */
export function findRepeatedJsonKeys(text: string, { start, end }: Span): SyntaxFault[] {
  const faults: SyntaxFault[] = [];
  /** The keys of the objects around the place; of a list, none. */
  const around: Set<string>[] = [];
  const sign = /["{}[\]]/g;
  const colon = /[ \t\r\n]*:/y;
  sign.lastIndex = start;
  for (let found = sign.exec(text); found && found.index < end; found = sign.exec(text)) {
    const at = found.index;
    if (found[0] === '{' || found[0] === '[') around.push(new Set());
    else if (found[0] !== '"') around.pop();
    else {
      sign.lastIndex = colon.lastIndex = skipString(text, at);
      const keys = around.at(-1);
      if (!keys || !colon.test(text)) continue;
      const written = text.slice(at, sign.lastIndex);
      const key = written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
      if (keys.has(key)) faults.push({ offset: at - start, code: 'duplicate-key', arguments: {} });
      keys.add(key);
    }
  }
  return faults;
}
