import { unsure } from './lines.ts';
import { resolvePlainScalar } from './scalars.ts';

/** The full parser takes keys of up to 1024 characters, counted its own way. */
const maxKeyLength = 512;

/** The key that a scalar is, of that length as it is written. '<<' may merge, and '__proto__' must not become a prototype. */
export function keyOf(scalar: unknown, length: number): string | undefined {
  const isPlain = typeof scalar === 'string' && scalar !== '__proto__' && scalar !== '<<' && length <= maxKeyLength;
  return isPlain ? scalar : undefined;
}

/** What a string in quotes means that the pattern `quoted` found. */
export function unquote(written: string): string {
  if (written.startsWith("'")) return written.slice(1, -1).replaceAll("''", "'");
  return written.includes('\\') ? String(JSON.parse(written)) : written.slice(1, -1);
}

/** What JSON has no number for is a mistake. */
export function requireFinite(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw unsure;
  return value;
}

export function resolveFinite(text: string): unknown {
  return requireFinite(resolvePlainScalar(text));
}

/** The text of a literal block below a key or dash in that column; undefined if its indentation is irregular. */
export function readLiteral(written: string, column: number): string | undefined {
  const [header = '', ...lines] = written.split('\n');
  const [indent = ''] = /^ */.exec(lines.find((line) => /[^ ]/.test(line)) ?? '') ?? [];
  // Blanks beyond the indentation are content, or an error before the first line.
  const isRegular = lines.every((line) => (/[^ ]/.test(line) ? line.startsWith(indent) : line.length <= indent.length));
  if (!isRegular || !/^\|[-+]?\n/.test(written) || !written.endsWith('\n') || indent.length <= column) return undefined;
  const content = lines.map((line) => line.slice(indent.length)).join('\n');
  let end = content.length;
  while (content[end - 1] === '\n') end--;
  return content.slice(0, header === '|+' ? undefined : header === '|' ? end + 1 : end);
}
