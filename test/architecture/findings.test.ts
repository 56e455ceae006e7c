// What there is to say is a code and its arguments: src/say alone has the words.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { failureCodes } from '../../src/base/findings/apply.ts';
import { findingCodes } from '../../src/base/findings/codes.ts';
import { projectFolder } from '../support/run-kpc.ts';
import { folders } from '../../scripts/fence/folders.mjs';

const source = join(projectFolder, 'src');

function filesBelow(folder: string): readonly string[] {
  return readdirSync(join(source, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(folder, path));
}

/** Object literals that have the severity or the words of a diagnostic written in them. */
const handMade = [/\bseverity: '(?:error|warning|note)'/, /\bcode: '[a-z-]+',\s*text\b/, /\btext\b[^\n]*,\s*code: '/];

function isHandMade(text: string): boolean {
  return handMade.some((pattern) => pattern.test(text));
}

describe('findings are made by diagnose() alone', () => {
  const users = Object.keys(folders).filter(
    (folder) => !folder.endsWith('.ts') && folders[folder]?.folders.includes('base/findings'),
  );

  test.each(users)('in %s', (folder) => {
    const files = filesBelow(folder);
    expect(files).not.toEqual([]);
    expect(files.filter((file) => isHandMade(readFileSync(join(source, file), 'utf8')))).toEqual([]);
  });

  test.each([
    "diagnostics.push({ severity: 'error', code: 'bad-value', text, place });",
    "return [{ code: 'bad-value', text: `port ${port}`, severity }];",
    "const note = { text: 'no port', code: 'bad-value', severity };",
  ])('a literal is found: %s', (line) => {
    expect(isHandMade(line)).toBe(true);
  });
});

test('no code is in two tables', () => {
  const codes = filesBelow('base/findings').flatMap((file) => {
    const text = readFileSync(join(source, file), 'utf8');
    const tables = [...text.matchAll(/const \w+Findings = \{\n(.*?)\n\};/gs)].map(([, rows = '']) => rows);
    const rows = tables.flatMap((table) => [
      ...table.matchAll(/^ {2}'?([a-z-]+)'?: (?:row|byProblem|ofCompiling)[<(]/gm),
    ]);
    return rows.map(([, code = '']) => code);
  });
  // kpc-apply has its own, which may be named as one of kpc's.
  expect(codes.toSorted()).toEqual([...findingCodes, ...failureCodes].toSorted());
});
