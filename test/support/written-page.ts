import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { expect } from 'vitest';
import { projectFolder } from './run-kpc.ts';

/** Expects a file in docs/ to have this text. UPDATE_DOCS=1 writes it. */
export function expectWritten(path: string, text: string): void {
  const file = join(projectFolder, path);
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(file, text);
  expect(readFileSync(file, 'utf8'), `${path} is out of date: run "npm run docs"`).toBe(text);
}

/** Like expectWritten, for a page laid out as Prettier does. */
export async function expectWrittenPage(path: string, markdown: string): Promise<void> {
  const options = JSON.parse(readFileSync(join(projectFolder, '.prettierrc.json'), 'utf8')) as Record<string, unknown>;
  expectWritten(path, await format(markdown, { ...options, parser: 'markdown' }));
}

/** Returns a row of a table. Escapes characters that would end a cell. */
export function tableRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
}

/** Escapes markup in a text, except `backquotes`. */
export function plainText(text: string): string {
  return text.replace(/(`[^`]*`)|[<>*_]/g, (found, code?: string) => code ?? `\\${found}`);
}
